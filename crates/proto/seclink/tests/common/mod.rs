//! Frames with room around them.

use seclink::Slot;

/// Room before and behind a frame.
pub const ROOM: usize = 128;

/// A buffer with the frame in its middle.
pub fn with_room(frame: &[u8]) -> Vec<u8> {
    [&[0xee; ROOM][..], frame, &[0xee; ROOM]].concat()
}

/// What `work` makes of a frame.
pub fn worked<T>(frame: &[u8], work: impl FnOnce(&mut Slot<'_>) -> T) -> (T, Vec<u8>) {
    let mut buffer = with_room(frame);
    let mut slot = Slot::new(&mut buffer, ROOM..ROOM + frame.len()).unwrap();
    let said = work(&mut slot);
    (said, slot.frame().to_vec())
}

/// The bytes that hexadecimal digits say, whatever else stands between them.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|letter| letter.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// An IPv4 packet of so many bytes.
pub fn ipv4_packet(len: usize) -> Vec<u8> {
    let repr = wire::ipv4::Repr {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: 17,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: len - wire::ipv4::HEADER_LEN,
    };
    let mut packet = vec![0x77; len];
    repr.emit(&mut packet).unwrap();
    packet
}

/// An IPv6 packet of so many bytes.
pub fn ipv6_packet(len: usize) -> Vec<u8> {
    let repr = wire::ipv6::Repr {
        source: "fd00::1".parse().unwrap(),
        destination: "fd00::2".parse().unwrap(),
        next_header: 17,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        payload_len: len - wire::ipv6::HEADER_LEN,
    };
    let mut packet = vec![0x77; len];
    repr.emit(&mut packet).unwrap();
    packet
}
