//! Frames of our planes, as tshark decodes them and, with keys, decrypts them.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use l2vpn::{Direction, Key, Side, ends, keys};
use lab_test::{Need, skip};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use seclink::macsec::{Confidentiality, Suite};
use seclink::mka::{Cak, Participant, Randomness, Settings};
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::{self, HEADROOM, Plan, TAILROOM, Way};
use seclink::{Secret, Slot};
use units::Time;
use wire::ipv4;
use wire::macsec::Sci;

const SEED: u64 = 5;
/// The paper's frame.
const LEN: usize = 1000;

/// The tester's frame: tagged where the path's are, a UDP packet inside.
fn frame(topology: &Topology) -> Vec<u8> {
    let tag = [&[0x81, 0][..], &ends::VLAN.to_be_bytes()].concat();
    let tag = if topology.tagged { &tag[..] } else { &[] };
    let to = ends::next_hop(topology, Side::Left);
    let head = [&to.0[..], &ends::tester_mac(topology, Side::Left).0, tag, &[8, 0]].concat();
    let payload_len = LEN - head.len() - ipv4::HEADER_LEN;
    let header = ipv4::Repr {
        source: ends::tester_ip(Side::Left),
        destination: ends::tester_ip(Side::Right),
        protocol: wire::udp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len,
    };
    let mut packet = vec![0; ipv4::HEADER_LEN];
    packet.resize(ipv4::HEADER_LEN + payload_len, 7);
    header.emit(&mut packet).unwrap();
    let udp = [7000u16, 7001, payload_len as u16, 0].map(u16::to_be_bytes).concat();
    packet[ipv4::HEADER_LEN..ipv4::HEADER_LEN + 8].copy_from_slice(&udp);
    [head, packet].concat()
}

/// The frame on each of a path's links, on its way to the right.
fn on_links(topology: &Topology) -> Vec<Vec<u8>> {
    let key = |id: plane::KeyId| {
        let way = if id.way == Way::Forward { Direction::Forward } else { Direction::Backward };
        keys(SEED, topology.protection, id.link, way, id.len).into_secret()
    };
    let mut nodes = plane::nodes(topology, &Plan::numbered(topology), key).unwrap();
    let mut passed = vec![frame(topology)];
    for node in nodes.iter_mut().take(topology.hops.into()) {
        let last = &passed[passed.len() - 1];
        let (before, behind) = (usize::from(HEADROOM), usize::from(TAILROOM));
        let mut buffer = [&vec![0; before][..], last, &vec![0; behind]].concat();
        let mut slot = Slot::new(&mut buffer, before..before + last.len()).unwrap();
        node.forward.handle(Time::ZERO, &mut slot).unwrap();
        passed.push(slot.frame().to_vec());
    }
    passed.remove(0);
    passed
}

fn path(protection: Protection, cipher: Cipher) -> Topology {
    Topology { protection, cipher, ..Topology::default() }
}

fn write(file: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapNgWriter::new(File::create(file).unwrap()).unwrap();
    let interface =
        InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options: Vec::new() };
    writer.write_pcapng_block(interface).unwrap();
    for (number, frame) in (0..).zip(frames) {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_secs(number),
            original_len: frame.len() as u32,
            data: frame.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
}

/// What tshark says of frames: a row of these fields each. `associations`: lines of its table of ESP's.
fn tshark(
    frames: &[Vec<u8>],
    options: &[&str],
    associations: &str,
    fields: &[&str],
) -> Option<Vec<Vec<String>>> {
    let program = lab_test::program("tshark")?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.pcapng");
    write(&file, frames);
    // Its own settings, whatever the user's are; keys by a file.
    let home = folder.path().join("wireshark");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("esp_sa"), associations).unwrap();
    let settings = [("HOME", folder.path()), ("XDG_CONFIG_HOME", folder.path())];
    let mut command = Command::new(program);
    command.arg("-n").arg("-r").arg(&file).args(options).args(["-T", "fields"]).envs(settings);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().map(|line| line.split('\t').map(str::to_owned).collect());
    Some(rows.collect())
}

