//! From one load, seen from both sides, to one sample.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use browser::{Seen, ServerPush};
use page::{Loaded, Outcome, Phases, Share};
use record::{Outcome as Ended, Sample};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use study::Commands;
use units::Delay;
use web::{ConnectionRecord, TcpLimit};

use crate::plan::{recorded_options, recorded_returns};
use crate::point::{AXES, Point, Visit};
use crate::stalled;

/// The study's name in samples.
pub(crate) const STUDY: &str = "page";

/// Names of the values in a sample, and what each is.
pub mod value {
    use record::{Better, Clock, ValueKind};

    /// Until everything was fetched; in Chromium until the load event, if that came later.
    pub const LOAD: &str = "load_ms";
    /// Until Chromium had fired the load event.
    pub const LOAD_EVENT: &str = "load_event_ms";
    /// Until the first byte of a response.
    pub const FIRST_BYTE: &str = "first_byte_ms";
    /// Until half of the bytes of all bodies had come.
    pub const HALF: &str = "half_ms";
    /// Until nine tenths had.
    pub const NINETY: &str = "ninety_ms";
    /// Connections opened in the load.
    pub const CONNECTIONS: &str = "connections";
    /// Of them, those whose handshake was a resumption.
    pub const RESUMED: &str = "resumed";
    /// Of them, those whose early data the server took (0-RTT).
    pub const EARLY: &str = "early";
    /// Of them, those whose SYN carried data that the server took.
    pub const SYN_DATA: &str = "syn_data";
    /// Requests made in the load.
    pub const REQUESTS: &str = "requests";
    /// Bytes of bodies that came.
    pub const BODY: &str = "body_bytes";
    /// Frame bytes to the server, without those of cross traffic.
    pub const UP: &str = "up_bytes";
    /// Frame bytes to the client, without those of cross traffic.
    pub const DOWN: &str = "down_bytes";
    /// Frame bytes of cross traffic to the server's side during the load, where there was any.
    pub const CROSS_UP: &str = "cross_up_bytes";
    /// The same to the client's side.
    pub const CROSS_DOWN: &str = "cross_down_bytes";
    /// Time in which some response had data, its flow-control window was shut and the transport would
    /// have taken more; overlapping times count once.
    pub const STALLED: &str = "stalled_on_window_ms";
    /// The same of the bodies of requests, whose windows the server announces; only in a load with such.
    pub const UPLOADS_STALLED: &str = "uploads_stalled_on_window_ms";
    /// Time in which a response had data and the transport took none, summed over responses.
    pub const BLOCKED: &str = "transport_blocked_ms";
    /// Time in which the TCP of some connection of the server's had bytes to send and sent none while nothing waited
    /// at the bottleneck; overlapping times count once. Of QUIC: by its congestion control, whose flow control is in
    /// [`STALLED`].
    pub const TCP_STALLED: &str = "stalled_on_tcp_ms";
    /// Of it, time in which the peer's receive window was what kept it.
    pub const RECEIVE_WINDOW: &str = "stalled_on_receive_window_ms";
    /// Time in which the congestion window was, of TCP or of QUIC.
    pub const CONGESTION_WINDOW: &str = "stalled_on_congestion_window_ms";
    /// Time in which TCP's send buffer was: too small for what is under way.
    pub const SEND_BUFFER: &str = "stalled_on_send_buffer_ms";
    /// The same as [`TCP_STALLED`] of the client, while requests with a body are under way; only in a load with such.
    pub const UPLOADS_TCP_STALLED: &str = "uploads_stalled_on_tcp_ms";
    /// Of it, time in which the server's receive window was what kept it.
    pub const UPLOADS_RECEIVE_WINDOW: &str = "uploads_stalled_on_receive_window_ms";
    /// Time in which the congestion window was, of TCP or of QUIC.
    pub const UPLOADS_CONGESTION_WINDOW: &str = "uploads_stalled_on_congestion_window_ms";
    /// Time in which TCP's send buffer was.
    pub const UPLOADS_SEND_BUFFER: &str = "uploads_stalled_on_send_buffer_ms";
    /// Time in which TCP's receive window kept the server from sending: the most of any connection that
    /// was opened in the load, until its end. The kernel counts it in jiffies.
    pub const RECEIVE_LIMITED: &str = "receive_window_limited_ms";
    /// Packets that the server sent again: segments of TCP, packets that QUIC took for lost; of all connections
    /// that were opened in the load, until their end.
    pub const SENT_AGAIN: &str = "sent_again_packets";
    /// CPU time of the server.
    pub const SERVER_CPU: &str = "server_cpu_ms";
    /// An estimate of the memory of the server's connections that are open at the load's end, without what the
    /// kernel holds for them.
    pub const SERVER_MEMORY: &str = "server_memory_bytes";
    /// Responses that the server pushed, where it was to push.
    pub const PUSHED: &str = "pushed";
    /// Bytes of their bodies that it gave to the transport by the load's end.
    pub const PUSHED_BYTES: &str = "pushed_bytes";
    /// Of these, bytes of what the browser cancelled or did not need.
    pub const IN_VAIN: &str = "pushed_in_vain_bytes";
    /// Bytes above TLS or QUIC to the server: requests, and what else the client's frames say.
    pub const REQUEST_BYTES: &str = "request_bytes";
    /// Bytes above TLS or QUIC to the client around bodies: heads and frames.
    pub const AROUND_BODIES: &str = "around_bodies_bytes";
    /// Sums over objects of HAR's phases.
    pub const PHASES: [&str; 7] = [
        "sum_blocked_ms",
        "sum_dns_ms",
        "sum_connect_ms",
        "sum_ssl_ms",
        "sum_send_ms",
        "sum_wait_ms",
        "sum_receive_ms",
    ];

