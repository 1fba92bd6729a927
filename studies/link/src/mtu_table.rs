//! The MTUs and TCP segment sizes to set, computed from the formats: nothing is measured.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, value_parser};
use fault::{Explain as _, Fault, Problem};
use seclink::path::{Carrier, Cipher, Encapsulation, Fit, IpVersion, MtuError, Wrapping};
use serde_json::{Value, json};
use study::{Computed, Options};

use crate::point::Choice;

/// The schema of the JSON.
const SCHEMA: u32 = 1;
/// The MTU of Ethernet.
const USUAL: u64 = 1500;
/// The least MTU that is taken: IPv4's datagrams have this room everywhere (RFC 791 §3.2).
const LEAST: u64 = 576;
/// The most: an IP packet's length.
const MOST: u64 = 65_535;
/// Options of a measurement that a table has no use for.
const MEASURED: [&str; 11] = [
    "backend", "network", "hops", "reach", "gateway", "frame", "ways", "load", "repeat", "trial",
    "between",
];
const HEADING: &str = "MTU table";

/// Adds the table's options.
pub(crate) fn options(command: Command) -> Command {
    let table = Arg::new("mtu-table").long("mtu-table").action(ArgAction::SetTrue).help(
        "Print the MTU and TCP segment size that each protocol leaves, computed; measure nothing",
    );
    let path_mtu = Arg::new("path-mtu")
        .long("path-mtu")
        .value_name("BYTES")
        .value_parser(value_parser!(u64).range(LEAST..=MOST))
        .requires("mtu-table")
        .help("Bytes that the path carries behind Ethernet's header, 576 to 65535 [default: 1500]");
    let cipher = Arg::new("cipher")
        .long("cipher")
        .value_name("CIPHERS")
        .value_delimiter(',')
        .requires("mtu-table")
        .help("Ciphers of the table, as aes-gcm-256 [default: all]");
    let options = [table, path_mtu, cipher].map(|option| option.help_heading(HEADING));
    command.args(options)
}

/// A row of the table.
struct Row {
    wrapping: Wrapping,
    fit: Fit,
}

/// The table that the options ask for; `None` if they ask for none.
///
/// # Errors
/// An option is wrong, or nothing is left.
pub(crate) fn computed(options: &Options<'_>) -> Result<Option<Computed>, Problem> {
    if !options.flag("mtu-table") {
        return Ok(None);
    }
    if let Some(name) = MEASURED.iter().find(|name| options.given(name)) {
        let what = format!("--mtu-table measures nothing: --{name} changes nothing");
        return Err(Problem::new(Fault::Caller, what).with_remedy("leave it out"));
    }
    let path_mtu = options.get::<u64>("path-mtu").unwrap_or(USUAL);
    let path_mtu = usize::try_from(path_mtu).unwrap_or(usize::MAX);
    let (rows, left_out) = rows(options, path_mtu)?;
    if rows.is_empty() {
        let why = left_out.first().map_or("no protocol has this cipher", String::as_str);
        return Err(Problem::new(Fault::Caller, format!("the MTU table is empty: {why}")));
    }
    let asks_for_cipher = options.given("cipher") || has_cipher(options);
    let text = text(&rows, &left_out, path_mtu, asks_for_cipher);
    Ok(Some(Computed { text, json: json(&rows, &left_out, path_mtu) }))
}

fn has_cipher(options: &Options<'_>) -> bool {
    options.given("protocol")
        && options.all::<String>("protocol").iter().any(|word| word.contains(':'))
}

/// Words of an option that the user gave, read; else the default.
fn given<T: Copy + std::str::FromStr<Err = units::UnknownName>>(
    options: &Options<'_>,
    name: &'static str,
    default: &[T],
) -> Result<Vec<T>, Problem> {
    if !options.given(name) {
        return Ok(default.to_vec());
    }
    let words = options.all::<String>(name);
    words
        .iter()
        .map(|word| word.parse().map_err(|error: units::UnknownName| error.into()))
        .collect()
}

