//! What every study shares.
//!
//! A study is a folder: a plan file, the figures that its document published, and the code of its
//! metric. It implements [`Study`]; the program keeps a list of them, one line a study, and all that
//! it does with a study goes through these traits:
//!
//! 1. The study adds its options to its command ([`Study::options`], most of them from its [`Axes`])
//!    and makes a [`Plan`] of what the user gave, or of what a folder of results was measured by.
//! 2. The plan is measured in a [`Session`], which records each sample as it ends, knows what was
//!    measured before, tells the user how far it is, and says when to stop.
//! 3. A [`Question`] makes [`Findings`] of the samples: the answer, its evidence, JSON and Markdown.
#![forbid(unsafe_code)]

mod axis;
mod claims;
mod clock;
mod findings;
mod job;
mod options;
mod plan_file;
mod provenance;
mod published;
mod reasons;
mod session;
mod sweep;
mod threads;
mod unattended;

pub use axis::{Axes, Axis, UnknownValue, Words, read_value};
pub use claims::{Answer, Claim, claims, claims_markdown, claims_misfits, with_interval};
pub use clock::{CLOCK, CLOCK_HELP, Clock, guest_host, one_clock, overwrite_clock};
pub use findings::{Findings, Subject};
pub use job::{StudyJob, side_by_side, stranger};
pub use options::{Options, open_input, options_again, quoted, text_of_recorded};
pub use plan_file::{PlanError, Scale, read_scale, sweeps_of, sweeps_value};
pub use provenance::{provenance, version_number};
pub use published::{Counterpart, Figure, PublishedError, beside, figures};
pub use reasons::{LONGEST_REASON, reason_among};
pub use session::{End, Expected, GRACE, Session, Watcher, about};
pub use sweep::{Number, Sweep};
pub use threads::threads;
pub use unattended::{Nobody, Until, unattended, unattended_until};

use std::time::Duration;

use fault::Problem;
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;

/// Makes the command that measures a sample again; `None` for a sample of no point of its study.
pub type Commands = Box<dyn Fn(&Sample) -> Option<String>>;

/// A study: what it asks, how it measures, and what its samples say.
pub trait Study: Sync {
    /// Its name: in samples, in the plan of a manifest, in JSON.
    fn name(&self) -> &'static str;

    /// The words of its command: `["handshake"]`, `["observe", "lab"]`.
    fn command(&self) -> &'static [&'static str];

    /// What it measures in one line, for the list of commands.
    fn about(&self) -> &'static str;

    /// What stands behind its help: examples. Called when help is shown, and only then.
    fn examples(&self) -> String;

    /// Whether it measures over the lab's links: its command then has the options of the links, and the
    /// lab measures itself first.
    fn uses_links(&self) -> bool {
        true
    }

    /// Whether it can keep packet captures beside its samples ([`Session::captures`]).
    fn keeps_captures(&self) -> bool {
        self.uses_links()
    }

    /// Whether it makes QUIC connections whose qlog files can be kept.
    fn makes_quic(&self) -> bool {
        false
    }

    /// Whether `wiretax run` measures it, by the scale `quick` of its plan file.
    fn in_run(&self) -> bool {
        true
    }

    /// The scale of its plan file by which `wiretax run --scale SCALE` measures it, where that is another one.
    fn scale_in_run<'a>(&self, scale: &'a str) -> &'a str {
        scale
    }

    /// Adds the options that say what to measure: the axes, and what else makes the plan.
    fn options(&self, command: clap::Command) -> clap::Command;

    /// Adds the options that say how to measure: where programs lie, what is kept beside the samples.
    /// They are no part of the plan.
    fn means(&self, command: clap::Command) -> clap::Command {
        command
    }

    /// Adds the options that say what is asked of the samples; `wiretax report` has them too.
    fn asks(&self, command: clap::Command) -> clap::Command {
        command
    }

    /// The answer to options that ask for what is computed, and not measured; `None` if they do not.
    ///
    /// # Errors
    /// The options ask for what cannot be.
    fn computed(&self, options: &Options<'_>) -> Result<Option<Computed>, Problem> {
        let _ = options;
        Ok(None)
    }

    /// The plan that the options ask for.
    ///
    /// # Errors
    /// The options ask for what cannot be, or name a file that cannot be read.
    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn Plan>, Problem>;

    /// The plan by which results were measured, from their manifest and the files that it names. It names no
    /// program: `options` do.
    ///
    /// # Errors
    /// It cannot be read, or this machine lacks what it needs.
    fn recorded_plan(
        &self,
        plan: &Value,
        files: &PlanFiles,
        options: &Options<'_>,
    ) -> Result<Box<dyn Plan>, Problem>;

    /// Whether the plan in a manifest can be read, whatever this machine lacks to measure it.
    ///
    /// # Errors
    /// It cannot.
    fn check_plan(&self, plan: &Value) -> Result<(), Problem> {
        self.recorded_plan(plan, &PlanFiles::new(), &Options::none()).map(|_| ())
    }

    /// Makes the commands that measure samples again, from the plan in their manifest and the point of each.
    /// The command that a sample recorded is a stranger's text, and is not looked at.
    fn commands(&self, plan: &Value) -> Commands;

    /// What is asked of the samples.
    ///
    /// # Errors
    /// The options ask what makes no sense, or name a file that cannot be read.
    fn question(&self, options: &Options<'_>) -> Result<Box<dyn Question>, Problem>;

    /// What each value of its samples is, by the value's name. The first is what `wiretax compare`
    /// compares by default.
    fn values(&self) -> Vec<(&'static str, ValueKind)>;

    /// The figures that its document published, and what stands beside each: see [`figures`].
    fn published(&self) -> &'static str;
}

/// An answer that needs no measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// For a terminal of 80 columns.
    pub text: String,
    /// The same as data.
    pub json: Value,
}