    const TIME: ValueKind = ValueKind::new("ms", Better::Less, Clock::Wall);
    const BYTES: ValueKind = ValueKind::new("bytes", Better::Less, Clock::Count);
    const COUNT: ValueKind = ValueKind::new("", Better::Less, Clock::Count);
    const SHARE: ValueKind = ValueKind::new("", Better::More, Clock::Count);

    /// What each value is; the first is what results are compared by.
    pub(crate) fn kinds() -> Vec<(&'static str, ValueKind)> {
        let mut kinds = vec![
            (LOAD, TIME),
            (LOAD_EVENT, TIME),
            (FIRST_BYTE, TIME),
            (HALF, TIME),
            (NINETY, TIME),
            (CONNECTIONS, COUNT),
            (RESUMED, SHARE),
            (EARLY, SHARE),
            (SYN_DATA, SHARE),
            (REQUESTS, COUNT),
            (BODY, BYTES),
            (UP, BYTES),
            (DOWN, BYTES),
            (CROSS_UP, ValueKind::new("bytes", Better::More, Clock::Count)),
            (CROSS_DOWN, ValueKind::new("bytes", Better::More, Clock::Count)),
            (STALLED, TIME),
            (UPLOADS_STALLED, TIME),
            (BLOCKED, TIME),
            (TCP_STALLED, TIME),
            (RECEIVE_WINDOW, TIME),
            (CONGESTION_WINDOW, TIME),
            (SEND_BUFFER, TIME),
            (UPLOADS_TCP_STALLED, TIME),
            (UPLOADS_RECEIVE_WINDOW, TIME),
            (UPLOADS_CONGESTION_WINDOW, TIME),
            (UPLOADS_SEND_BUFFER, TIME),
            (RECEIVE_LIMITED, TIME),
            (SENT_AGAIN, COUNT),
            (SERVER_CPU, TIME),
            (SERVER_MEMORY, BYTES),
            (PUSHED, ValueKind::new("", Better::More, Clock::Count)),
            (PUSHED_BYTES, ValueKind::new("bytes", Better::More, Clock::Count)),
            (IN_VAIN, BYTES),
            (REQUEST_BYTES, BYTES),
            (AROUND_BODIES, BYTES),
        ];
        kinds.extend(PHASES.map(|phase| (phase, TIME)));
        kinds
    }
}

/// Makes the commands that measure loads again: the rounds up to a load's own.
pub(crate) fn commands(plan: &Value) -> Commands {
    let (options, returns) = (recorded_options(plan), recorded_returns(plan));
    Box::new(move |sample| {
        let point = Point::of_fields(&sample.point)?;
        let returns = returns.get(&point.sweep).copied().unwrap_or(1).max(1);
        let each = if point.visit == Visit::First { 1 } else { returns };
        let rounds = (sample.repeat / each).saturating_add(1);
        let again = again(rounds, returns, options.as_ref()?);
        Some(format!("{}{again}", command(&point, sample.seed)))
    })
}