/// The protocols with their ciphers, as `esp:aes-cbc-128-sha1`; without one, each that they have.
fn protocols(options: &Options<'_>) -> Result<Vec<(Encapsulation, Cipher)>, Problem> {
    let ciphers = given(options, "cipher", Cipher::ALL)?;
    let each = |encapsulation: Encapsulation| {
        // A cipher that is asked for excludes no protocol without ciphers.
        let own = ciphers.iter().copied().filter(move |cipher| encapsulation.can(*cipher));
        let plain = encapsulation.can(Cipher::Null).then_some(Cipher::Null);
        let own: Vec<Cipher> =
            plain.into_iter().chain(own.filter(|one| *one != Cipher::Null)).collect();
        own.into_iter().map(move |cipher| (encapsulation, cipher))
    };
    if !options.given("protocol") {
        return Ok(Encapsulation::ALL.iter().flat_map(|one| each(*one)).collect());
    }
    let mut all = Vec::new();
    for word in options.all::<String>("protocol") {
        let (name, cipher) = match word.split_once(':') {
            Some((name, cipher)) => (name, Some(cipher)),
            None => (word.as_str(), None),
        };
        let encapsulation: Encapsulation = name.parse().map_err(Problem::from)?;
        match cipher {
            None => all.extend(each(encapsulation)),
            Some(cipher) => {
                let cipher: Cipher = cipher.parse().map_err(Problem::from)?;
                if !encapsulation.can(cipher) {
                    return Err(MtuError::Cipher(encapsulation, cipher).into());
                }
                all.push((encapsulation, cipher));
            }
        }
    }
    Ok(all)
}

/// The rows, and what was left out and why.
fn rows(options: &Options<'_>, path_mtu: usize) -> Result<(Vec<Row>, Vec<String>), Problem> {
    let versions = given(options, "outer", IpVersion::ALL)?;
    let in_pppoe = given(options, "pppoe", &[Choice::No])?;
    let behind_nat = given(options, "nat-t", &[Choice::No])?;
    let (mut rows, mut left_out) = (Vec::<Row>::new(), Vec::new());
    for (encapsulation, cipher) in protocols(options)? {
        for pppoe in &in_pppoe {
            for nat in &behind_nat {
                for ip in &versions {
                    let carrier = Carrier {
                        ip: if encapsulation.has_outer_ip() { *ip } else { IpVersion::V4 },
                        pppoe: *pppoe == Choice::Yes,
                        nat_traversal: *nat == Choice::Yes && encapsulation.has_esp(),
                    };
                    let fitted = Wrapping::new(encapsulation, cipher, carrier)
                        .and_then(|wrapping| Ok(Row { wrapping, fit: wrapping.fit(path_mtu)? }));
                    match fitted {
                        Ok(row) if rows.iter().any(|other| other.wrapping == row.wrapping) => {}
                        Ok(row) => rows.push(row),
                        Err(error @ MtuError::NotInPppoe(_)) => {
                            let why = error.to_string();
                            if !left_out.contains(&why) {
                                left_out.push(why);
                            }
                        }
                        Err(error) => {
                            let remedy = error.remedy();
                            let problem = Problem::new(error.fault(), error.to_string());
                            return Err(match remedy {
                                Some(remedy) => problem.with_remedy(remedy),
                                None => problem,
                            });
                        }
                    }
                }
            }
        }
    }
    Ok((rows, left_out))
}

/// The network under a row's tunnel: `ipv6, pppoe`.
fn carried_by(wrapping: &Wrapping) -> String {
    let carrier = wrapping.carrier();
    let version = wrapping.encapsulation().has_outer_ip().then(|| carrier.ip.name());
    let parts =
        [version, carrier.nat_traversal.then_some("nat-t"), carrier.pppoe.then_some("pppoe")];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
}

/// Whether a row is the same as one before it but for the cipher.
fn repeats(rows: &[Row], at: usize) -> bool {
    let Some((row, before)) = rows.get(at).zip(rows.get(..at)) else { return false };
    before.iter().any(|other| {
        other.wrapping.encapsulation() == row.wrapping.encapsulation()
            && other.wrapping.carrier() == row.wrapping.carrier()
            && other.fit == row.fit
    })
}

/// A row's name: with its cipher where others of the protocol have other sizes.
fn named(rows: &[Row], row: &Row, names_ciphers: bool) -> String {
    let encapsulation = row.wrapping.encapsulation();
    let others = rows.iter().any(|other| {
        other.wrapping.encapsulation() == encapsulation
            && other.wrapping.carrier() == row.wrapping.carrier()
            && other.fit != row.fit
    });
    let is_unusual = row.wrapping.cipher() == Cipher::AesCbc128Sha1;
    if (names_ciphers || (others && is_unusual)) && row.wrapping.cipher() != Cipher::Null {
        return format!("{encapsulation}:{}", row.wrapping.cipher());
    }
    encapsulation.to_string()
}