/// Skips a test without tshark.
macro_rules! decoded {
    ($($arguments:expr),+ $(,)?) => {
        match tshark($($arguments),+) {
            Some(rows) => rows,
            None => skip!(Need::Tshark, "tshark is not installed"),
        }
    };
}

#[test]
fn macsec_and_the_pseudowire_around_it_are_decoded() {
    let frames = on_links(&path(Protection::MacSec, Cipher::AesGcm128));
    let options = ["-d", "mpls.label==102,pwethcw", "-d", "mpls.label==103,pwethcw"];
    let fields = [
        "macsec.PN",
        "macsec.AN",
        "macsec.TCI.E",
        "macsec.TCI.C",
        "macsec.SCI.system_identifier",
        "mpls.label",
        "mpls.bottom",
        "pweth.cw",
        "frame.len",
        "_ws.malformed",
    ];
    let rows = decoded!(&frames, &options, "", &fields);
    let sci = "02:00:00:00:01:01";
    let on = |label: &str, len: &str| {
        let (bottom, word) = if label.is_empty() { ("", "") } else { ("1", "Pseudowire") };
        let row = ["1", "0x00", "1", "1", sci, label, bottom, word, len, ""];
        row.map(str::to_owned).to_vec()
    };
    for (row, expected) in
        rows.iter().zip([on("", "1032"), on("102", "1054"), on("103", "1054"), on("", "1032")])
    {
        let shown = row
            .iter()
            .zip(&expected)
            .all(|(is, expected)| is == expected || (expected == "Pseudowire" && !is.is_empty()));
        assert!(shown, "{row:?} for {expected:?}");
    }
    assert_eq!(rows.len(), 4);
}

/// A line of Wireshark's table of ESP's associations.
fn table(cipher: Cipher, spi: u32, material: &Key) -> String {
    let hex: String = material.expose().iter().map(|byte| format!("{byte:02x}")).collect();
    let (encryption, key, authentication, other) = match cipher {
        Cipher::AesCbc128Sha1 => {
            let other = format!("0x{}", &hex[32..]);
            ("AES-CBC [RFC3602]", &hex[..32], "HMAC-SHA-1-96 [RFC2404]", other)
        }
        _ => ("AES-GCM with 16 octet ICV [RFC4106]", &hex[..], "NULL", String::new()),
    };
    format!(
        "\"IPv4\",\"10.9.0.1\",\"10.9.0.2\",\"{spi:#010x}\",\"{encryption}\",\"0x{key}\",\
         \"{authentication}\",\"{other}\",\"32-bit\",\"\"\n"
    )
}

#[test]
fn esp_is_decrypted() {
    let options =
        ["-o", "esp.enable_encryption_decode:TRUE", "-o", "esp.enable_authentication_check:TRUE"];
    let fields = [
        "esp.spi",
        "esp.sequence",
        "ip.src",
        "ip.dst",
        "udp.dstport",
        "udp.length",
        "_ws.malformed",
    ];
    for cipher in [Cipher::AesGcm128, Cipher::AesGcm256, Cipher::AesCbc128Sha1] {
        let topology = path(Protection::Esp, cipher);
        let frames = on_links(&topology);
        let len = cipher.esp().unwrap().key_material();
        let material = keys(SEED, Protection::Esp, 0, Direction::Forward, len);
        let associations = table(cipher, 0x1001, &material);
        let rows = decoded!(&frames[..1], &options, &associations, &fields);
        let data = (LEN - 18 - 20).to_string();
        let expected =
            ["0x00001001", "1", "10.9.0.1,172.16.1.2", "10.9.0.2,172.16.2.2", "7001", &data, ""];
        assert_eq!(rows, [expected.map(str::to_owned).to_vec()], "{cipher}");
    }
}