/// The options that load a point this many rounds: `options` and what a sweep has beside its axes.
pub(crate) fn again(rounds: u32, returns: u32, options: &str) -> String {
    let returns = match returns {
        1 => String::new(),
        returns => format!(" --returns {returns}"),
    };
    format!(" --repeat {rounds}{returns}{options}")
}

fn command(point: &Point, seed: u64) -> String {
    format!("wiretax page{} --seed {seed}", AXES.command_line(point))
}

/// The sample of one load. `options`: what a command needs beside the point to measure it again.
pub(crate) fn sample(
    point: &Point,
    repeat: u32,
    seed: u64,
    seen: &Seen,
    timeout: Delay,
    options: &str,
) -> Sample {
    let ended = seen.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
    let command = command(point, seed) + options;
    let mut sample = Sample {
        study: STUDY.to_owned(),
        point: point.fields(),
        repeat,
        seed,
        at_unix_ms: u64::try_from(ended.as_millis()).unwrap_or(u64::MAX),
        outcome: Ended::Completed,
        values: values(point, seen),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command,
    };
    if repeat == 0 {
        let text = serde_json::to_string(&Waterfall::of(&seen.loaded)).ok();
        sample.labels.extend(text.map(|text| (WATERFALL.to_owned(), text)));
    }
    if let Some(why) = failure(seen) {
        sample.outcome = if seen.load_time() >= timeout {
            Ended::TimedOut { after_ms: millis(timeout.duration()) }
        } else {
            Ended::Failed { reason: why }
        };
    } else if seen.cross.is_some_and(|cross| !cross.steady) {
        let reason = "cross traffic had not filled the queue when the load began".to_owned();
        sample.outcome = Ended::Failed { reason };
    }
    sample
}

/// The label with the waterfall of a point's first load.
pub(crate) const WATERFALL: &str = "waterfall";

/// A load's objects in the order in which they were wanted: when, and how long each phase took, in
/// milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waterfall(pub(crate) Vec<Bar>);

/// An object: when it was wanted, then blocked, dns, connect, send, wait, receive; in milliseconds.
pub(crate) type Bar = (f64, [f64; 6]);

impl Waterfall {
    fn of(loaded: &Loaded) -> Waterfall {
        let short = |delay: Delay| (millis(delay.duration()) * 10.0).round() / 10.0;
        let mut bars: Vec<Bar> = loaded
            .objects
            .iter()
            .filter_map(|object| {
                let Phases { blocked, dns, connect, send, wait, receive, .. } = object.phases()?;
                let phases = [blocked, dns, connect, send, wait, receive].map(short);
                Some((short(object.queued?), phases))
            })
            .collect();
        bars.sort_by(|a, b| a.0.total_cmp(&b.0));
        Waterfall(bars)
    }
}

/// Why a load is not whole, if it is not.
fn failure(seen: &Seen) -> Option<String> {
    let objects = seen.loaded.objects.iter().enumerate();
    let mut failed = objects.filter(|(_, object)| {
        !matches!(object.outcome, Outcome::Fetched | Outcome::Validated | Outcome::Fresh)
    });
    let (at, first) = failed.next()?;
    let said = seen.fetched.get(at).and_then(|fetched| fetched.error.as_ref());
    let why = said.map_or(String::new(), |error| format!(" ({error})"));
    let outcome = first.outcome;
    Some(match failed.count() {
        0 => format!("1 object did not come: {outcome}{why}"),
        more => format!("{} objects did not come; the first: {outcome}{why}", more + 1),
    })
}

