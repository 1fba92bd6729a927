//! The presets against the windows that the SPDY paper read in code and specification: the send window
//! begins with 64 KB; Chromium announces 10 MB and updates when more than half is consumed; mod_spdy
//! updates at one eighth; Google's server has a receive window of 1 MB; off never binds.

use bytes::Bytes;
use spdy::{Config, FlowControl, Priority, Role, Version};

use crate::common::{Pair, Peer, Sent, get, id, ok};

struct Paper {
    preset: FlowControl,
    name: &'static str,
    /// What a stream may receive once SETTINGS is read.
    receive: u32,
    /// Consumed bytes that are not told yet, at most.
    untold: u32,
}

const PAPER: [Paper; 3] = [
    Paper { preset: FlowControl::CHROMIUM, name: "chromium", receive: 10 << 20, untold: 5 << 20 },
    Paper { preset: FlowControl::MOD_SPDY, name: "mod_spdy", receive: 64 << 10, untold: 8 << 10 },
    Paper { preset: FlowControl::GOOGLE, name: "google", receive: 1 << 20, untold: 512 << 10 },
];

fn config(flow: FlowControl) -> Config {
    Config { flow, send_queue: 32 << 20, ..Config::default() }
}

#[test]
fn every_preset_sends_64_kb_before_it_hears_of_more() {
    for (name, preset) in FlowControl::PRESETS {
        for version in Version::ALL {
            let mut client = Peer::of(Role::Client, version, &config(preset));
            let stream = client.session.open(&get("/"), Priority::HIGHEST, false).unwrap();
            client.session.write(stream, &mut Bytes::from(vec![0; 1 << 20]), true).unwrap();
            client.sent();
            let sent = client.session.counters().sent.data_bytes;
            assert_eq!(sent, 64 << 10, "{name} {version:?}");
        }
    }
}

#[test]
fn a_receiver_lets_as_much_come_as_the_paper_says() {
    for Paper { preset, name, receive, .. } in PAPER {
        for version in Version::ALL {
            let mut pair = Pair::new(version, &config(preset), &config(preset));
            let stream = pair.client.open(&get("/"), Priority::HIGHEST, true).unwrap();
            pair.reach_server(usize::MAX);
            pair.server.reply(stream, &ok(), false).unwrap();
            pair.server.write(stream, &mut Bytes::from(vec![0; 20 << 20]), true).unwrap();
            let mut out = vec![];
            pair.server.write_to(&mut out, usize::MAX);
            assert_eq!(
                pair.server.counters().sent.data_bytes,
                u64::from(receive),
                "{name} {version:?}"
            );
        }
    }
}

#[test]
fn an_update_comes_with_the_first_byte_above_the_paper_s_part() {
    for Paper { preset, name, receive, untold } in PAPER {
        let mut server = Peer::of(Role::Server, Version::V3, &config(preset));
        server.syn(1, &get("/"), false);
        let mut left = receive;
        while left > 0 {
            let part = left.min(60_000);
            server.data(1, &vec![0; part as usize], false);
            left -= part;
        }
        server.session.consume(id(1), untold as usize);
        assert_eq!(server.sent(), [], "{name}: at its part");
        server.session.consume(id(1), 1);
        assert_eq!(server.sent(), [Sent::Window(1, untold + 1)], "{name}: above it");
    }
}

#[test]
fn off_never_binds() {
    let off = config(FlowControl::OFF);
    for version in Version::ALL {
        let mut pair = Pair::new(version, &off, &off);
        let stream = pair.client.open(&get("/"), Priority::HIGHEST, true).unwrap();
        pair.reach_server(usize::MAX);
        pair.server.reply(stream, &ok(), false).unwrap();
        pair.server.write(stream, &mut Bytes::from(vec![0; 32 << 20]), true).unwrap();
        assert_eq!(pair.server.send_window(Some(stream)), Some(0x7fff_ffff));
        let mut out = vec![];
        pair.server.write_to(&mut out, usize::MAX);
        assert_eq!(pair.server.counters().sent.data_bytes, 32 << 20, "{version:?}");
        assert_eq!(pair.server.stalled().count(), 0);
    }
}
