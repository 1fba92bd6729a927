//! Which rows, modes and round-trip times are shown, and in which order.

use crate::mode::{Mode, Security, Transport};
use crate::summary::{Row, Summary};

/// What a change of mode takes, from what most engineers can do on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// The server alone; first visits gain too.
    Server,
    /// The server, and a network that lets UDP through.
    Udp,
    /// The server, and clients that return with a session ticket.
    Ticket,
    /// Both ends: Fast Open, which browsers leave off.
    BothEnds,
    /// SSLmTCP, by a gateway at both ends.
    Gateway,
    /// Nobody should: Fast Open without cookies, what is slower by its nature, and our TCP alone.
    NoAdvice,
}

impl Need {
    /// What changing to `mode` takes.
    pub(super) fn of(mode: Mode) -> Need {
        let slow = matches!(
            mode.security,
            Security::Plain | Security::Tls12Rsa | Security::Tls13HelloRetry
        );
        match mode.transport {
            Transport::TcpFastOpenNoCookie | Transport::UserTcp => Need::NoAdvice,
            _ if slow => Need::NoAdvice,
            Transport::TcpFastOpen => Need::BothEnds,
            Transport::SslmTcp => Need::Gateway,
            _ if mode.resumes() => Need::Ticket,
            Transport::Quic => Need::Udp,
            Transport::Tcp => Need::Server,
        }
    }

    /// In a table's cell.
    pub(super) fn text(self, mode: Mode) -> &'static str {
        match (self, mode.transport) {
            (Need::Server, _) => "server",
            (Need::Udp, _) => "server, UDP",
            (Need::Ticket, Transport::Quic) => "server, UDP, ticket",
            (Need::Ticket, _) => "server, ticket",
            (Need::BothEnds, _) if mode.resumes() => "both ends, ticket",
            (Need::BothEnds, _) => "both ends",
            (Need::Gateway, _) if mode.resumes() => "gateways, ticket",
            (Need::Gateway, _) => "gateways",
            (Need::NoAdvice, _) => "no advice",
        }
    }
}

/// TCP first, then what replaces it, then Fast Open, which few can use, then our own TCP.
pub(super) fn order(mode: Mode) -> (u8, Security) {
    let transport = match mode.transport {
        Transport::Tcp => 0,
        Transport::Quic => 1,
        Transport::TcpFastOpen => 2,
        Transport::TcpFastOpenNoCookie => 3,
        Transport::UserTcp => 4,
        Transport::SslmTcp => 5,
    };
    (transport, mode.security)
}

/// The rows of the main sweep, one for each mode, in the order to show them: the sweep with the
/// most cells without loss, and in it the certificates, group and library of the first row of
/// `from`, or of the first row with the most cells if `from` was not measured.
pub(super) fn main_rows(summary: &Summary, from: Mode) -> Vec<&Row> {
    let measured = || {
        let rows = summary.rows.iter();
        rows.filter(|row| !row.cells.is_empty() && row.key.is_unhindered())
    };
    let cells = |sweep: &str| {
        measured().filter(|row| row.key.sweep == sweep).map(|row| row.cells.len()).sum::<usize>()
    };
    // The first of several with as many.
    let sweep = measured().rev().max_by_key(|row| cells(&row.key.sweep)).map(|row| &row.key.sweep);
    let Some(sweep) = sweep else { return Vec::new() };
    let own = || measured().filter(|row| row.key.sweep == *sweep);
    let base = own().rev().max_by_key(|row| (row.key.mode == from, row.cells.len()));
    let Some(base) = base else { return Vec::new() };
    let mut rows: Vec<&Row> = own().filter(|row| alike(row, base)).collect();
    rows.sort_by_key(|row| order(row.key.mode));
    rows
}

/// Whether two rows differ in nothing but the mode. QUIC brings a library of its own.
pub(super) fn alike(a: &Row, b: &Row) -> bool {
    let (a, b) = (&a.key, &b.key);
    let quic = a.mode.transport == Transport::Quic || b.mode.transport == Transport::Quic;
    let same_library = a.library == b.library || quic;
    a.key == b.key && a.group == b.group && a.chain == b.chain && same_library
}

