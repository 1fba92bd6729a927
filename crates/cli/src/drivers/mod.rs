//! `wiretax drivers`: which TLS libraries there are, and building them; and the hidden command that
//! measures with them.

mod args;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use fault::{Explain, Fault, OrProblem, Problem, WhileDoing, one_line};
use tls_drivers::builder::{self, BuildError};
use tls_drivers::{Catalog, Driver, Folders, State, Supervisor, SupervisorOptions};

pub use self::args::DriversArgs;
use self::args::DriversCommand;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{say, say_json};

/// What a build is taken to last before any has been seen.
const USUAL: Duration = Duration::from_secs(150);

/// Lists or builds drivers.
pub fn drivers(args: &DriversArgs, diagnostics: &Diagnostics) -> Outcome {
    say_sources(args.drivers.as_deref(), diagnostics)?;
    let folders = Folders::find(args.drivers.as_deref())?;
    let catalog = Catalog::read(&folders)?;
    match &args.command {
        DriversCommand::List(json) => list(&catalog, json.json),
        DriversCommand::Build { names } => {
            tls_drivers::check_cache(&folders.cache)?;
            build(&catalog, names, diagnostics)
        }
    }
}

/// Says which folder the drivers' sources are taken from, unless it was given: what is there is built
/// and loaded.
pub fn say_sources(given: Option<&Path>, diagnostics: &Diagnostics) -> Result<(), Problem> {
    if let (None, Some(sources)) = (given, Folders::find(given)?.sources) {
        let shown = sources.canonicalize().unwrap_or(sources);
        diagnostics.note(format!("drivers of {}", shown.display()));
    }
    Ok(())
}

/// Does one job that comes on standard input: the host process of a measurement.
pub fn host() -> Outcome {
    host::serve_stdio(&tls_drivers::host::workers()).blame(Fault::Caller).while_doing(
        || "a host does one job that it is sent, and `wiretax stacks` starts it by itself",
    )?;
    Ok(Exit::Done)
}

/// A supervisor whose hosts are this program.
pub fn supervisor() -> Result<Supervisor, Problem> {
    let options = SupervisorOptions {
        program: std::env::current_exe().blame(Fault::Machine)?,
        arguments: vec![tls_drivers::hosts::HOST.to_owned()],
    };
    Ok(Supervisor::new(options)?)
}

fn list(catalog: &Catalog, json: bool) -> Outcome {
    if catalog.drivers().is_empty() {
        let error = tls_drivers::Error::NoSources(catalog.folders().built());
        return Err(Problem::from(error).blaming(Fault::Machine));
    }
    if json {
        let all: Vec<_> = catalog.drivers().iter().map(as_json).collect();
        say_json(&(serde_json::to_string_pretty(&all).blame(Fault::Results)? + "\n"))?;
    } else {
        let mut text = String::new();
        let width = catalog.drivers().iter().map(|driver| driver.name.len()).max().unwrap_or(0);
        for driver in catalog.drivers() {
            let set = if driver.default { "default" } else { "" };
            let (name, state) = (&driver.name, state(driver));
            let about = one_line(&driver.about);
            writeln!(text, "{name:width$}  {set:7}  {state:9}  {about}").blame(Fault::Results)?;
        }
        say(&text)?;
    }
    Ok(Exit::Done)
}

fn state(driver: &Driver) -> &'static str {
    match driver.state {
        State::Built { .. } => "built",
        State::NotBuilt => "not built",
        State::Failed { .. } => "failed",
    }
}

fn as_json(driver: &Driver) -> serde_json::Value {
    let (reason, log) = match &driver.state {
        State::Failed { reason, log } => (Some(reason), Some(log)),
        _ => (None, None),
    };
    serde_json::json!({
        "name": driver.name, "library": driver.library, "version": driver.version,
        "default": driver.default, "about": driver.about, "licence": driver.licence,
        "state": state(driver), "object": driver.object(), "reason": reason, "log": log,
    })
}

fn build(catalog: &Catalog, names: &[String], diagnostics: &Diagnostics) -> Outcome {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = catalog.select(&names)?;
    let supervisor = supervisor()?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.clone();
    let supervisor = supervisor.stopping_when(move || stop.came());
    let mut took = Duration::ZERO;
    let (mut built, mut failed) = (0u32, Vec::new());
    let is_built = |driver: &&Driver| driver.object().is_some();
    let unbuilt = chosen.iter().filter(|driver| !is_built(driver)).count();
    let unbuilt = u32::try_from(unbuilt).unwrap_or(u32::MAX);
    let mut tried = 0;
    for driver in &chosen {
        let each = if built == 0 { USUAL } else { took / built };
        if interrupt.came() {
            return Ok(interrupted(&driver.name, diagnostics));
        }
        // A bar for each: one that was taken away does not come back.
        let mut progress = diagnostics.progress();
        if !is_built(&driver) {
            progress.show(&format!("building {}", driver.name), each * tried, each * unbuilt);
            tried += 1;
        }
        let ended = builder::build(catalog, driver, &supervisor, &|| interrupt.came());
        progress.finish();
        match ended {
            Ok(done) => {
                let how = if done.took.is_zero() {
                    "was built before".to_owned()
                } else {
                    built += 1;
                    took += done.took;
                    format!("built in {} s", done.took.as_secs())
                };
                diagnostics.note(format!("{}: {how}: {}", driver.name, done.described.version));
            }
            Err(BuildError::Ended(name)) => return Ok(interrupted(&name, diagnostics)),
            Err(_) if interrupt.came() => return Ok(interrupted(&driver.name, diagnostics)),
            Err(error) => {
                diagnostics.warning_with_remedy(&error, error.remedy().as_deref());
                failed.push(driver.name.as_str());
            }
        }
    }
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    let (all, failed_all) = (chosen.len(), failed.join(", "));
    let what = format!("{} of {all} were not built: {failed_all}", failed.len());
    Err(Problem::new(Fault::Machine, what))
}

/// The user stopped a build. Its working folder stays for the next to go on from; no half of a driver
/// is where drivers are looked for.
fn interrupted(name: &str, diagnostics: &Diagnostics) -> Exit {
    diagnostics.note(format!(
        "interrupted at {name}; what was built is kept: resume with the same command"
    ));
    Exit::Interrupted
}
