//! SPDY/3 and 3.1 as both sides have it: how a session is configured, how it is carried, its failures.

mod carrier;
pub(crate) mod head;

use fault::{Explain, Fault};

use ::spdy::{Change, Config, FlowControl, Role, Session, SessionError, StreamId, Version};

pub(crate) use carrier::{Carrier, Progress};

use crate::{Failure, Protocol, PushLimits, Settings, WindowUpdate};

/// Bytes of one DATA frame: with its header of 8 bytes it fills a TLS record (RFC 8446 §5.1).
const PIECE: usize = 16_384 - 8;
/// Bytes that a session gives to the transport at once, and that an urgent frame may wait behind.
const ROUND: usize = 4 * 16_384;
/// Bytes of a body that a stream queues: enough that a round never ends for want of them. They are parts of
/// the shared block, and no memory of their own.
const QUEUE: usize = 2 * ROUND;

/// zlib's level for headers, whose next block mostly repeats the one before. At level 6 a request for 100 bytes
/// took the server half as much CPU again as over HTTP/2, at 1 as much (`examples/compare.rs`).
const HEADER_LEVEL: u32 = 1;

/// A session for a connection that negotiated `protocol`; what is not SPDY/3.1 is SPDY/3.
pub(crate) fn session(
    role: Role,
    protocol: Protocol,
    settings: &Settings,
) -> Result<Session, Failure> {
    of_config(role, protocol, config(settings))
}

/// A client's session, which takes of what is pushed what the limits allow, or nothing.
pub(crate) fn client_session(
    protocol: Protocol,
    settings: &Settings,
    push: Option<PushLimits>,
) -> Result<Session, Failure> {
    let mut config = config(settings);
    if let Some(limits) = push {
        config.accept_push = true;
        config.max_peer_streams = limits.streams;
    }
    of_config(Role::Client, protocol, config)
}

fn of_config(role: Role, protocol: Protocol, config: Config) -> Result<Session, Failure> {
    let version = if protocol == Protocol::Spdy31 { Version::V3_1 } else { Version::V3 };
    Session::new(role, version, config).map_err(|error| failure(protocol, error))
}

/// The next stream that began to wait for a window, or no longer does: whether it is shut.
pub(crate) fn next_stall(session: &mut Session) -> Option<(StreamId, bool)> {
    loop {
        match session.poll_change()? {
            Change::StallBegan { stream, .. } => return Some((stream, true)),
            Change::StallEnded { stream, .. } => return Some((stream, false)),
            Change::SendWindow { .. } | Change::ReceiveWindow { .. } => {}
        }
    }
}

fn config(settings: &Settings) -> Config {
    let header_list = settings.max_header_list as usize;
    Config {
        flow: FlowControl {
            stream_window: settings.stream_window,
            session_window: settings.connection_window,
            update_divisor: match settings.update {
                WindowUpdate::Library | WindowUpdate::Half => 2,
                WindowUpdate::Eighth => 8,
            },
        },
        max_frame: PIECE,
        send_queue: QUEUE,
        max_peer_streams: settings.max_concurrent_streams,
        // The peer's limit alone counts, as with HTTP/2.
        max_own_streams: u32::MAX,
        accept_push: false,
        header_level: HEADER_LEVEL,
        max_header_block: header_list,
        // A block that zlib cannot make shorter is little longer.
        max_control_frame: header_list.saturating_add(1024),
        ..Config::default()
    }
}

/// How many bytes of a body may be queued now: none before half of the queue is free, so that pieces are large.
pub(crate) fn room(session: &Session, stream: ::spdy::StreamId) -> usize {
    match session.writable(stream) {
        room if room >= QUEUE / 2 => room,
        _ => 0,
    }
}

/// Why a session failed.
pub(crate) fn failure(protocol: Protocol, error: SessionError) -> Failure {
    match error {
        SessionError::TooLarge => Failure::TooLarge("the head is larger than the settings allow"),
        error => Failure::Http {
            protocol,
            detail: error.to_string(),
            peer: error.fault() == Fault::Peer,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_a_configuration() {
        let of = |settings: Settings| config(&settings).flow;
        let mod_spdy = FlowControl::MOD_SPDY;
        assert_eq!(of(Settings::CHROMIUM), FlowControl::CHROMIUM);
        assert_eq!(of(Settings::MOD_SPDY), mod_spdy);
        assert_eq!(of(Settings::GOOGLE), FlowControl::GOOGLE);
        assert_eq!(of(Settings::OFF), FlowControl::OFF);
        assert_eq!(
            of(Settings::MOD_SPDY.with_library_updates()),
            FlowControl { update_divisor: 2, ..mod_spdy }
        );
    }

    #[test]
    fn a_queue_is_filled_when_half_of_it_is_free() {
        let mut session = session(Role::Client, Protocol::Spdy31, &Settings::default()).unwrap();
        let get = head::of_request(&request(), None).unwrap();
        let stream = session.open(&get, ::spdy::Priority::HIGHEST, false).unwrap();
        assert_eq!(room(&session, stream), QUEUE);
        let mut body = bytes::Bytes::from_static(&[0; ROUND]);
        session.write(stream, &mut body, false).unwrap();
        assert_eq!(room(&session, stream), QUEUE - ROUND);
        session.write(stream, &mut bytes::Bytes::from_static(b"x"), false).unwrap();
        assert_eq!(room(&session, stream), 0);
    }

    fn request() -> http::request::Parts {
        http::Request::get("https://a.test/").body(()).unwrap().into_parts().0
    }
}