/// What is to be measured, ready to be.
pub trait Plan {
    /// As the manifest has it. [`Study::recorded_plan`] reads it back.
    fn value(&self) -> Value;

    /// The files that [`Plan::value`] names.
    fn files(&self) -> PlanFiles {
        PlanFiles::new()
    }

    /// How many points it has: results of more than [`record::MAX_POINTS`] could not be read back.
    fn points(&self) -> usize;

    /// How long it takes on this machine, about, when nothing of it is measured yet.
    fn expected(&self) -> Duration;

    /// The time that it keeps to, if it has such a limit: what does not fit is left out, and said.
    fn budget(&self) -> Option<Duration>;

    /// Whether it is measured in the lab: the process then enters namespaces of its own first.
    fn needs_lab(&self) -> bool;

    /// Whether the lab keeps root's rights over the machine, for what the kernel grants in no user namespace.
    fn keeps_rights(&self) -> bool {
        false
    }

    /// Opens what needs rights over the machine, where it is measured outside of the lab; whether there is
    /// such a thing. Rights are given up then, before anything is measured or written.
    ///
    /// # Errors
    /// It is not there, or these rights are missing.
    fn open_machine(&mut self) -> Result<bool, Problem> {
        Ok(false)
    }

    /// The seed of its random draws.
    fn seed(&self) -> u64;

    /// What can be prepared before the process enters the lab (building a server, say). Not called
    /// where the plan is measured with others by `wiretax run`.
    ///
    /// # Errors
    /// Nothing that the plan asks for can be measured here.
    fn prepare(&mut self, watcher: &mut dyn Watcher) -> Result<End, Problem> {
        let _ = watcher;
        Ok(End::Complete)
    }

    /// What to print in place of measuring, if it was only to be prepared.
    fn only_prepared(&self) -> Option<String> {
        None
    }

    /// Puts into a new manifest what the plan is measured with: libraries, and what is missing.
    fn describe(&self, manifest: &mut Manifest) {
        let _ = manifest;
    }

    /// Measures what is not measured yet.
    ///
    /// # Errors
    /// The measurement could not go on; samples recorded until then are kept. What fails in a way that
    /// the study asks about is a sample, not an error.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem>;

    /// The options that a command must repeat to go on with this plan in a folder.
    fn to_resume(&self) -> String {
        String::new()
    }
}

/// What is asked of samples.
pub trait Question {
    /// What the study's samples say; `None` if there are none of it. They come one after the other, out of the
    /// folder: a study that has many sums them up as they come, the others may hold them ([`record::hold`]).
    ///
    /// # Errors
    /// The samples cannot be what the study recorded, or are too many to be held.
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn Findings>>, Problem>;
}
