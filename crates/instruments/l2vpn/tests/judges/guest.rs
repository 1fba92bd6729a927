//! Judges where the kernel has what they need: here, or in a guest.

use std::panic;
use std::time::Duration;

use ::guest::{Guest, LINK_MODULES};
use fault::{Explain, Fault, Problem};
use host::{Host, Outlet, Place, Worker};
use lab_test::{Need, TestResult, program, skip};
use seclink::path::{Cipher, Protection};

use super::{JUDGES, one_hop};

/// Real time that a guest may take, on a busy machine too.
pub const LONG: Duration = Duration::from_secs(300);

/// Judges in a guest.
pub struct Judge;

impl Worker for Judge {
    const KIND: &'static str = "judge";
    /// The names of what is to be judged.
    type Job = Vec<String>;
    /// Of each, what was wrong.
    type Answer = Vec<Option<String>>;

    fn work(
        &self,
        job: Vec<String>,
        outlet: &mut Outlet<'_>,
    ) -> Result<Vec<Option<String>>, Problem> {
        let mut said = Vec::new();
        for name in job {
            outlet.event(name.as_str())?;
            let judge = JUDGES.iter().find(|(known, _)| *known == name);
            let (_, judge) = judge.ok_or_else(|| Problem::new(Fault::Caller, "no such judge"))?;
            // One that panics is no reason not to hear the others.
            let judged = panic::catch_unwind(judge).unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>();
                Err(text.map_or("it panicked", String::as_str).into())
            });
            said.push(judged.err().map(|error| error.to_string()));
        }
        Ok(said)
    }
}

/// Whether this machine's kernel can do it all.
fn can_here() -> TestResult<bool> {
    let mut lacking = Vec::new();
    for protection in Protection::ALL.iter().copied() {
        lacking.extend(l2vpn::kernel::lacking(&one_hop(protection, protection.usual_cipher()))?);
    }
    let cbc = one_hop(Protection::Esp, Cipher::AesCbc128Sha1);
    lacking.extend(l2vpn::kernel::lacking(&cbc)?);
    lacking.extend(l2vpn::kernel::lacking(&seclink::path::Topology::default())?);
    Ok(lacking.is_empty() && program("wpa_supplicant").is_some())
}

/// Has all of these judge, and says what any of them finds wrong.
pub fn judged(names: &[&str]) -> TestResult {
    if can_here()? {
        let chosen = JUDGES.iter().filter(|(name, _)| names.contains(name));
        return chosen.into_iter().try_for_each(|(_, judge)| judge());
    }
    let guest =
        Guest::find().and_then(|guest| guest.with_programs(&["ip", "tc", "wpa_supplicant"]));
    let guest = match guest {
        Ok(guest) => guest.with_modules(LINK_MODULES),
        Err(error) => return skip(Need::Guest, error.in_one_text()),
    };
    let host = Host::new(Place::Process(guest.launch()?));
    let job: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let said = host.run::<Judge>("judges in a guest", &job, LONG, |_| {})?;
    let wrong = names.iter().zip(said).filter_map(|(name, wrong)| Some((name, wrong?)));
    let wrong: Vec<String> = wrong.map(|(name, wrong)| format!("{name}: {wrong}")).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
