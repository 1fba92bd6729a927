//! `wiretax ech`: what Encrypted Client Hello costs: bytes of the hello, the round trips of a retry, the wait for the DNS record.

mod args;
mod count;
mod libraries;
mod pairs;
mod show;

use std::net::IpAddr;

use conn::names::{self, Names};
use fault::{Fault, OrProblem, Problem};
use serde_json::json;

pub use self::args::EchArgs;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Asked;
use crate::output::{say_json, say_text};

/// What is said of an end before anything was printed.
const INTERRUPTED: &str = "interrupted: nothing was counted";

/// The schema of what `--json` prints.
const SCHEMA: u32 = 1;

/// Counts, asks, and prints what it comes to.
pub fn ech(args: &EchArgs, diagnostics: &Diagnostics) -> Outcome {
    if let Some(host) = args.host.as_deref().filter(|host| host.parse::<IpAddr>().is_ok()) {
        let what =
            format!("`{host}` is an address, and ECH's keys stand in the HTTPS record of a name");
        let remedy = "give the server's name, or none to count handshakes alone";
        return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
    }
    let (counts, beside) = if args.library.is_empty() {
        (count::counts(args)?, None)
    } else {
        let Some(pairs) = libraries::pairs(args, diagnostics)? else {
            diagnostics.error(&Problem::new(Fault::Peer, INTERRUPTED));
            return Ok(Exit::Interrupted);
        };
        (pairs.counts, Some((pairs.libraries, pairs.failures)))
    };
    let names = match &args.host {
        None => None,
        Some(host) => match ask(host, args)? {
            Some(names) => Some(names),
            None => {
                diagnostics.error(&Problem::new(Fault::Peer, INTERRUPTED));
                return Ok(Exit::Interrupted);
            }
        },
    };
    if args.json.json {
        let mut value = show::json(&counts, names.as_ref(), args);
        if let (Some((libraries, failures)), Some(all)) = (&beside, value.as_object_mut()) {
            all.insert("libraries".to_owned(), json!(libraries));
            all.insert("failures".to_owned(), json!(failures));
        }
        say_json(&format!("{}\n", serde_json::to_string_pretty(&value).blame(Fault::Results)?))?;
    } else {
        say_text(&show::text(&counts, names.as_ref(), args))?;
    }
    for failure in beside.iter().flat_map(|(_, failures)| failures) {
        let libraries::Failure { library, server, case, why } = failure;
        diagnostics.warning(format!("{library} with {server}, {case}: {why}"));
    }
    if names.as_ref().is_some_and(|names| names.wait_ms().is_some_and(|wait| wait > 0.0)) {
        diagnostics.advice(
            "the record's wait is that of one question: ask again for what a cache near your users makes of it",
        );
    }
    Ok(Exit::Done)
}

/// What the name server says; `None` if it was interrupted.
fn ask(host: &str, args: &EchArgs) -> Result<Option<Names>, Problem> {
    let server = match args.dns_server {
        Some(server) => server,
        None => names::system_server()?,
    };
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let mut signals = Asked::listen()?;
        let asking = names::ask(server, host, args.timeout.duration());
        Ok(tokio::select! {
            () = signals.next() => None,
            found = asking => Some(found?),
        })
    })
}