fn text(rows: &[Row], left_out: &[String], path_mtu: usize, names_ciphers: bool) -> String {
    let mut text = format!(
        "Longest IP packet inside and TCP's segment size (MSS); path MTU {path_mtu} bytes\n\
         {:<30} {:<16}{:>6}{:>7}{:>7}{:>6}{:>7}\n\
         {:<30} {:<16}{:>6}{:>7}{:>7}{:>6}{:>7}\n",
        "protocol",
        "outer",
        "MTU",
        "MSS v4",
        "MSS v6",
        "adds",
        "for",
        "",
        "",
        "",
        "",
        "",
        "",
        "1500",
    );
    let segment =
        |segment: Option<usize>| segment.map_or("-".to_owned(), |bytes| bytes.to_string());
    let shown: Vec<&Row> = rows
        .iter()
        .enumerate()
        .filter(|(at, _)| names_ciphers || !repeats(rows, *at))
        .map(|(_, row)| row)
        .collect();
    for row in &shown {
        let Fit { mtu, overhead, mss_ipv4, mss_ipv6, path_mtu_for_1500 } = row.fit;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<30} {:<16}{mtu:>6}{:>7}{:>7}{overhead:>6}{path_mtu_for_1500:>7}",
            named(rows, row, names_ciphers),
            carried_by(&row.wrapping),
            segment(mss_ipv4),
            segment(mss_ipv6),
        );
    }
    text += "\nadds: bytes of headers, trailers and unusable padding.\n\
             for 1500: the path MTU that lets hosts keep 1500.\n\
             MSS -: IPv6 needs an MTU of 1280, transport mode has one IP version.\n";
    if shown.len() < rows.len() {
        text += "AES-GCM of any key, XPN and ChaCha20-Poly1305 have the same sizes.\n";
    }
    for why in left_out {
        let _ = writeln!(text, "Left out: {why}.");
    }
    text += "\nSet the interface's MTU, and clamp TCP where packets are forwarded into it:\n";
    let mut said = Vec::new();
    for row in &shown {
        let encapsulation = row.wrapping.encapsulation();
        if !said.contains(&encapsulation) {
            said.push(encapsulation);
            let command = commands(row).into_iter().next().unwrap_or_default();
            let _ = writeln!(text, "  {:<16}{command}", encapsulation.name());
        }
    }
    if let Some(row) = shown.iter().find(|row| row.wrapping.encapsulation() != Encapsulation::Plain)
    {
        let interface = interface(row.wrapping.encapsulation());
        for line in clamps(row.fit, interface) {
            let _ = writeln!(text, "  {line}");
        }
        text += "The nft rules are those of the first tunnel; put in the MSS of yours.\n";
    }
    text
}

/// An interface's name in examples.
const fn interface(encapsulation: Encapsulation) -> &'static str {
    match encapsulation {
        Encapsulation::Plain => "ppp0",
        Encapsulation::MacSec | Encapsulation::MacSecVxlan => "macsec0",
        Encapsulation::Esp => "ipsec0",
        Encapsulation::EspTransport | Encapsulation::Pseudowire => "eth0",
        Encapsulation::WireGuard => "wg0",
        Encapsulation::Vxlan => "vxlan0",
        Encapsulation::L2tp | Encapsulation::L2tpEsp => "l2tpeth0",
    }
}

/// The commands that set a row's MTU and clamp TCP.
fn commands(row: &Row) -> Vec<String> {
    let (mtu, encapsulation) = (row.fit.mtu, row.wrapping.encapsulation());
    let device = match encapsulation {
        Encapsulation::Plain if !row.wrapping.carrier().pppoe => "eth0",
        _ => interface(encapsulation),
    };
    let first = match encapsulation {
        // There is no interface of its own: packets to the peer are shorter by their route.
        Encapsulation::EspTransport => {
            let (family, peer) = match row.wrapping.carrier().ip {
                IpVersion::V4 => ("", "192.0.2.2"),
                IpVersion::V6 => ("-6 ", "2001:db8::2"),
            };
            format!("ip {family}route add {peer} dev {device} mtu {mtu}")
        }
        Encapsulation::Pseudowire => {
            format!("ip link set dev {device} mtu {mtu}   # at the customer's edge")
        }
        _ => format!("ip link set dev {device} mtu {mtu}"),
    };
    let clamps = clamps(row.fit, device);
    std::iter::once(first).chain(clamps).collect()
}

/// Rules of nftables that clamp the MSS of connections through an interface.
fn clamps(fit: Fit, device: &str) -> Vec<String> {
    let rule = |version: &str, segment: Option<usize>| {
        segment.map(|bytes| {
            format!(
                "nft add rule inet filter forward oifname {device} meta nfproto {version} \\\n      \
                 tcp flags syn tcp option maxseg size set {bytes}"
            )
        })
    };
    [rule("ipv4", fit.mss_ipv4), rule("ipv6", fit.mss_ipv6)].into_iter().flatten().collect()
}