/// The modes drawn as lines and curves: what is run today, the floor, and the changes that matter.
/// Others lie on the same lines, since a mode is its number of round trips.
pub(super) fn is_drawn(mode: Mode, from: Mode) -> bool {
    let drawn = match mode.transport {
        Transport::Tcp | Transport::TcpFastOpen => matches!(
            mode.security,
            Security::Plain | Security::Tls12 | Security::Tls13 | Security::Tls13EarlyData
        ),
        Transport::Quic => true,
        Transport::SslmTcp => matches!(mode.security, Security::Tls13 | Security::Tls13EarlyData),
        Transport::TcpFastOpenNoCookie | Transport::UserTcp => false,
    };
    drawn || mode == from
}

/// The RTT that speaks for most users: the one nearest to 50 ms, by ratio.
pub(super) fn typical_rtt(rtts: &[f64]) -> Option<f64> {
    let distance = |rtt: &f64| (rtt.max(1e-3) / 50.0).ln().abs();
    rtts.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// At most four of these ascending RTTs for a narrow table: the ends, and the typical one.
pub(super) fn few_rtts(rtts: &[f64]) -> Vec<f64> {
    const FEW: usize = 4;
    if rtts.len() <= FEW {
        return rtts.to_vec();
    }
    let last = rtts.len() - 1;
    let mut few: Vec<f64> = (0..FEW)
        .filter_map(|n| rtts.get((n * last + (FEW - 1) / 2) / (FEW - 1)).copied())
        .collect();
    if let Some(typical) = typical_rtt(rtts)
        && !few.contains(&typical)
        && let Some(inner) = few.get_mut(2)
    {
        *inner = typical;
        few.sort_by(f64::total_cmp);
    }
    few
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(mode: &str) -> Need {
        Need::of(mode.parse().unwrap())
    }

    #[test]
    fn what_most_can_do_comes_first_and_the_risky_never() {
        assert!(need("tcp+tls13") < need("quic"));
        assert!(need("quic") < need("tcp+tls13-0rtt"));
        assert!(need("quic-0rtt") < need("tfo+tls13"));
        assert_eq!(need("tfo+tls13-0rtt"), Need::BothEnds);
        for mode in Mode::all() {
            let risky = mode.transport == Transport::TcpFastOpenNoCookie;
            assert!(!risky || Need::of(mode) == Need::NoAdvice, "{mode}");
        }
        assert_eq!(need("tcp+tls13-hrr"), Need::NoAdvice);
        assert_eq!(need("tcp"), Need::NoAdvice);
        assert_eq!(need("sslmtcp-tls13"), Need::Gateway);
        // RSA key exchange keeps no secret of a key that is lost later; our TCP alone saves nothing.
        assert_eq!(need("sslmtcp-paper"), Need::NoAdvice);
        assert_eq!(need("usertcp+tls13"), Need::NoAdvice);
    }

    #[test]
    fn the_typical_rtt_is_the_nearest_to_50_ms_by_ratio() {
        assert_eq!(typical_rtt(&[0.4, 11.6, 85.5]), Some(85.5));
        assert_eq!(typical_rtt(&[0.4, 11.6, 20.0, 50.0, 85.5, 200.0]), Some(50.0));
        assert_eq!(typical_rtt(&[0.0]), Some(0.0));
        assert_eq!(typical_rtt(&[]), None);
    }

    #[test]
    fn a_narrow_table_keeps_the_ends_and_the_typical_rtt() {
        assert_eq!(few_rtts(&[1.0, 2.0]), [1.0, 2.0]);
        assert_eq!(few_rtts(&[0.4, 11.6, 20.0, 50.0, 85.5, 200.0]), [0.4, 20.0, 50.0, 200.0]);
        assert_eq!(few_rtts(&[1.0, 2.0, 3.0, 4.0, 50.0, 51.0, 300.0, 400.0])[2], 50.0);
    }

    #[test]
    fn every_drawn_mode_is_one_that_someone_can_choose() {
        let from = "tcp+tls12".parse().unwrap();
        let drawn = |name: &str| {
            Mode::all()
                .into_iter()
                .filter(|mode| mode.to_string().starts_with(name) && is_drawn(*mode, from))
                .count()
        };
        assert_eq!((drawn("tcp"), drawn("tfo"), drawn("quic")), (4, 4, 2));
        assert_eq!((drawn("usertcp"), drawn("sslmtcp")), (0, 2));
        let hrr = "tcp+tls13-hrr".parse().unwrap();
        assert!(is_drawn(hrr, hrr) && !is_drawn(hrr, from));
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names), "a, b and c");
        assert_eq!(listed(&names[..2]), "a and b");
        assert_eq!(listed(&names[..1]), "a");
    }
}
