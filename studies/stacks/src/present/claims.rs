//! Every finding of HAProxy 2025 that libraries show alone, and what these results say of each.

use study::{Answer, Claim, Counterpart, Figure, with_interval};
use tls_drivers::{Key, Suite, Workload};

use super::locks::TLS12_RSA;
use super::{
    Findings, YARDSTICK, client, counterparts, documented, functions, locks, profile, rates,
};
use crate::advice::MODERN;
use crate::point::Tool;
use crate::sample::value;
use crate::summary::{Cell as Measured, Want};

const CLAIMS: &str = include_str!("../../claims.csv");

/// The claims as a fragment for Markdown, of results with times. Bars of light locks that these results lack are left
/// to the fragment of those.
pub(super) fn markdown(findings: &Findings) -> String {
    let answers = answers(findings);
    let is_light = |claim: &Claim| {
        let mut bars = counterparts::commands().into_iter().map(|(figure, _)| figure);
        bars.any(|figure| counterparts::is_light(&figure) && item(&figure) == claim.item)
    };
    let has =
        |claim: &Claim| answers.iter().any(|(item, ours)| *item == claim.item && ours.is_some());
    let claims: Vec<Claim> =
        claims().into_iter().filter(|claim| has(claim) || !is_light(claim)).collect();
    study::claims_markdown(&findings.provenance, &claims, &answers)
}

/// The shares of locks as another, of results with instructions by purpose.
pub(super) fn profile_markdown(findings: &Findings) -> Option<String> {
    let counted = profile::counted(&findings.summary);
    let (claims, answers) = lock_shares(findings, &counted);
    (!counted.is_empty()).then(|| study::claims_markdown(&findings.provenance, &claims, &answers))
}

/// The bars of light locks as another, of results with those over loopback.
pub(super) fn light_markdown(findings: &Findings) -> Option<String> {
    let (claims, answers) = light(findings);
    let answered = answers.iter().any(|(_, ours)| ours.is_some());
    answered.then(|| study::claims_markdown(&findings.provenance, &claims, &answers))
}

/// What clients alone make by threads as another, of results with several thread counts in memory.
pub(super) fn client_markdown(findings: &Findings) -> Option<String> {
    let (claim, answer) = clients(findings);
    answer.1.is_some().then(|| study::claims_markdown(&findings.provenance, &[claim], &[answer]))
}

/// Those of the file, and a row for each bar. A test reads our own file.
fn claims() -> Vec<Claim> {
    let stated = study::claims(CLAIMS).unwrap_or_default();
    let bars = counterparts::commands();
    let bars = bars.into_iter().map(|(figure, command)| bar(&figure, &command));
    stated.into_iter().chain(bars).collect()
}

fn item(figure: &Figure) -> String {
    format!("{}: {}", figure.item, figure.row)
}

fn bar(figure: &Figure, command: &str) -> Claim {
    let rate = figure.value.map(|rate| format!("{rate:.0} connections/s"));
    let note = Some(figure.note.clone()).filter(|note| !note.is_empty());
    let says: Vec<String> = rate.into_iter().chain(note).collect();
    Claim {
        item: item(figure),
        says: says.join("; "),
        command: format!("`{command}`"),
        seen: String::new(),
    }
}

/// What is said of all results.
type Say = fn(&Findings) -> Option<String>;

const SAID: [(&str, Say); 12] = [
    ("The curves", curves),
    ("A failure to scale, not to encrypt", scaling),
    ("OpenSSL 3.1 and newer", newer),
    ("AWS-LC and WolfSSL", |findings| {
        locks_of(findings, &["awslc-1.29.0-c11", "awslc-1.32.0-c11", "wolfssl-5.7.2", YARDSTICK])
    }),
    ("Reference counts of C99", |findings| {
        let builds =
            ["awslc-1.29.0-c99", "awslc-1.29.0-c11", "awslc-1.32.0-c99", "awslc-1.32.0-c11"];
        locks_of(findings, &builds)
    }),
    ("QuicTLS", |findings| {
        let pairs = [("quictls-1.1.1w", YARDSTICK), ("quictls-3.1.7", "openssl-3.1.4")];
        costs(findings, &pairs, MODERN)
    }),
    ("LibreSSL", |findings| costs(findings, &[("libressl-3.1.0", YARDSTICK)], TLS12_RSA)),
    ("BoringSSL", |findings| costs(findings, &[("boringssl", YARDSTICK)], MODERN)),
    ("rustls, GnuTLS and Mbed TLS", others),
    ("The load generator", generator),
    ("A client's cost, and its server's", by_client),
    ("The table of functions", table_of_functions),
];

fn answers(findings: &Findings) -> Vec<Answer> {
    let said = SAID.iter().map(|(item, say)| ((*item).to_owned(), say(findings)));
    said.chain(bars(findings, |_| true)).collect()
}

