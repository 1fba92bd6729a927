//! The studies that the program has, and what it does with each of them: its command, its measuring,
//! its results. Nothing here knows one study from another.

mod calibration;
mod command;
mod measure;
pub mod power;
mod results;
mod screen;

use study::Study;

pub use command::{at_scale, attach, find};
pub use measure::{
    Measurement, Part, measure, one_study, recorded_in, recorded_parts, say_sources,
};
pub use results::{Found, Questions, Results, Texts, View};

/// The studies, in the order in which `wiretax run` measures and reports them.
pub const STUDIES: &[&dyn Study] = &[
    &handshake::Handshake,
    &page_study::PageStudy,
    &link_study::LinkStudy,
    &roam_study::RoamStudy,
    &observe::Lab,
    &stacks::Stacks,
    &haproxy_study::Haproxy,
];

/// Those who do the studies' jobs inside a guest.
pub fn workers() -> host::Registry {
    let own = handshake::workers().and(link_study::workers()).and(roam_study::workers());
    own.and(page_study::workers())
}

/// The words of a study's command, as the user types them.
pub fn words(study: &dyn Study) -> String {
    study.command().join(" ")
}
