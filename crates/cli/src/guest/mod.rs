//! `wiretax guest`: fetching what a guest needs, and whether it starts.

mod args;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use ::guest::{Cache, Error, Guest, LINK_MODULES, Package, Part};
use fault::{Fault, OrProblem, Problem, one_line};
use serde_json::json;

pub use self::args::GuestArgs;
use self::args::GuestCommand;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{say, say_json};

/// Bytes that a network brings in a second, about, until some came.
const PER_SECOND: u64 = 5_000_000;
/// How long a guest may take to start, on a busy machine too.
const BOOT: Duration = Duration::from_secs(120);

/// Fetches or checks.
pub fn guest(args: &GuestArgs, diagnostics: &Diagnostics) -> Outcome {
    match &args.command {
        GuestCommand::Fetch { with, again } => fetch(*with, *again, diagnostics),
        GuestCommand::Check { kernel, json } => check(*kernel, json.json, diagnostics),
    }
}

fn fetch(with: Option<Part>, again: bool, diagnostics: &Diagnostics) -> Outcome {
    let cache = Cache::find()?;
    std::fs::create_dir_all(cache.folder()).blame(Fault::Machine)?;
    let interrupt = Interrupt::listen()?;
    let mut parts = vec![Part::Programs, Part::CloudKernel];
    if with == Some(Part::Daemons) {
        // Radios are in no other kernel.
        parts.push(Part::FullKernel);
    }
    parts.extend(with.filter(|with| !parts.contains(with)));
    for part in parts {
        let mut progress = diagnostics.progress();
        let seconds = |bytes: u64| Duration::from_secs_f64(bytes as f64 / PER_SECOND as f64);
        let fetched = cache.fetch(part, again, &|| interrupt.came(), &mut |step| {
            progress.show(&step.what, seconds(step.done), seconds(step.total));
        });
        progress.finish();
        match fetched {
            Ok(now) => {
                let how = if now { "fetched" } else { "was there" };
                let packages = shown(&cache.packages(part).unwrap_or_default());
                diagnostics.note(format!("{part}: {how}: {packages}"));
            }
            Err(Error::Interrupted(what)) => {
                diagnostics.note(format!("interrupted at {what}; run the same command to resume"));
                return Ok(Exit::Interrupted);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}

/// Packages in a line.
fn shown(packages: &[Package]) -> String {
    match packages {
        [] => "this machine has all of it".to_owned(),
        [Package { name, version }] => format!("{name} {version}"),
        many => format!("{} packages", many.len()),
    }
}

fn check(kernel: Part, as_json: bool, diagnostics: &Diagnostics) -> Outcome {
    if matches!(kernel, Part::Programs | Part::Daemons) {
        let problem = Problem::new(Fault::Caller, format!("`{kernel}` is not a kernel"));
        return Err(problem.with_remedy("choose from cloud-kernel, full-kernel"));
    }
    let cache = Cache::find()?;
    let guest = Guest::of(cache.clone(), kernel)?.with_modules(LINK_MODULES);
    let interrupt = Interrupt::listen()?;
    let (versions, absent) = (guest.versions()?, guest.absent_modules()?);
    let began = Instant::now();
    let booted = match guest.boot(BOOT, &|| interrupt.came()) {
        Err(_) if interrupt.came() => {
            diagnostics.note("interrupted");
            return Ok(Exit::Interrupted);
        }
        booted => booted?,
    };
    let took = began.elapsed().as_secs_f64();
    if as_json {
        let part = |part: &Part| json!({ "part": part, "packages": cache.packages(*part) });
        let all = json!({
            "folder": cache.folder(),
            "parts": Part::ALL.iter().map(part).collect::<Vec<_>>(),
            "qemu": versions.qemu,
            "kernel": booted.kernel,
            "absent_modules": absent,
            "boot_seconds": took,
            "boot_virtual_seconds": booted.virtual_seconds,
        });
        say_json(&(serde_json::to_string_pretty(&all).blame(Fault::Results)? + "\n"))?;
    } else {
        let mut text = String::new();
        let mut line = |name: &str, what: String| {
            writeln!(text, "{name:14} {}", one_line(&what))
                .map_err(|error| Problem::of(Fault::Results, error))
        };
        line("folder", cache.folder().display().to_string())?;
        for part in Part::ALL {
            let packages = cache.packages(*part);
            let packages = packages.map_or("not fetched".to_owned(), |list| shown(&list));
            line(part.name(), packages)?;
        }
        line("QEMU", versions.qemu)?;
        line("kernel", booted.kernel)?;
        if !absent.is_empty() {
            line("without", absent.join(", "))?;
        }
        line("starts in", format!("{took:.1} s ({:.2} s of its own)", booted.virtual_seconds))?;
        say(&text)?;
    }
    Ok(Exit::Done)
}