/// What stands beside those bars that are wanted.
fn bars(findings: &Findings, wanted: fn(&Figure) -> bool) -> Vec<Answer> {
    let found = counterparts::all(findings);
    let figures = counterparts::commands().into_iter().map(|(figure, _)| figure).filter(wanted);
    let answers = figures.map(|figure| {
        let own = found.iter().find(|(key, _)| *key == figure.key());
        (item(&figure), own.and_then(|(_, counterpart)| alone(counterpart)))
    });
    answers.collect()
}

/// The bars of light locks.
fn light(findings: &Findings) -> (Vec<Claim>, Vec<Answer>) {
    let figures = counterparts::commands().into_iter();
    let claims = figures.filter(|(figure, _)| counterparts::is_light(figure));
    let claims = claims.map(|(figure, command)| bar(&figure, &command)).collect();
    (claims, bars(findings, counterparts::is_light))
}

/// The library alone beside a bar.
fn alone(counterpart: &Counterpart) -> Option<String> {
    let Counterpart::Ours { value, interval, difference } = counterpart else { return None };
    let (low, high) = (*interval)?;
    Some(format!("{} connections/s; {difference}", with_interval((*value, low, high), 0)))
}

/// One text of several; `None` of none.
fn joined(texts: Vec<String>) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn full<'a>(findings: &'a Findings, name: &'a str, suite: Suite) -> Option<&'a Measured> {
    findings.summary.find(Want::handshake(Workload::Full, suite).of(name))
}

/// The server's CPU time of full handshakes as a multiple of another library's, for each pair.
fn costs(findings: &Findings, pairs: &[(&str, &str)], suite: Suite) -> Option<String> {
    let each = pairs.iter().filter_map(|(name, other)| {
        let ratio = full(findings, name, suite)?
            .ratio_to(full(findings, other, suite)?, value::SERVER_CPU)?;
        let ratio = with_interval((ratio.value, ratio.low, ratio.high), 2);
        let (title, other) = (findings.summary.title(name), findings.summary.title(other));
        Some(format!("{title} takes {ratio} of the server's CPU time of {other}"))
    });
    joined(each.collect())
}

/// The server's locks in a full handshake of the modern suite.
fn count(findings: &Findings, name: &str) -> Option<f64> {
    locks::counted(&findings.summary, name, Workload::Full, MODERN)?.server_locks()
}

fn locks_of(findings: &Findings, names: &[&str]) -> Option<String> {
    let each = names.iter().filter_map(|name| {
        Some(format!("{} {:.0}", findings.summary.title(name), count(findings, name)?))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("locks of a full handshake, server: {}", each.join(", ")))
}

fn curves(findings: &Findings) -> Option<String> {
    let group = rates::full(&findings.summary)?;
    let threads: Vec<String> = group.threads.iter().map(usize::to_string).collect();
    let cores = findings.summary.machine.as_ref()?.cores;
    Some(format!(
        "{} libraries with {} threads on {cores} cores",
        group.libraries.len(),
        threads.join(", ")
    ))
}

fn scaling(findings: &Findings) -> Option<String> {
    const OLD: &str = "openssl-3.0.2";
    let locks = (count(findings, YARDSTICK)?, count(findings, OLD)?);
    let cost = costs(findings, &[(OLD, YARDSTICK)], MODERN)?;
    Some(format!(
        "{:.0} locks of a full handshake became {:.0}; {cost}, alone on a thread",
        locks.0, locks.1
    ))
}

fn newer(findings: &Findings) -> Option<String> {
    let atomics = |name: &str| {
        let want = Want { tool: Tool::Callgrind, ..Want::handshake(Workload::Full, MODERN) };
        Some(findings.summary.find(want.of(name))?.median(value::SERVER_ATOMICS)?.value)
    };
    let names = ["openssl-3.0.20", "openssl-3.1.4", "openssl-3.4.1", "openssl-4.0.3"];
    let each = names.into_iter().filter_map(|name| {
        let (title, locks) = (findings.summary.title(name), count(findings, name)?);
        Some(format!("{title} {locks:.0} locks and {:.0} atomics", atomics(name)?))
    });
    joined(each.collect())
}

fn others(findings: &Findings) -> Option<String> {
    let modern = [("rustls-aws-lc-rs", YARDSTICK), ("gnutls", YARDSTICK)];
    let older = costs(findings, &[("mbedtls", YARDSTICK)], TLS12_RSA);
    let older = older.map(|text| format!("with TLS 1.2 and RSA-2048 {text}"));
    joined(costs(findings, &modern, MODERN).into_iter().chain(older).collect())
}

/// Clients alone on a core: what the load generator's library allows.
fn generator(findings: &Findings) -> Option<String> {
    let each = [YARDSTICK, "openssl-3.0.2"].into_iter().filter_map(|name| {
        let client = full(findings, name, MODERN)?.median(value::CLIENT_CPU)?.value;
        let locks = locks::counted(&findings.summary, name, Workload::Full, MODERN)?;
        Some(format!(
            "{} makes {:.0} connections/s on a core and takes {:.0} locks for each",
            findings.summary.title(name),
            1e6 / client,
            locks.client_locks()?
        ))
    });
    joined(each.collect()).map(|text| format!("as a client {text}"))
}

/// The same by threads: what scales on one core more, and what does not.
fn clients(findings: &Findings) -> (Claim, Answer) {
    const ITEM: &str = "The load generator, by threads";
    let each = client::by_threads(findings).into_iter().map(|one| {
        let rates: Vec<String> =
            one.rates.iter().map(|(threads, rate)| format!("{rate:.0} with {threads}")).collect();
        format!("{} {} (× {:.2})", findings.summary.title(one.name), rates.join(", "), one.gain())
    });
    let ours = joined(each.collect())
        .map(|text| format!("connections/s that clients alone make, by threads: {text}"));
    let claim = Claim {
        item: ITEM.to_owned(),
        says:
            "on OpenSSL 3.0 and 48 cores it made no more than 400 connections/s, on 1.1.1 140,000"
                .to_owned(),
        command: "`wiretax stacks --scale client`".to_owned(),
        seen: String::new(),
    };
    (claim, (ITEM.to_owned(), ours))
}

/// What a client makes its server spend for each microsecond of its own: the least and the most of all libraries.
fn by_client(findings: &Findings) -> Option<String> {
    let of = |key| {
        let suite = Suite { key, ..MODERN };
        let names = findings.summary.measured().into_iter();
        let ratios =
            names.filter_map(|name| client::server_by_client(full(findings, name, suite)?));
        let (least, most) = ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| {
            (least.min(ratio), most.max(ratio))
        });
        (most > 0.0).then(|| format!("1 to {least:.1} up to 1 to {most:.1}"))
    };
    let keys = [(Key::Rsa2048, "RSA-2048"), (Key::Rsa4096, "RSA-4096")];
    let each = keys.into_iter().filter_map(|(key, name)| Some(format!("{} with {name}", of(key)?)));
    joined(each.collect()).map(|text| format!("by library {text}"))
}

