//! What loads of pages say of two papers' claims: of the SSLmTCP paper's Figure 10, an HTTPS request's DNS, connect,
//! SSL, wait and receive, with its handshake and with the same in sequence; and of the SPDY paper.

use study::{Answer, Claim};
use web::Protocol;

use crate::cells;
use crate::direction;
use crate::point::{Handshake, Visit};
use crate::row::Row;
use crate::sample::value;
use crate::summary::Summary;

const CLAIMS: &str = include_str!("../claims.csv");
const SPDY_CLAIMS: &str = include_str!("../spdy-claims.csv");
/// The item of SPDY's that is no page load time.
const HEADERS: &str = "Header compression";
/// The claims of the SPDY paper by the results that have them, each a fragment: several folders stand beside each other.
const SPDY_PARTS: [(&str, &[&str]); 4] = [
    ("spdy-claims", &["Tables 2 to 4", "Tables 6 and 7", HEADERS, "Figures 3", "Priorities"]),
    ("spdy-cablelabs-claims", &["CableLabs"]),
    ("spdy-windows-claims", &["Tables 9 and 10"]),
    ("spdy-bus-claims", &["Figure 2"]),
];
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

/// The SPDY paper's claims as fragments for Markdown, by name: those of which these results say something.
pub(crate) fn spdy_markdown(summary: &Summary, provenance: &str) -> Vec<(&'static str, String)> {
    let (claims, answers) = (spdy_claims(), spdy_answers(summary));
    let any_statement = answers.iter().any(|(item, ours)| item != HEADERS && ours.is_some());
    let parts = SPDY_PARTS.iter().filter_map(|(name, items)| {
        let is_of = |item: &str| items.iter().any(|start| item.starts_with(start));
        let own: Vec<Claim> = claims.iter().filter(|one| is_of(&one.item)).cloned().collect();
        // Any loads by both show how long heads are: that alone makes no fragment beside what these results are of.
        let answered = |item: &str| item != HEADERS || !any_statement;
        let measured =
            answers.iter().any(|(item, ours)| is_of(item) && ours.is_some() && answered(item));
        measured.then(|| (*name, study::claims_markdown(provenance, &own, &answers)))
    });
    parts.collect()
}

/// A test reads our own file.
pub(crate) fn spdy_claims() -> Vec<Claim> {
    study::claims(SPDY_CLAIMS).unwrap_or_default()
}

fn spdy_answers(summary: &Summary) -> Vec<Answer> {
    let found = direction::statements(summary);
    let of = |item: &&str| {
        let statement = found.iter().find(|statement| statement.item == *item);
        ((*item).to_owned(), statement.map(direction::Statement::answer))
    };
    let mut answers: Vec<Answer> = direction::ITEMS.iter().map(of).collect();
    answers.push((HEADERS.to_owned(), headers(summary)));
    answers
}

/// Fewer cells say little of heads.
const FEWEST: usize = 3;

/// Bytes above TLS for a request of a first visit, SPDY's less than HTTP/1.1's.
fn headers(summary: &Summary) -> Option<String> {
    let cells = cells::cells(summary);
    let firsts = cells.iter().filter(|cell| cell.group.visit == Visit::First);
    let a_request = crate::costs::a_request;
    let pairs = firsts.filter_map(|cell| Some((a_request(cell.spdy)?, a_request(cell.http1)?)));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let saved = cells::median(pairs.iter().map(|(spdy, http1)| (1.0 - spdy / http1) * 100.0))?;
    let spdy = cells::median(pairs.iter().map(|(spdy, _)| *spdy))?;
    let http1 = cells::median(pairs.iter().map(|(_, http1)| *http1))?;
    (pairs.len() >= FEWEST).then(|| {
        format!(
            "a request of a first visit takes {spdy:.0} bytes above TLS by SPDY and {http1:.0} by HTTP/1.1, \
             {saved:.0} % less (medians of {} cells)",
            pairs.len()
        )
    })
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
        let none = spdy_answers(&Summary::default());
        assert_eq!(study::claims_misfits(&spdy_claims(), &none), Vec::<String>::new());
        assert_eq!(spdy_markdown(&Summary::default(), ""), []);
        // Each is in one fragment.
        for claim in spdy_claims() {
            let parts = SPDY_PARTS.iter().flat_map(|(_, items)| items.iter());
            assert_eq!(
                parts.filter(|start| claim.item.starts_with(**start)).count(),
                1,
                "{}",
                claim.item
            );
        }
    }

    #[test]
    fn heads_are_compared_over_several_cells() {
        let links = ["3g-0.9", "3g-1.37", "wlan-17"];
        let samples = links.iter().flat_map(|link| {
            [("http/1.1", 4000.0), ("spdy/3.1", 1000.0)].map(|(protocol, bytes)| {
                let mut sample = sample(protocol, "first", 0, 100.0);
                sample.point.insert("link".to_owned(), (*link).to_owned());
                sample.values.insert(value::REQUESTS.to_owned(), 10.0);
                sample.values.insert(value::REQUEST_BYTES.to_owned(), bytes);
                sample
            })
        });
        let samples: Vec<_> = samples.collect();
        let said = headers(&Summary::of(&samples)).unwrap();
        assert!(
            said.contains("100 bytes above TLS by SPDY and 400 by HTTP/1.1, 75 % less"),
            "{said}"
        );
        assert_eq!(headers(&Summary::of(&samples[..2])), None);
        let fragments = spdy_markdown(&Summary::of(&samples), "Here");
        assert!(fragments.len() == 1 && fragments[0].1.contains("75 % less"), "{fragments:?}");
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