#[test]
fn l2tp_is_decrypted_and_decoded() {
    let options = ["-o", "esp.enable_encryption_decode:TRUE"];
    let topology = path(Protection::L2tp, Cipher::AesCbc128Sha1);
    let frames = on_links(&topology);
    let material = keys(SEED, Protection::L2tp, 0, Direction::Forward, 36);
    let associations = table(Cipher::AesCbc128Sha1, 0x1001, &material);
    let fields = ["esp.sequence", "udp.dstport", "l2tp.version", "l2tp.sid", "_ws.malformed"];
    let rows = decoded!(&frames[..1], &options, &associations, &fields);
    let expected = ["1", "1701", "3", "0x00000101", ""].map(str::to_owned).to_vec();
    assert_eq!(rows, [expected]);
}

#[test]
fn wireguards_data_and_vxlans_are_decoded() {
    let wireguard = on_links(&path(Protection::WireGuard, Cipher::ChaCha20Poly1305));
    let vxlan = on_links(&path(Protection::MacSecVxlan, Cipher::AesGcm256));
    let frames = [wireguard[0].clone(), vxlan[0].clone()];
    let fields = [
        "wg.type",
        "wg.receiver",
        "wg.counter",
        "vxlan.vni",
        "macsec.PN",
        "ip.dst",
        "_ws.malformed",
    ];
    let rows = decoded!(&frames, &[], "", &fields);
    let expected = [
        ["4", "0x00001001", "0", "", "", "10.9.0.2", ""],
        ["", "", "", "1000", "1", "10.9.0.2", ""],
    ];
    assert_eq!(rows, expected.map(|row| row.map(str::to_owned).to_vec()));
}

struct Seeded(Pcg64);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// What two members say to each other, until both have a key and send with it.
fn agreement(suite: Suite) -> Vec<Vec<u8>> {
    let mut random = Seeded(Pcg64::seed_from_u64(SEED));
    let mut members = [16, 32].map(|priority| {
        let settings = Settings {
            sci: Sci([2, 0, 0, 0, 1, priority, 0, 1]),
            cak: Cak::new(b"a name".to_vec(), Secret::new(vec![0x42; 16])).unwrap(),
            priority,
            suite,
            confidentiality: Confidentiality::All,
        };
        Participant::new(&settings, Time::ZERO, &mut random).unwrap()
    });
    let (mut said, mut now) = (Vec::new(), Time::ZERO);
    while members.iter().any(|member| member.transmits_with().is_none()) {
        assert!(said.len() < 100, "they do not agree");
        for at in [0, 1] {
            while let Some(frame) = members[at].poll(now, &mut random) {
                // The other may not know the sender yet.
                let _ = members[1 - at].receive(now, &frame);
                said.push(frame);
            }
        }
        now += Duration::from_secs(2);
    }
    said
}

#[test]
fn key_agreement_is_decoded() {
    let fields = [
        "mka.version_id",
        "mka.ks_prio",
        "mka.distributed_an",
        "mka.aes_key_wrap_sak",
        "mka.macsec_cipher_suite",
        "mka.icv",
        "_ws.malformed",
        "mka.expert.undecoded_data",
        "mka.expert.unexpected_data",
    ];
    for suite in [Suite::GcmAes128, Suite::GcmAes256] {
        let said = agreement(suite);
        let rows = decoded!(&said, &[], "", &fields);
        assert_eq!(rows.len(), said.len());
        for row in &rows {
            assert_eq!(row[0], "3", "{row:?}");
            assert!(["16", "32"].contains(&row[1].as_str()), "{row:?}");
            assert_eq!(row[5].len(), 32, "{row:?}");
            assert_eq!(row[6..], ["", "", ""], "{row:?}");
        }
        // A wrapped key is eight bytes longer (RFC 3394); of the default suite the identifier is left out.
        let distributed: Vec<_> = rows.iter().filter(|row| !row[2].is_empty()).collect();
        assert!(!distributed.is_empty());
        for row in distributed {
            assert_eq!((row[1].as_str(), row[2].as_str()), ("16", "0"), "{row:?}");
            assert_eq!(row[3].len(), 2 * (suite.key_len() + 8), "{row:?}");
            assert_eq!(row[4].is_empty(), suite == Suite::GcmAes128, "{row:?}");
        }
    }
}
