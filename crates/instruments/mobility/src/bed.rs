//! The bed.

use handoff::{Run, Scenario};
use lab::Lab;
use units::Delay;

use crate::Error;

/// Two sites, what joins them, and a host that moves.
#[derive(Debug)]
pub struct Bed {}

impl Bed {
    /// Whether a scenario can be stood up at all.
    ///
    /// # Errors
    /// [`Error::Scenario`]: what cannot be, and what can.
    pub fn check(_scenario: &Scenario) -> Result<(), Error> {
        Ok(())
    }

    /// Stands it up in a lab that has no other bed. Keys and addresses are made of `seed`.
    ///
    /// # Errors
    /// [`Error::Scenario`]; what the kernel or a daemon refuses.
    pub fn stand(_lab: &mut Lab, _scenario: &Scenario, _seed: u64) -> Result<Bed, Error> {
        Err(Error::Vain { what: "the bed".to_owned(), seconds: 0, last: Vec::new() })
    }

    /// Attaches the host to its first place, sends frames both ways for `trial`, has the host move after a quarter of
    /// it, and says what was seen. `seed` moves the trigger by up to a beacon interval.
    ///
    /// # Errors
    /// The host cannot be attached; a daemon died.
    pub fn run(&mut self, _frames_per_second: u32, _trial: Delay, _seed: u64) -> Result<Run, Error> {
        Err(Error::Vain { what: "a run".to_owned(), seconds: 0, last: Vec::new() })
    }
}
