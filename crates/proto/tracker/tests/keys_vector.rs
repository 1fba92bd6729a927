//! OpenSSL 3.0 with itself, captured with its key log: padding, client certificates, KeyUpdate, no
//! tickets, a suite that is not decrypted. Every time was read off with tshark and the same keys.

use crate::common::{Frame, frames};
use tracker::{Connection, KeyUse, Limits, LinkType, Tracker, Uncertain};
use units::Time;

const LOG: &str = include_str!("data/openssl-3.0-keys.txt");

fn observe(frames: &[Frame], log: Option<&str>) -> Vec<Connection> {
    let mut tracker = Tracker::new(Limits::default());
    if let Some(text) = log {
        tracker.add_keys(text.as_bytes());
        let log = tracker.key_log();
        assert_eq!((log.connections(), log.counters().malformed), (8, 0));
    }
    for (at, bytes, len) in frames {
        tracker.handle_packet(*at, LinkType::Ethernet, bytes, *len);
    }
    tracker.finish()
}

/// The client's Finished, its first data, the server's first data in microseconds; tickets; what the
/// keys were; what the rule without keys is uncertain of, and whether it is right.
struct Truth {
    mode: &'static str,
    times: [Option<u64>; 3],
    tickets: u32,
    keys: KeyUse,
    uncertain: &'static [Uncertain],
    agrees: bool,
}

const TRUTH: [Truth; 8] = [
    Truth {
        mode: "plain",
        times: [Some(12_236), Some(184_410), Some(184_505)],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[],
        agrees: true,
    },
    Truth {
        mode: "both pad to 512 bytes",
        times: [Some(1_603_163), Some(1_816_390), Some(1_816_463)],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[Uncertain::ServerFinished, Uncertain::TicketOrData],
        agrees: true,
    },
    Truth {
        mode: "the client pads",
        times: [Some(3_106_792), Some(3_436_400), Some(3_436_530)],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[],
        agrees: true,
    },
    Truth {
        mode: "the server pads to 256 bytes",
        times: [Some(4_856_849), Some(5_062_881), Some(5_062_975)],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[Uncertain::ServerFinished, Uncertain::TicketOrData],
        agrees: true,
    },
    Truth {
        mode: "a client certificate",
        times: [Some(6_486_161), Some(6_678_779), Some(6_679_017)],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[],
        agrees: true,
    },
    Truth {
        // The rule takes the KeyUpdate for data.
        mode: "a KeyUpdate and no data",
        times: [Some(8_062_170), None, None],
        tickets: 2,
        keys: KeyUse::Fit,
        uncertain: &[Uncertain::TicketOrData],
        agrees: false,
    },
    Truth {
        mode: "no tickets",
        times: [Some(10_172_093), Some(10_334_586), Some(10_334_695)],
        tickets: 0,
        keys: KeyUse::Fit,
        uncertain: &[],
        agrees: true,
    },
    Truth {
        mode: "AES-CCM",
        times: [Some(11_734_089), Some(11_956_770), Some(11_964_400)],
        tickets: 2,
        keys: KeyUse::NotSupported,
        uncertain: &[],
        agrees: true,
    },
];

#[test]
fn openssl_as_tshark_decrypts_it() {
    let frames = frames("openssl-3.0-keys.pcap");
    let (with, without) = (observe(&frames, Some(LOG)), observe(&frames, None));
    assert_eq!((with.len(), without.len()), (TRUTH.len(), TRUTH.len()));
    for (truth, (with, without)) in TRUTH.iter().zip(with.iter().zip(&without)) {
        let mode = truth.mode;
        let times = |c: &Connection| {
            [c.tls.as_ref().unwrap().client_finished, c.client_data, c.server_data]
        };
        let expected = truth.times.map(|at| at.map(Time::from_micros));
        println!("{mode}: {:?} {:?}", times(without), without.uncertain);
        let tls = with.tls.as_ref().unwrap();
        assert_eq!(
            (tls.keys, times(with), tls.tickets),
            (truth.keys, expected, truth.tickets),
            "{mode}"
        );
        assert_eq!(with.uncertain, [], "{mode}");
        let agrees = tls.decrypted.as_ref().is_none_or(|decrypted| decrypted.rule_agrees);
        assert_eq!((agrees, times(without) == expected), (truth.agrees, truth.agrees), "{mode}");
        assert_eq!(without.uncertain, truth.uncertain, "{mode}");
        let asked = (truth.keys == KeyUse::Fit).then_some(mode == "a client certificate");
        assert_eq!(tls.certificate_requested, asked, "{mode}");
    }
}

/// Whatever comes, keys or not: nothing panics, and what does not open leaves the rule.
#[test]
fn damaged_captures_with_keys_do_no_harm() {
    let original = frames("openssl-3.0-keys.pcap");
    for step in 1..400 {
        let mut damaged = original.clone();
        for (number, (_, bytes, _)) in damaged.iter_mut().enumerate() {
            // Behind the addresses, another place in each frame.
            let place = 47 + (number * 31 + step * 17) % bytes.len().saturating_sub(47).max(1);
            if number % 3 == step % 3
                && let Some(byte) = bytes.get_mut(place)
            {
                *byte ^= 1 << (step % 8);
            }
        }
        for c in observe(&damaged, Some(LOG)) {
            let tls = c.tls.as_ref();
            assert!(tls.is_none_or(|tls| tls.decrypted.is_some() == (tls.keys == KeyUse::Fit)));
        }
        damaged.truncate(step % original.len());
        observe(&damaged, Some(LOG));
    }
}
