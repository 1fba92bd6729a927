//! What the kernel says of itself, by iproute2 and iw: their monitors flush each line.

use handoff::{Source, What};
use lab::{Node, Program};

use crate::{Daemon, Error};

/// Links, addresses, routes and neighbours of a node, as they change.
///
/// # Errors
/// [`Error::Lab`].
pub fn routes(node: &Node) -> Result<Daemon, Error> {
    let program = Program::new("ip")
        .args(["-4", "-oneline", "monitor", "label", "link", "address", "route", "neigh"]);
    Daemon::start(node, "ip", &program, Source::Kernel, route)
}

/// What the radios of a node do.
///
/// # Errors
/// [`Error::Lab`].
pub fn radios(node: &Node) -> Result<Daemon, Error> {
    Daemon::start(node, "iw", &Program::new("iw").args(["event"]), Source::Radio, radio)
}

/// What the bridges of a node learn.
///
/// # Errors
/// [`Error::Lab`].
pub fn bridges(node: &Node) -> Result<Daemon, Error> {
    let program = Program::new("bridge").args(["monitor", "fdb"]);
    Daemon::start(node, "bridge", &program, Source::Bridge, learnt)
}

/// What a line of `ip -oneline monitor label` means.
fn route(line: &str) -> Option<What> {
    let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
    let gone = rest.starts_with("Deleted ");
    match label {
        "LINK" if !gone && rest.contains("LOWER_UP") && rest.contains(" state UP ") => {
            Some(What::LinkUp)
        }
        "LINK" if !gone && rest.contains("<NO-CARRIER,") => Some(What::LinkLost),
        "ADDR" if !gone && rest.contains(" inet ") => Some(What::AddressSet),
        "ROUTE" if !gone && rest.starts_with("default via ") => Some(What::RouteSet),
        "NEIGH" if !gone && rest.contains(" lladdr ") && rest.contains("REACHABLE") => {
            Some(What::GatewayKnown)
        }
        _ => None,
    }
}

/// What a line of `iw event` means.
fn radio(line: &str) -> Option<What> {
    let (_, said) = line.split_once(": ")?;
    let begins = |text: &str| said.starts_with(text);
    if begins("scan started") {
        Some(What::ScanStarted)
    } else if begins("scan finished") {
        Some(What::ScanDone)
    } else if begins("auth ") && said.contains("status: 0") {
        Some(What::Authenticated)
    } else if begins("assoc ") && said.contains("status: 0") {
        Some(What::Associated)
    } else if begins("disconnected") {
        Some(What::LinkLost)
    } else {
        None
    }
}

/// What a line of `bridge monitor fdb` means.
fn learnt(line: &str) -> Option<What> {
    let is_entry = !line.starts_with("Deleted") && line.contains(" dev ");
    (is_entry && !line.contains("permanent")).then_some(What::Bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_understood() {
        for (line, what) in [
            (
                "[LINK]3: wlan2: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN \
                 group default \\    link/ether 02:00:00:00:02:00 brd ff:ff:ff:ff:ff:ff",
                Some(What::LinkLost),
            ),
            (
                "[LINK]3: wlan2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state DORMANT group \
                 default",
                None,
            ),
            (
                "[LINK]3: wlan2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default",
                Some(What::LinkUp),
            ),
            (
                "[ADDR]3: wlan2    inet 10.50.0.117/24 brd 10.50.0.255 scope global noprefixroute wlan2",
                Some(What::AddressSet),
            ),
            ("[ADDR]Deleted 3: wlan2    inet 10.50.0.117/24 scope global wlan2", None),
            (
                "[ROUTE]default via 10.50.0.1 dev wlan2 proto dhcp src 10.50.0.117 metric 3003",
                Some(What::RouteSet),
            ),
            ("[ROUTE]Deleted default via 10.50.0.1 dev wlan2", None),
            (
                "[NEIGH]10.50.0.1 dev wlan2 lladdr 02:00:00:00:06:02 REACHABLE",
                Some(What::GatewayKnown),
            ),
            ("[NEIGH]10.50.0.1 dev wlan2 lladdr 02:00:00:00:06:02 STALE", None),
            ("", None),
        ] {
            assert_eq!(route(line), what, "{line}");
        }
    }

    #[test]
    fn radios_are_understood() {
        let (own, other) = ("02:00:00:00:02:00", "02:00:00:00:01:00");
        for (said, what) in [
            ("scan started".to_owned(), Some(What::ScanStarted)),
            ("scan finished: 2412 2437, \"\"".to_owned(), Some(What::ScanDone)),
            ("scan aborted: 2412, \"\"".to_owned(), None),
            (format!("auth {other} -> {own} status: 0: Successful"), Some(What::Authenticated)),
            (format!("assoc {other} -> {own} status: 0: Successful"), Some(What::Associated)),
            (format!("assoc {other} -> {own} status: 17: AP full"), None),
            ("disconnected (local request)".to_owned(), Some(What::LinkLost)),
            (format!("connected to {other}"), None),
        ] {
            assert_eq!(radio(&format!("wlan2 (phy #2): {said}")), what, "{said}");
        }
    }

    #[test]
    fn learnt_places_are_understood() {
        let mac = "02:00:00:00:02:00";
        assert_eq!(learnt(&format!("{mac} dev link7 master lan ")), Some(What::Bound));
        assert_eq!(learnt(&format!("Deleted {mac} dev link6 master lan stale")), None);
        assert_eq!(learnt(&format!("{mac} dev link7 master lan permanent")), None);
    }
}
