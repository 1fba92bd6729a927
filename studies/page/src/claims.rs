//! What loads of pages say of the SSLmTCP paper's Figure 10: an HTTPS request's DNS, connect, SSL, wait and receive,
//! with its handshake and with the same in sequence.

use study::{Answer, Claim};
use web::Protocol;

use crate::point::{Handshake, Visit};
use crate::sample::value;
use crate::summary::{Row, Summary};

const CLAIMS: &str = include_str!("../claims.csv");
/// The item in the file.
const FIGURE_10: &str = "Figure 10: DNS, connect, SSL, wait, receive";
/// Sums over a page's requests. HAR's connect has the time of TLS in it.
const SUMS: [&str; 5] =
    ["sum_dns_ms", "sum_connect_ms", "sum_ssl_ms", "sum_wait_ms", "sum_receive_ms"];

/// The claims as a fragment for Markdown; `None` of results without the paper's handshake.
pub(crate) fn markdown(summary: &Summary, provenance: &str) -> Option<String> {
    let answers = answers(summary);
    let measured = answers.iter().any(|(_, ours)| ours.is_some());
    measured.then(|| study::claims_markdown(provenance, &claims(), &answers))
}

/// A test reads our own file.
fn claims() -> Vec<Claim> {
    study::claims(CLAIMS).unwrap_or_default()
}

fn answers(summary: &Summary) -> Vec<Answer> {
    vec![(FIGURE_10.to_owned(), figure_10(summary))]
}

/// First visits by HTTP/1.1, as the paper's browser made them, of the page that loads fastest: there a handshake
/// weighs most.
fn figure_10(summary: &Summary) -> Option<String> {
    let groups = summary.groups.iter().filter(|group| group.visit == Visit::First);
    let pairs = groups.filter_map(|group| {
        let is_paper =
            |row: &&Row| (row.handshake, row.protocol) == (Handshake::Paper, Protocol::Http1);
        let embedded = group.rows.iter().find(is_paper)?;
        let control = group.sequential(embedded)?;
        Some((group, control, embedded, embedded.load_ms?.value))
    });
    let (group, control, embedded, load) = pairs.min_by(|a, b| a.3.total_cmp(&b.3))?;
    let (before, after) = (parts(control)?, parts(embedded)?);
    let names = ["DNS", "connect", "SSL", "wait", "receive"];
    let each = names.iter().zip(before.iter().zip(after)).map(|(name, (before, after))| {
        format!("{name} {} to {}", seconds(*before), seconds(after))
    });
    let each: Vec<String> = each.collect();
    Some(format!(
        "{}, {} to {}, sums over {:.0} requests: {}; page load time {} to {}",
        group.title(),
        control.label(false),
        embedded.label(false),
        embedded.median(value::REQUESTS)?,
        each.join(", "),
        seconds(control.load_ms?.value),
        seconds(load)
    ))
}

fn seconds(ms: f64) -> String {
    format!("{:.2} s", ms / 1e3)
}

/// Medians of the sums of DNS, connect, SSL, wait and receive, in milliseconds, connect without SSL.
fn parts(row: &Row) -> Option<[f64; 5]> {
    let [dns, connect, ssl, wait, receive] = SUMS.map(|name| row.median(name));
    let ssl = ssl?;
    Some([dns?, connect? - ssl, ssl, wait?, receive?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;

    #[test]
    fn every_claim_has_its_answer() {
        let none = answers(&Summary::default());
        assert_eq!(study::claims_misfits(&claims(), &none), Vec::<String>::new());
        assert_eq!(markdown(&Summary::default(), ""), None);
    }

    #[test]
    fn figure_10_is_of_the_papers_handshake_and_its_control() {
        let loads = [
            ("usertcp-tls12-rsa", 400.0, [50.0, 200.0, 150.0, 100.0, 10.0]),
            ("sslmtcp-paper", 350.0, [50.0, 150.0, 100.0, 100.0, 10.0]),
        ];
        let samples = loads.map(|(handshake, load_ms, sums)| {
            let mut sample = sample("http/1.1", "first", 0, load_ms);
            sample.point.insert("handshake".to_owned(), handshake.to_owned());
            sample.point.insert("tls".to_owned(), "1.2".to_owned());
            sample.values.insert(value::REQUESTS.to_owned(), 8.0);
            sample.values.extend(SUMS.map(str::to_owned).into_iter().zip(sums));
            sample
        });
        let expected = "google-play over 3g-0.9, first visit, http/1.1, TLS 1.2, usertcp-tls12-rsa to http/1.1, \
                        TLS 1.2, sslmtcp-paper, sums over 8 requests: DNS 0.05 s to 0.05 s, connect 0.05 s to \
                        0.05 s, SSL 0.15 s to 0.10 s, wait 0.10 s to 0.10 s, receive 0.01 s to 0.01 s; page load \
                        time 0.40 s to 0.35 s";
        assert_eq!(figure_10(&Summary::of(&samples)).as_deref(), Some(expected));
    }
}
