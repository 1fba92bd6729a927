//! Records of real handshakes at exact times, through digest and findings.

use tls::Version;
use tracker::{Class, Connection};
use units::Time;
use wire::tls::Version as WireVersion;

use super::*;
use crate::findings;
use crate::replay::{Pair, Replay, Setting};

/// Which flights are replayed, at which round trips in microseconds, a second apart.
type Part<'a> = (&'a [(bool, Vec<u8>)], Vec<u64>);

fn replay(parts: &[Part<'_>]) -> Vec<Connection> {
    let mut replay = Replay::new();
    let mut second = 1_000;
    for (flights, round_trips) in parts {
        for round_trip in round_trips {
            replay.add(flights, Time::from_millis(second * 1000), *round_trip);
            second += 1;
        }
    }
    replay.finish()
}

/// Two populations: about 25 and about 55 ms.
fn populations(count: u64) -> Vec<u64> {
    let spread = |n: u64| (n * 7919) % 4000;
    let one = |n: u64| if n % 5 < 3 { 23_000 + spread(n) } else { 53_000 + spread(n) };
    (0..count).map(one).collect()
}

fn digest(connections: &[Connection], options: &Options) -> Digest {
    let mut digest = Digest::new(options.clone()).unwrap();
    connections.iter().for_each(|connection| digest.take(connection));
    digest
}

fn full(version: Version) -> Vec<(bool, Vec<u8>)> {
    Pair::new(&Setting::of(version)).talk(None).0
}

#[test]
fn the_documents_curves_come_out() {
    let (tls12, tls13) = (full(Version::Tls12), full(Version::Tls13));
    let connections = replay(&[(&tls12, populations(200)), (&tls13, populations(300))]);
    assert_eq!(connections.len(), 500);
    let whole = digest(&connections, &Options::default());
    let found = findings(&whole);
    assert_eq!((found.handshakes, found.without_tls, found.doubtful_records), (500, 0, 0));
    let of = |kind: Kind| found.curves.iter().find(|curve| curve.kind == kind).unwrap();
    // Three of five are near: one round trip by TLS 1.3, two by TLS 1.2.
    let share = |kind, bin: usize| of(kind).to_data.percent[bin];
    assert!((share(Kind::TLS13, 2) - 60.0).abs() < 1e-9, "{:?}", of(Kind::TLS13));
    assert!((share(Kind::TLS13, 5) - 40.0).abs() < 1e-9);
    assert!((share(Kind::TLS12, 4) + share(Kind::TLS12, 5) - 60.0).abs() < 1e-9);
    assert!((share(Kind::TLS12, 10) + share(Kind::TLS12, 11) - 40.0).abs() < 1e-9);
    // Until the client's Finished both take one.
    let finished = of(Kind::TLS12).handshake.percent[2];
    assert!((finished - 60.0).abs() < 1e-9);
    let total: f64 = of(Kind::TLS12).to_data.percent.iter().sum();
    assert!((total - 100.0).abs() < 1e-6);

    let modes = found.round_trip_modes.as_ref().unwrap();
    assert_eq!(modes.modes.len(), 2, "{modes:?}");
    let rtts = whole.client_rtts();
    assert_eq!(rtts.connections, 500);
    let weights = rtts.distribution().unwrap();
    let near: f64 = weights.points().iter().filter(|(ms, _)| *ms < 40.0).map(|(_, w)| w).sum();
    assert!((near - 0.6).abs() < 1e-9, "{rtts:?}");

    let difference = found.difference.all.found.as_ref().unwrap();
    let saved = difference.saved_round_trips.unwrap();
    assert!((saved.value - 1.0).abs() < 1e-6, "{saved:?}");
    assert_eq!(found.difference.all.handshakes, (200, 300));
    for (mode, expected) in found.difference.by_mode.iter().zip([25.0, 55.0]) {
        let saved = mode.compared.found.as_ref().unwrap().saved_ms;
        assert!((saved.value - expected).abs() < 1.5, "{mode:?}");
    }
}

#[test]
fn classes_offers_and_changes_are_told_apart() {
    let mut early = Setting::of(Version::Tls13);
    early.early_data = true;
    let pair = Pair::new(&early);
    let (_, ticket) = pair.talk(None);
    let zero_rtt = pair.talk(ticket.as_ref()).0;
    let plain = Pair::new(&Setting::of(Version::Tls13));
    let (_, ticket) = plain.talk(None);
    let resumed = plain.talk(ticket.as_ref()).0;
    let (_, ticket) = plain.talk(None);
    let stranger = plain.with_new_server(&Setting::of(Version::Tls13));
    let in_vain = stranger.talk(ticket.as_ref());
    let mut retry = Setting::of(Version::Tls13);
    retry.retry = true;
    let retry = Pair::new(&retry).talk(None).0;
    let mut old_server = Setting::of(Version::Tls12);
    old_server.client_versions = vec![Version::Tls12, Version::Tls13];
    let old_server = Pair::new(&old_server).talk(None).0;
    let mut no_common = Setting::of(Version::Tls13);
    no_common.client_versions = vec![Version::Tls12];
    let no_common = Pair::new(&no_common).talk(None).0;

    let at = |n: usize| vec![20_000; n];
    let connections = replay(&[
        (&zero_rtt, at(1)),
        (&resumed, at(2)),
        (&in_vain.0, at(3)),
        (&retry, at(4)),
        (&old_server, at(5)),
        (&no_common, at(6)),
    ]);
    let found = findings(&digest(&connections, &Options::default()));
    let count = |kind: Kind, class: Class| {
        let row = found.classes.iter().find(|row| row.kind == kind && row.class == class);
        row.map_or(0, |row| row.count)
    };
    assert_eq!(count(Kind::TLS13, Class::ZeroRtt), 1);
    assert_eq!(count(Kind::TLS13, Class::Resumed), 2);
    assert_eq!(count(Kind::TLS13, Class::Full), 3);
    assert_eq!(count(Kind::TLS13, Class::HelloRetry), 4);
    assert_eq!(count(Kind::TLS12, Class::Full), 5);
    assert_eq!(count(Kind { quic: false, version: None }, Class::Failed), 6);

    let offers = found.offers;
    assert_eq!((offers.psk_offered, offers.psk_accepted), (6, 3), "{offers:?}");
    assert_eq!((offers.early_data_offered, offers.early_data_taken), (1, 1));
    assert_eq!(offers.hello_retry, 4);
    let version = |name: &str| {
        let counted = found.offered_versions.names.iter().find(|count| count.name == name);
        counted.map_or(0, |count| count.count)
    };
    assert_eq!((version("TLS 1.3"), version("TLS 1.2")), (15, 11));
    assert_eq!(found.failures.total, 6);
    assert!(found.failures.names[0].name.contains("protocol_version"), "{:?}", found.failures);
    assert_eq!(found.alerts.names[0].count, 6);

    let change = |what: &str| {
        let change = found.changes.iter().find(|change| change.what.starts_with(what));
        change.unwrap_or_else(|| panic!("{what}: {:#?}", found.changes))
    };
    let agree = change("Agree on TLS 1.3");
    assert_eq!((agree.handshakes, agree.by_the_server), (5, true));
    assert!((agree.saved_ms.unwrap() / 20.0 - 1.0).abs() < 0.02, "{agree:?}");
    assert!((agree.saved_over_all_ms.unwrap() - 20.0 * 5.0 / 21.0).abs() < 1e-6);
    assert_eq!(change("Honour tickets of TLS 1.3").handshakes, 3);
    assert_eq!(change("Offer early data").handshakes, 2);
    let group = change("Accept a group");
    assert_eq!(group.handshakes, 4);
    assert!(group.why.contains("x25519") && group.what.contains("secp256r1"), "{group:?}");
}

#[test]
fn digests_of_parts_together_are_the_digest_of_all() {
    let (tls12, tls13) = (full(Version::Tls12), full(Version::Tls13));
    let connections = replay(&[(&tls12, populations(60)), (&tls13, populations(60))]);
    let options = Options {
        kept: 20,
        buckets: 3,
        bucket: std::time::Duration::from_secs(1),
        ..Options::default()
    };
    let whole = digest(&connections, &options);
    let (odd, even): (Vec<_>, Vec<_>) =
        connections.into_iter().partition(|connection| connection.number % 2 == 1);
    let mut merged = digest(&even, &options);
    merged.merge(digest(&odd, &options)).unwrap();
    let json = |digest: &Digest| {
        let mut found = findings(digest);
        // Whether a network was seen before depends on the order.
        found.changes.retain(|change| !change.what.starts_with("Resume clients"));
        let sums = |change: &mut crate::Change| change.saved_over_all_ms = None;
        found.changes.iter_mut().for_each(sums);
        serde_json::to_value(found).unwrap()
    };
    assert_eq!(json(&whole), json(&merged));
    let stretches = findings(&whole).over_time;
    assert!(stretches.len() <= 3);
    assert_eq!(stretches.iter().map(|stretch| stretch.reported.count).sum::<u64>(), 120);
    let other = Digest::new(Options { bins: 7, ..options }).unwrap();
    assert!(merged.merge(other).is_err());
}

#[test]
fn strangers_names_do_not_grow_it() {
    let flights = full(Version::Tls13);
    let mut one = replay(&[(&flights, vec![20_000])]).remove(0);
    let options = Options { names: 10, ..Options::default() };
    let mut digest = Digest::new(options).unwrap();
    for n in 0..3000u16 {
        let tls = one.tls.as_mut().unwrap();
        tls.server_name = Some(format!("{}.example.org{}", n, "x".repeat(300)));
        tls.version = Some(WireVersion(n));
        tls.versions_offered = vec![WireVersion(n), WireVersion(n.wrapping_mul(31))];
        tls.key_shares = vec![wire::tls::Group(n)];
        tls.alpn_offered = vec![format!("p{n}")];
        one.client.set_ip(std::net::Ipv4Addr::from_bits(u32::from(n) << 8).into());
        digest.take(&one);
    }
    assert!(digest.cells.len() <= (KINDS + 1) * Class::ALL.len());
    let found = findings(&digest);
    assert_eq!(found.server_names.groups.len(), 10);
    assert_eq!(found.networks.groups.len(), 10);
    let seen: u64 = found.server_names.groups.iter().map(|group| group.reported.count).sum();
    assert_eq!((found.server_names.total, seen + found.server_names.others), (3000, 3000));
    assert!(found.server_names.groups.iter().all(|group| group.name.chars().count() <= 255));
    assert_eq!(found.handshakes, 3000);
    assert_eq!(digest.cells.values().map(|cell| cell.count).sum::<u64>(), 3000);
}

#[test]
fn options_that_make_no_sense_are_named() {
    for (options, field) in [
        (Options { bins: 0, ..Options::default() }, "bins"),
        (Options { bin: std::time::Duration::ZERO, ..Options::default() }, "bin"),
        (Options { prefix4: 33, ..Options::default() }, "prefix4"),
        (Options { prefix6: 129, ..Options::default() }, "prefix6"),
        (Options { names: 0, ..Options::default() }, "names"),
        (Options { buckets: 1, ..Options::default() }, "buckets"),
        (Options { kept: 0, ..Options::default() }, "kept"),
    ] {
        assert_eq!(Digest::new(options).unwrap_err().field, field);
    }
}

#[test]
fn a_doubt_leaves_out_only_what_it_touches() {
    use tracker::Uncertain;
    let flights = full(Version::Tls13);
    for (doubt, handshakes, to_data, doubtful) in [
        (Uncertain::TicketOrData, 1, 1, 0),
        (Uncertain::ServerSpeaksFirst, 1, 1, 0),
        (Uncertain::ServerFinished, 1, 1, 0),
        (Uncertain::ServerAlert, 1, 1, 0),
        (Uncertain::EndOfEarlyData, 1, 0, 1),
        (Uncertain::ClientFinished, 0, 0, 1),
        (Uncertain::UnknownSuite, 0, 0, 1),
    ] {
        let mut one = replay(&[(&flights, vec![20_000])]);
        one[0].uncertain = vec![doubt];
        let digest = digest(&one, &Options::default());
        let found = findings(&digest);
        let curve = found.curves.first();
        let counts = curve.map(|curve| (curve.handshake.count, curve.to_data.count));
        let expected = (handshakes > 0).then_some((handshakes, to_data));
        assert_eq!(counts, expected, "{}", doubt.name());
        assert_eq!((found.uncertain_records, found.doubtful_records), (1, doubtful));
        // TCP's round trip is known whatever is in doubt.
        assert_eq!(digest.client_rtts().connections, 1, "{}", doubt.name());
    }
}

#[test]
fn copies_and_clocks_are_said_with_their_remedy() {
    let flights = full(Version::Tls13);
    let mut all = replay(&[(&flights, vec![20_000, 21_000])]);
    assert_eq!(findings(&digest(&all, &Options::default())).twice, Twice::default());
    all[0].tcp.as_mut().unwrap().copies = 7;
    let offset = tracker::ClockOffset { at_least: 80_000, at_most: 120_000 };
    all[1].tcp.as_mut().unwrap().clock_offset = Some(offset);
    let mut digest = digest(&all, &Options::default());
    digest.count_translated();
    let text = findings(&digest).text(120);
    for part in [
        "Frames of 1 connection were captured more than once",
        "1 handshake captured on both sides of an address translation",
        "server frames are dated 0.080 to 0.120 ms too early",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, remedy) = digest.twice().clocks_text().unwrap();
    assert!(remedy.contains("editcap -t 0.000080"), "{remedy}");
}

#[test]
fn an_empty_digest_and_odd_records_make_a_report() {
    let empty = findings(&Digest::new(Options::default()).unwrap());
    assert!(empty.text(100).starts_with("No TLS handshake"));
    let _ = report::render(&empty.report().unwrap());
    let flights = full(Version::Tls13);
    let mut odd = replay(&[(&flights, vec![20_000, 0])]);
    odd[0].uncertain = vec![tracker::Uncertain::MidStream, tracker::Uncertain::QuicData];
    odd[0].tls.as_mut().unwrap().server_name = Some("<script>alert(1)</script>\u{1b}[2J".into());
    let mut digest = digest(&odd, &Options::default());
    digest.count_lost(3);
    let found = findings(&digest);
    assert_eq!((found.uncertain_records, found.doubtful_records), (1, 1));
    assert_eq!(found.uncertain.len(), 2);
    let text = found.text(100);
    assert!(text.contains("lost 3 frames") && !text.contains('\u{1b}'), "{text}");
    let page = report::render(&found.report().unwrap());
    assert!(!page.contains("<script>alert(1)"));
}

#[test]
fn the_text_answers_first_and_has_no_gaps() {
    let (tls12, tls13) = (full(Version::Tls12), full(Version::Tls13));
    let connections = replay(&[(&tls12, populations(100)), (&tls13, populations(100))]);
    let found = findings(&digest(&connections, &Options::default()));
    let text = found.text(110);
    assert!(text.starts_with("TLS 1.3 is faster than TLS 1.2 by "), "{text}");
    assert!(text.contains("1.00 round trips (95 % interval 1.00 to 1.00)"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    let page = report::render(&found.report().unwrap());
    for part in ["server.wiretax.test", "192.0.0.0/24", "GREE, 2018", "15.7", "Modes"] {
        assert!(page.contains(part), "{part}");
    }
}

/// GREE 2018's own traffic was draft 23.
#[test]
fn drafts_of_tls_1_3_are_compared_with_tls_1_2() {
    let (tls12, tls13) = (full(Version::Tls12), full(Version::Tls13));
    let mut connections = replay(&[(&tls12, populations(60)), (&tls13, populations(60))]);
    for tls in connections.iter_mut().filter_map(|connection| connection.tls.as_mut()) {
        if tls.version == Some(WireVersion::TLS13) {
            tls.version = Some(WireVersion(0x7f17));
        }
    }
    let found = findings(&digest(&connections, &Options::default()));
    assert_eq!(found.difference.all.handshakes, (60, 60));
    let saved = found.difference.all.found.unwrap().saved_round_trips.unwrap();
    assert!(saved.contains(1.0), "{saved:?}");
    // The table of classes still has the draft's own name.
    assert!(found.classes.iter().any(|row| row.kind.to_string() == "TLS 1.3 draft 23"));
}
