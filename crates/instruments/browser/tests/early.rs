//! What leaves early: data in the SYN, and before TLS or QUIC have made their handshake.

use std::collections::BTreeSet;
use std::sync::Arc;

use browser::{Bed, Before, Carrier, Early, Seen, Setting};
use lab::{CaptureOptions, OwnedFrame};
use lab_test::TestResult;
use lab_test::net::segments::{self, Segment};
use lab_test::net::sleeping;
use linkmodel::Path;
use web::Protocol;

use crate::{RTT, page, setting, single, visits_with};

/// Connections of a load whose early data the server took, and those with data in the SYN.
fn early(seen: &Seen) -> (usize, usize) {
    let took = |c: &&web::ConnectionRecord| c.tcp.is_some_and(|tcp| tcp.syn_data_acknowledged);
    let accepted = |c: &&web::ConnectionRecord| {
        c.tls.as_ref().is_some_and(|tls| tls.early_data == tls::EarlyData::Accepted)
    };
    let connections = &seen.connections;
    (connections.iter().filter(accepted).count(), connections.iter().filter(took).count())
}

/// Fast Open and early data by every protocol: nothing of either on a first visit's first connection to a host,
/// both on every connection of a visit that kept tickets and cookies, and nothing again on another first visit.
pub fn what_is_early_needs_a_visit_before() -> TestResult {
    // With both, what a second visit pays until the first byte: TCP, TLS, request.
    for (fast_open, data, round_trips) in [(true, false, 2), (false, true, 2), (true, true, 1)] {
        for protocol in [Protocol::Http1, Protocol::Spdy31, Protocol::Http2, Protocol::Http3] {
            let is_quic = protocol == Protocol::Http3;
            if is_quic && !data {
                continue;
            }
            let what = format!("{protocol}, Fast Open {fast_open}, early data {data}");
            let carrier = Carrier::KernelEarly(Early { fast_open, data });
            let setting = Setting { carrier, ..setting(protocol) };
            let visits = vec![Before::Forget, Before::Close, Before::Forget];
            let seen = visits_with(&setting, visits)?;
            let [first, closed, again] = seen.as_slice() else { return Err("not three".into()) };
            for seen in &seen {
                assert!(seen.loaded.is_complete(), "{what}: {:?}", seen.loaded.objects);
                assert_eq!(seen.connections.len(), seen.loaded.connections_opened(), "{what}");
                // None was asked for twice.
                let requests = seen.loaded.requests() as usize;
                assert_eq!(seen.streams.len(), requests, "{what}");
            }
            for seen in [first, again] {
                let mut hosts: Vec<_> = seen.connections.iter().collect();
                hosts.sort_by_key(|c| c.accepted);
                let mut known = BTreeSet::new();
                for first in hosts.into_iter().filter(|c| known.insert(c.local)) {
                    let tcp = first.tcp.is_some_and(|tcp| tcp.syn_data_acknowledged);
                    assert!(!tcp && first.resumed == Some(false), "{what}: {first:?}");
                }
            }
            let all = closed.connections.len();
            let expected =
                (if data { all } else { 0 }, if fast_open && !is_quic { all } else { 0 });
            if protocol.is_multiplexed() {
                assert_eq!(early(closed), expected, "{what}: {:?}", closed.connections);
            } else {
                // A connection that comes too late to be of use may be closed in its handshake.
                let (data, syn) = early(closed);
                let hosts = page()?.hosts().len();
                let least = |expected: usize| if expected > 0 { hosts } else { 0 };
                assert!((least(expected.0)..=expected.0).contains(&data), "{what}: {data}");
                assert!((least(expected.1)..=expected.1).contains(&syn), "{what}: {syn}");
            }
            let byte = closed.loaded.first_byte().ok_or("no byte")?.duration();
            let round_trips = if is_quic { 1 } else { round_trips };
            assert!(byte >= RTT * round_trips, "{what}: {byte:?}");
        }
    }
    Ok(())
}

/// TLS records in a segment's data, by their type.
fn records(mut data: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = data {
        types.push(*kind);
        data = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or_default();
    }
    types
}

/// What the SYNs of a first visit and of one after it carry, as a capture at the server has them.
pub fn a_capture_shows_what_syns_carry() -> TestResult {
    const HANDSHAKE: u8 = 22;
    const DATA: u8 = 23;
    let page = single(3_000)?;
    for data in [false, true] {
        let carrier = Carrier::KernelEarly(Early { fast_open: true, data });
        let setting = Setting { carrier, ..setting(Protocol::Http2) };
        let mut bed = Bed::new(sleeping(14), 1, 1)?;
        let lane = bed.lanes().first_mut().ok_or("no lane")?;
        lane.serve(&page, &setting)?;
        lane.set_path(&Path::symmetric(RTT.into()))?;
        let (capture, frames) =
            lane.server().capture_channel(&CaptureOptions::default(), 10_000)?;
        let visits = vec![Before::Forget, Before::Close, Before::Forget];
        let seen = lane.visit(&page, &setting, visits, Arc::default())?.join()??;
        assert!(seen.iter().all(|seen| seen.loaded.is_complete()));
        let stats = capture.stop()?;
        assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
        let frames: Vec<OwnedFrame> = frames.into_iter().collect();
        let segments = frames.iter().filter_map(segments::segment);
        let syns: Vec<Segment> = segments.filter(|one| one.inbound() && one.is_syn()).collect();
        let [first, closed, again] = syns.as_slice() else {
            return Err(format!("not three: {syns:?}").into());
        };
        for first in [first, again] {
            // It asks for a cookie.
            assert_eq!((first.cookie.as_deref(), first.payload.len()), (Some(&[][..]), 0));
        }
        assert!(closed.cookie.as_ref().is_some_and(|cookie| cookie.len() >= 4), "{closed:?}");
        assert_ne!(first.source, again.source);
        assert_eq!(first.source, closed.source);
        let rides = records(&closed.payload);
        let expected = match data {
            false => rides == [HANDSHAKE],
            // Early data, after the message that old middle boxes want to see (RFC 8446 §D.4).
            true => rides.first() == Some(&HANDSHAKE) && rides.last() == Some(&DATA),
        };
        assert!(expected, "{rides:?}");
    }
    Ok(())
}

/// TLS 1.2 with RSA key exchange, over the kernel's TCP and ours.
pub fn rsa_key_exchange_loads_a_page() -> TestResult {
    for carrier in [Carrier::KernelRsa, Carrier::UserTcpRsa] {
        for protocol in [Protocol::Http1, Protocol::Spdy31, Protocol::Http2] {
            let what = format!("{protocol}, {carrier:?}");
            let setting = Setting { carrier, ..setting(protocol) };
            for seen in visits_with(&setting, vec![Before::Forget, Before::Close])? {
                assert!(seen.loaded.is_complete(), "{what}: {:?}", seen.loaded.objects);
                assert_eq!(early(&seen), (0, 0), "{what}");
                let versions: Vec<_> =
                    seen.connections.iter().filter_map(|c| c.tls.as_ref()?.version).collect();
                assert_eq!(versions.len(), seen.connections.len(), "{what}");
                assert!(versions.iter().all(|v| *v == tls::Version::Tls12), "{what}");
                let groups: Vec<_> =
                    seen.connections.iter().filter_map(|c| c.tls.as_ref()?.group).collect();
                assert!(groups.is_empty(), "{what}: {groups:?}");
            }
        }
    }
    Ok(())
}
