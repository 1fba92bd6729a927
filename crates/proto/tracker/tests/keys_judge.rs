//! An outside judge of decryption: tshark with the same key log.

use lab_test::{Need, skip};
use std::process::Command;
use std::time::Duration;

use crate::pair::{Pair, captured, ends, replay};
use pcap_file::pcap::{PcapPacket, PcapWriter};
use tracker::Connection;
use units::Time;

/// What tshark decrypts of a connection: the client's Finished, first application data of client and
/// server, and the number of tickets; `None` without tshark.
fn judge(pair: &Pair, lines: &str, name: &str) -> Option<([Option<Time>; 3], usize)> {
    let folder = std::env::temp_dir().join(format!("observe-judge-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (capture, keys) = (folder.join("c.pcap"), folder.join("keys"));
    let mut writer = PcapWriter::new(Vec::new()).unwrap();
    for (at, frame) in captured(&pair.wire, 1460, None).frames {
        let at = Duration::from_nanos(at.as_nanos());
        writer.write_packet(&PcapPacket::new(at, frame.len() as u32, &frame)).unwrap();
    }
    std::fs::write(&capture, writer.into_writer()).unwrap();
    std::fs::write(&keys, lines).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&capture);
    command.arg("-o").arg(format!("tls.keylog_file:{}", keys.display()));
    command.args(["-T", "fields", "-E", "separator=;", "-e", "frame.time_relative"]);
    for field in ["tcp.srcport", "tls.handshake.type", "tls.record.content_type"] {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut times, mut tickets) = ([None; 3], 0);
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        println!("{line}");
        let [time, port, messages, contents] = line.split(';').collect::<Vec<_>>()[..] else {
            panic!("four fields")
        };
        let at = Time::from_nanos((time.parse::<f64>().unwrap() * 1e9).round() as u64);
        let has = |list: &str, one: &str| list.split(',').any(|entry| entry == one);
        let server = port == "443";
        if has(messages, "20") && !server {
            times[0].get_or_insert(at);
        }
        if has(contents, "23") {
            times[if server { 2 } else { 1 }].get_or_insert(at);
        }
        tickets += messages.split(',').filter(|kind| *kind == "4").count();
    }
    Some((times, tickets))
}

fn reported(c: &Connection) -> ([Option<Time>; 3], usize) {
    let tls = c.tls.as_ref().unwrap();
    ([tls.client_finished, c.client_data, c.server_data], tls.tickets as usize)
}

#[test]
fn tshark_decrypts_the_same() {
    for (suite, client_certificate) in
        [(0x1301, false), (0x1302, false), (0x1303, false), (0x1301, true)]
    {
        let ends = ends(suite, client_certificate, true);
        for resumed in [false, true] {
            let mut pair = Pair::new(&ends);
            pair.run();
            pair.exchange(100, 3000);
            let lines = ends.lines.0.lock().unwrap().clone();
            let name = format!("{suite}-{client_certificate}-{resumed}");
            let Some(judged) = judge(&pair, &lines, &name) else {
                skip!(Need::Tshark, "tshark is not installed");
            };
            assert_eq!(reported(&replay(&pair.wire, 1460, Some(&lines))), judged, "{name}");
        }
    }
}