fn values(point: &Point, seen: &Seen) -> BTreeMap<String, f64> {
    let pushes = point.server_push == ServerPush::Push;
    let of_push = |count: u64| pushes.then_some(count as f64);
    let loaded = &seen.loaded;
    let ms = |delay: Option<Delay>| delay.map(|delay| millis(delay.duration()));
    let share = |share| Share::new(share).and_then(|share| loaded.bytes_by(share));
    let resumed = loaded.connections.iter().filter(|one| one.resumed && one.opening.is_some());
    let blocked: Duration = seen.streams.iter().map(|stream| stream.transport_blocked).sum();
    let limits = seen.connections.iter().filter_map(|one| Some(one.tcp?.receive_window_limited));
    let limited = limits.max();
    let sent_again = seen.connections.iter().filter_map(|one| match (&one.tcp, &one.quic) {
        (Some(tcp), _) => Some(f64::from(tcp.retransmits)),
        (None, Some(quic)) => Some(quic.packets_lost as f64),
        (None, None) => None,
    });
    let sent_again = sent_again.reduce(|sum, one| sum + one);
    let is_early = |one: &&ConnectionRecord| {
        one.tls.as_ref().is_some_and(|tls| tls.early_data == tls::EarlyData::Accepted)
    };
    let early = seen.connections.iter().filter(is_early).count();
    let has_syn_data =
        |one: &&ConnectionRecord| one.tcp.is_some_and(|tcp| tcp.syn_data_acknowledged);
    let syn_data = seen.connections.iter().filter(has_syn_data).count();
    let [responses, uploads] = stalled::of_a_load(seen);
    let on_tcp = |limit| stalled::on_tcp(seen, |one| one == limit).map(millis);
    let uploads_on_tcp = |limit| stalled::uploads_on_tcp(seen, |one| one == limit).map(millis);
    let mut values: BTreeMap<String, f64> = [
        (value::LOAD, Some(millis(seen.load_time().duration()))),
        (value::LOAD_EVENT, ms(seen.load_event)),
        (value::FIRST_BYTE, ms(loaded.first_byte())),
        (value::HALF, ms(share(0.5))),
        (value::NINETY, ms(share(0.9))),
        (value::CONNECTIONS, Some(loaded.connections_opened() as f64)),
        // Chromium does not say.
        (value::RESUMED, seen.fetched.is_empty().then(|| resumed.count() as f64)),
        (value::EARLY, Some(early as f64)),
        (value::SYN_DATA, Some(syn_data as f64)),
        (value::REQUESTS, Some(f64::from(loaded.requests()))),
        (value::BODY, Some(loaded.bytes().count() as f64)),
        (value::UP, Some(seen.up.count() as f64)),
        (value::DOWN, Some(seen.down.count() as f64)),
        (value::CROSS_UP, seen.cross.map(|cross| cross.up.count() as f64)),
        (value::CROSS_DOWN, seen.cross.map(|cross| cross.down.count() as f64)),
        (value::STALLED, responses.map(millis)),
        (value::UPLOADS_STALLED, uploads.map(millis)),
        (value::BLOCKED, Some(millis(blocked))),
        (value::TCP_STALLED, stalled::on_tcp(seen, |_| true).map(millis)),
        (value::RECEIVE_WINDOW, on_tcp(TcpLimit::ReceiveWindow)),
        (value::CONGESTION_WINDOW, on_tcp(TcpLimit::CongestionWindow)),
        (value::SEND_BUFFER, on_tcp(TcpLimit::SendBuffer)),
        (value::UPLOADS_TCP_STALLED, stalled::uploads_on_tcp(seen, |_| true).map(millis)),
        (value::UPLOADS_RECEIVE_WINDOW, uploads_on_tcp(TcpLimit::ReceiveWindow)),
        (value::UPLOADS_CONGESTION_WINDOW, uploads_on_tcp(TcpLimit::CongestionWindow)),
        (value::UPLOADS_SEND_BUFFER, uploads_on_tcp(TcpLimit::SendBuffer)),
        (value::RECEIVE_LIMITED, limited.map(millis)),
        (value::SENT_AGAIN, sent_again),
        (value::SERVER_CPU, Some(millis(seen.server_cpu))),
        (value::SERVER_MEMORY, Some(seen.above_tls.memory.count() as f64)),
        (value::REQUEST_BYTES, Some(seen.above_tls.read.count() as f64)),
        (value::PUSHED, of_push(seen.above_tls.pushed)),
        (value::PUSHED_BYTES, of_push(seen.above_tls.pushed_bytes.count())),
        (value::IN_VAIN, of_push(seen.pushed_in_vain().count())),
        (value::AROUND_BODIES, Some(seen.above_tls.around_bodies.count() as f64)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    for (name, sum) in value::PHASES.into_iter().zip(phases(loaded)) {
        values.insert(name.to_owned(), millis(sum));
    }
    values
}

fn phases(loaded: &Loaded) -> [Duration; 7] {
    let mut sums = [Duration::ZERO; 7];
    for Phases { blocked, dns, connect, ssl, send, wait, receive } in
        loaded.objects.iter().filter_map(page::Timeline::phases)
    {
        let own = [blocked, dns, connect, ssl, send, wait, receive];
        for (sum, one) in sums.iter_mut().zip(own) {
            *sum += one.duration();
        }
    }
    sums
}

fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