fn json(rows: &[Row], left_out: &[String], path_mtu: usize) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (wrapping, carrier) = (&row.wrapping, row.wrapping.carrier());
            let layers: Vec<&str> = wrapping.layers().iter().map(|layer| layer.name()).collect();
            let commands: Vec<String> =
                commands(row).iter().map(|line| line.replace(" \\\n      ", " ")).collect();
            json!({
                "protocol": wrapping.encapsulation().name(),
                "cipher": (wrapping.cipher() != Cipher::Null).then(|| wrapping.cipher().name()),
                "outer": wrapping.encapsulation().has_outer_ip().then(|| carrier.ip.name()),
                "pppoe": carrier.pppoe,
                "nat_traversal": carrier.nat_traversal,
                "mtu": row.fit.mtu,
                "mss_ipv4": row.fit.mss_ipv4,
                "mss_ipv6": row.fit.mss_ipv6,
                "overhead": row.fit.overhead,
                "path_mtu_for_1500": row.fit.path_mtu_for_1500,
                "layers": layers,
                "commands": commands,
            })
        })
        .collect();
    json!({ "schema": SCHEMA, "path_mtu": path_mtu, "rows": rows, "left_out": left_out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::Study as _;

    fn asked(line: &[&str]) -> Result<Option<Computed>, Problem> {
        let command = crate::LinkStudy.options(Command::new("link"));
        let matches = command.try_get_matches_from([&["link"], line].concat()).unwrap();
        computed(&Options::new(&matches))
    }

    fn mtus(line: &[&str]) -> Vec<(String, u64)> {
        let computed = asked(&[&["--mtu-table"], line].concat()).unwrap().unwrap();
        let rows = computed.json["rows"].as_array().unwrap().clone();
        let row = |row: &Value| {
            (row["protocol"].as_str().unwrap().to_owned(), row["mtu"].as_u64().unwrap())
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_numbers_that_people_look_for_are_there() {
        let one = |line: &[&str]| mtus(line)[0].1;
        assert_eq!(one(&["--protocol", "wireguard", "--outer", "ipv6"]), 1420);
        assert_eq!(one(&["--protocol", "wireguard", "--outer", "ipv4"]), 1440);
        assert_eq!(one(&["--protocol", "wireguard", "--outer", "ipv6", "--pppoe"]), 1412);
        assert_eq!(one(&["--protocol", "wireguard", "--outer", "ipv4", "--pppoe"]), 1432);
        assert_eq!(one(&["--protocol", "vxlan", "--outer", "ipv4"]), 1450);
        assert_eq!(one(&["--protocol", "esp:aes-gcm-128", "--outer", "ipv4", "--nat-t"]), 1438);
        assert_eq!(one(&["--protocol", "plain", "--pppoe"]), 1492);
        assert_eq!(one(&["--protocol", "plain", "--pppoe", "--path-mtu", "1508"]), 1500);
        assert_eq!(one(&["--protocol", "vxlan", "--outer", "ipv4", "--path-mtu", "9000"]), 8950);
    }

    #[test]
    fn every_protocol_has_a_row_for_each_cipher_and_version() {
        let all = mtus(&[]);
        for encapsulation in Encapsulation::ALL {
            let ciphers = Cipher::ALL.iter().filter(|cipher| encapsulation.can(**cipher)).count();
            let versions = if encapsulation.has_outer_ip() { 2 } else { 1 };
            let own = all.iter().filter(|(name, _)| name == encapsulation.name()).count();
            assert_eq!(own, ciphers * versions, "{encapsulation}");
        }
        assert_eq!(mtus(&["--protocol", "esp", "--cipher", "aes-cbc-128-sha1"]).len(), 2);
    }

    #[test]
    fn the_text_fits_a_terminal_and_says_what_to_set() {
        for line in [
            &[][..],
            &["--pppoe"],
            &["--pppoe", "yes", "--nat-t", "no,yes"],
            &["--path-mtu", "9000"],
        ] {
            let text = asked(&[&["--mtu-table"], line].concat()).unwrap().unwrap().text;
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{widest:?}: {text}");
            assert!(text.contains("ip link set dev wg0 mtu"), "{text}");
            assert!(text.contains("tcp option maxseg size set"), "{text}");
        }
        let text = asked(&["--mtu-table", "--pppoe"]).unwrap().unwrap().text;
        assert!(text.contains("Left out: macsec does not fit PPPoE"), "{text}");
    }

    #[test]
    fn what_cannot_be_is_the_callers_fault() {
        for line in [
            &["--mtu-table", "--protocol", "openvpn"][..],
            &["--mtu-table", "--protocol", "wireguard:aes-gcm-128"],
            &["--mtu-table", "--cipher", "rot13"],
            &["--mtu-table", "--outer", "ipv5"],
            &["--mtu-table", "--protocol", "macsec", "--pppoe"],
            &["--mtu-table", "--load", "1000pps"],
        ] {
            let problem = asked(line).map(|_| ()).unwrap_err();
            assert_eq!(problem.fault(), Fault::Caller, "{line:?}");
        }
        assert!(asked(&["--protocol", "esp"]).unwrap().is_none());
    }
}
