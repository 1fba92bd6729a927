//! Every table, figure and claim of the SSLmTCP paper, and what these results say of each.

use stats::Estimate;
use study::{Answer, Claim, with_interval};

use super::document::{Pair, compute, parts};
use super::lineup::{listed, typical_rtt};
use super::{Findings, decimals_at, early, functions, published, queue};
use crate::embedded::Saved;
use crate::summary::{Cell, Row, RowKey, value};

const CLAIMS: &str = include_str!("../../claims.csv");
/// The peer of rows with an ordinary server.
const PLAIN: &str = "plain";

/// The claims as a fragment for Markdown; `None` of results without the paper's handshake.
pub(super) fn markdown(findings: &Findings) -> Option<String> {
    Pair::find(findings)?;
    Some(study::claims_markdown(&findings.origin, &claims(), &answers(findings)))
}

/// A test reads our own file.
fn claims() -> Vec<Claim> {
    study::claims(CLAIMS).unwrap_or_default()
}

/// What is said of the paper's handshake, embedded and in sequence.
type OfPair = fn(&Pair<'_>) -> Option<String>;
/// What is said of other modes.
type OfFindings = fn(&Findings) -> Option<String>;

const OF_PAIR: [(&str, OfPair); 17] = [
    ("Section 3: messages", messages),
    ("Section 3: bytes", bytes),
    ("Section 3: a round trip", round_trip),
    ("Section 3: what rides", rides),
    ("RSA-4096", rsa),
    ("Equations 1 and 2: the sum", sum),
    ("Same switch", |pair| place(pair, 0.4)),
    ("261 km by wire", |pair| place(pair, 11.6)),
    ("16 km over public Wi-Fi", |pair| place(pair, 85.5)),
    ("Places between", between),
    ("The share saved grows with the ping", shares),
    ("One model for all places", published::one_model),
    ("Figure 9: handshake time saved", |pair| saved(pair, |saved| saved.ready_ms)),
    ("Figure 10: parts of an HTTPS request", figure_10),
    ("Figure 11: response waiting time saved", |pair| saved(pair, |saved| saved.response_ms)),
    ("First visit", first_visit),
    ("Rival: connections opened early", opened_early),
];

const OF_FINDINGS: [(&str, OfFindings); 5] = [
    ("Equations 1 and 2: queueing", queue::of_the_paper),
    ("Rival: TLS Snap Start", snap_start),
    ("Left open: TLS 1.3", tls13),
    ("Left open: Fast Open and QUIC", fast_open_and_quic),
    ("Left open: an ordinary server", ordinary_server),
];

fn answers(findings: &Findings) -> Vec<Answer> {
    let pair = Pair::find(findings);
    let of_pair =
        OF_PAIR.iter().map(|(item, say)| ((*item).to_owned(), pair.as_ref().and_then(say)));
    let others = OF_FINDINGS.iter().map(|(item, say)| ((*item).to_owned(), say(findings)));
    of_pair.chain(others).collect()
}

fn with_ends(of: &Estimate, decimals: usize) -> String {
    with_interval((of.value, of.low, of.high), decimals)
}

fn messages(pair: &Pair<'_>) -> Option<String> {
    let (before, after) = pair.frames()?;
    Some(format!(
        "{before:.0} frames until the response become {after:.0}, acknowledgments among them"
    ))
}

fn bytes(pair: &Pair<'_>) -> Option<String> {
    let (before, after) = pair.bytes()?;
    let why = match after > before {
        true => "they rise, since what rides is padded to 1024 bytes three times",
        false => "they fall",
    };
    Some(format!(
        "{before:.0} bytes of Ethernet frames until the response become {after:.0}: {why}"
    ))
}

/// Fitted round trips until the client may send.
fn n(row: &Row) -> Option<f64> {
    Some(row.ready.as_ref()?.slope.value)
}

fn round_trip(pair: &Pair<'_>) -> Option<String> {
    let (before, after) = (n(pair.control)?, n(pair.row)?);
    Some(format!("{before:.2} round trips until the client may send become {after:.2}"))
}

fn rides(pair: &Pair<'_>) -> Option<String> {
    let cell = pair.row.cells.first()?;
    let carried = |name: &str| Some(cell.median(name)?.value);
    let (syn, syn_ack) = (carried(value::SYN_BYTES)?, carried(value::SYN_ACK_BYTES)?);
    Some(format!("{syn:.0} bytes in the SYN, {syn_ack:.0} in the SYN+ACK"))
}

fn rsa(pair: &Pair<'_>) -> Option<String> {
    let (client, server) = compute(pair.control).filter(|_| pair.has_the_papers_key())?;
    Some(format!(
        "{client:.2} ms in the client's TLS library until the response, {server:.2} ms in the server's"
    ))
}

fn sum(pair: &Pair<'_>) -> Option<String> {
    let line = |row: &Row| {
        let fit = row.ready.as_ref()?;
        let (n, c) = (with_ends(&fit.slope, 2), with_ends(&fit.intercept, 1));
        Some(format!("{}: {n} RTT and {c} ms that do not grow with it", row.key.mode))
    };
    Some(format!("{}; {}", line(pair.control)?, line(pair.row)?))
}

fn at(pair: &Pair<'_>, rtt_ms: f64) -> Option<Saved> {
    pair.embedded.saved.iter().find(|saved| saved.rtt_ms == rtt_ms).copied()
}

fn place(pair: &Pair<'_>, rtt_ms: f64) -> Option<String> {
    let saved = at(pair, rtt_ms)?;
    let less = saved.reduction?.map(|share| 100.0 * share);
    let digits = decimals_at(rtt_ms);
    Some(format!(
        "{:.digits$} ms become {:.digits$} ms, {} % less",
        saved.control_ms,
        saved.embedded_ms,
        with_ends(&less, 1)
    ))
}

/// What the fitted model has for paths between those that were measured.
fn between(pair: &Pair<'_>) -> Option<String> {
    let model = pair.embedded.model?;
    let each = [1.0, 2.0, 5.0].map(|rtt| format!("{:.1} % at {rtt} ms", 100.0 * model.at(rtt)));
    Some(format!("by the line through ours {} less", listed(&each)))
}

fn shares(pair: &Pair<'_>) -> Option<String> {
    let each = pair.embedded.saved.iter().filter_map(|saved| {
        let less = saved.reduction?.map(|share| 100.0 * share);
        Some(format!("{} % at {} ms", with_ends(&less, 1), saved.rtt_ms))
    });
    let each: Vec<String> = each.collect();
    (each.len() > 1).then(|| listed(&each))
}

fn saved(pair: &Pair<'_>, of: impl Fn(&Saved) -> Estimate) -> Option<String> {
    let each = pair.embedded.saved.iter().map(|saved| {
        let digits = decimals_at(saved.rtt_ms);
        format!("{} ms at {} ms", with_ends(&of(saved), digits), saved.rtt_ms)
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| listed(&each))
}

/// At the longest RTT, where what changes is largest.
fn figure_10(pair: &Pair<'_>) -> Option<String> {
    let cell = pair.row.cells.last()?;
    let before = parts(pair.control.at_rtt(cell.rtt_ms)?)?;
    let after = parts(cell)?;
    let names = ["connect", "SSL", "wait"];
    let each = names.iter().zip(before.iter().zip(after));
    let each = each.map(|(name, (before, after))| format!("{name} {before:.1} to {after:.1} ms"));
    let each: Vec<String> = each.collect();
    Some(format!(
        "at {} ms {}; no name is asked for and the response is a byte: a page's requests stand below",
        cell.rtt_ms,
        listed(&each)
    ))
}

fn first_visit(pair: &Pair<'_>) -> Option<String> {
    let connections: usize = pair.row.cells.iter().map(Cell::completed).sum();
    Some(format!(
        "{connections} connections of {}, none with a ticket or a cookie: {:.2} round trips",
        pair.row.key.mode,
        n(pair.row)?
    ))
}

fn opened_early(pair: &Pair<'_>) -> Option<String> {
    let rtts: Vec<f64> = pair.control.cells.iter().map(|cell| cell.rtt_ms).collect();
    early::of_the_paper(pair.control.at_rtt(typical_rtt(&rtts)?)?)
}

fn snap_start(findings: &Findings) -> Option<String> {
    let of = |mode| n(functions::row(findings, mode)?);
    let (first, back) = (of("tcp+tls13")?, of("tcp+tls13-0rtt")?);
    Some(format!("{first:.2} round trips on a first visit, {back:.2} on a return"))
}

fn tls13(findings: &Findings) -> Option<String> {
    let of = |mode| n(functions::row(findings, mode)?);
    let (before, after) = (of("usertcp+tls13")?, of("sslmtcp-tls13")?);
    Some(format!(
        "with TLS 1.3 {before:.2} round trips until the client may send become {after:.2}"
    ))
}

fn fast_open_and_quic(findings: &Findings) -> Option<String> {
    let each =
        ["tfo+tls13-0rtt", "quic", "quic-0rtt", "sslmtcp-0rtt"].into_iter().filter_map(|mode| {
            Some(format!("{mode} {:.2}", n(functions::row(findings, mode)?)?.abs()))
        });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("round trips until the client may send: {}", listed(&each)))
}

/// An ordinary server at the longest RTT: what SSLmTCP's client takes, and the same in sequence.
fn ordinary_server(findings: &Findings) -> Option<String> {
    let rows = &findings.summary.rows;
    let is_plain = |row: &&Row| row.key.peer == PLAIN && row.key.mode.is_the_papers();
    let row = rows.iter().filter(is_plain).find(|row| row.key.mode.control().is_some())?;
    let key = RowKey { mode: row.key.mode.control()?, ..row.key.clone() };
    let control = rows.iter().find(|row| row.key == key)?;
    let cell = row.cells.last()?;
    let ready = |cell: &Cell| Some(cell.median(value::READY)?.value);
    Some(format!(
        "the client falls back and is ready after {:.1} ms, in sequence after {:.1} ms, at {} ms",
        ready(cell)?,
        ready(control.at_rtt(cell.rtt_ms)?)?,
        cell.rtt_ms
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_its_answer() {
        let summary = crate::summary::summarise([], 1).unwrap();
        let findings = Findings::new(summary, "tcp+tls12".parse().unwrap(), None, 1).unwrap();
        let misfits = study::claims_misfits(&claims(), &answers(&findings));
        assert_eq!(misfits, Vec::<String>::new());
        assert_eq!(markdown(&findings), None);
    }
}