fn table_of_functions(findings: &Findings) -> Option<String> {
    let (tried, sources) = functions::table(findings)?;
    let documented = documented::table(findings)?;
    Some(format!(
        "{} libraries by {} functions that handshakes or builds show, with {} sources, and {} as documented",
        tried.rows.len(),
        tried.columns.len() - 1,
        sources.len(),
        documented.columns.len() - 2
    ))
}

/// The shares of locks that HAProxy 2025 states, each with the share of the instructions here.
fn lock_shares(findings: &Findings, counted: &[profile::Counted<'_>]) -> (Vec<Claim>, Vec<Answer>) {
    let both = profile::published().into_iter().map(|line| {
        let item = format!(
            "Locks, {}: {}, {}, {} threads",
            line.scenario, line.library, line.locks, line.threads
        );
        let answer = profile::beside(counted, &line).and_then(|own| {
            let share = 100.0 * own.share(profile::LOCKS)?;
            Some(format!(
                "{share:.1} % of the instructions of {}, {}, on one thread, where nothing waits",
                findings.summary.title(own.name),
                profile::what(own.cell)
            ))
        });
        let claim = Claim {
            item: item.clone(),
            says: format!("{} % of the CPU's time in locks and atomics", line.percent),
            command: format!("`wiretax stacks --scale profile --libraries {}`", line.driver),
            seen: String::new(),
        };
        (claim, (item, answer))
    });
    both.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::summarise;

    #[test]
    fn every_claim_has_its_answer() {
        let findings = Findings::new(summarise([]), 1e5, 1);
        let answers = answers(&findings);
        assert_eq!(study::claims_misfits(&claims(), &answers), Vec::<String>::new());
        assert!(answers.iter().all(|(_, ours)| ours.is_none()));
        let (claims, answers) = lock_shares(&findings, &[]);
        assert_eq!(study::claims_misfits(&claims, &answers), Vec::<String>::new());
        assert_eq!(profile_markdown(&findings), None);
        let (claims, answers) = light(&findings);
        assert_eq!((claims.len(), study::claims_misfits(&claims, &answers)), (5, Vec::new()));
        assert_eq!(light_markdown(&findings), None);
        let (claim, answer) = clients(&findings);
        assert_eq!(study::claims_misfits(&[claim], &[answer]), Vec::<String>::new());
        assert_eq!(client_markdown(&findings), None);
    }

    #[test]
    fn committed_results_answer_every_finding() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/stacks");
        let run = record::Run::open(folder).unwrap();
        let findings = Findings::new(summarise(run.samples), 1e5, 1);
        let answers = answers(&findings);
        let silent = answers.iter().take(SAID.len()).filter(|(_, ours)| ours.is_none());
        let silent: Vec<&str> = silent.map(|(item, _)| item.as_str()).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }
}
