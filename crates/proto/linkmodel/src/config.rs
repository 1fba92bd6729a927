//! What one direction of a link is like.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::{Bytes, Delay, Probability, Rate};

use crate::error::ConfigError;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::middlebox::Middlebox;
use crate::text::text_or_table;
use crate::trace::Trace;

/// No delay, jitter, outage or CoDel time may be longer: one hour.
pub const MAX_DELAY: Duration = Duration::from_secs(3600);

/// At most this many frames are in the delay line, and at most this many wait in a queue of any
/// kind.
pub const DELAY_LINE_FRAMES: usize = 1 << 18;

/// At most this many bytes are in the delay line, and at most this many wait in a queue of any
/// kind: 512 MiB.
pub const DELAY_LINE_BYTES: usize = 512 << 20;

/// One direction of a link. The default is a perfect one: no delay, no loss, no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// One-way delay from the last bit sent to the last bit received.
    pub delay: Delay,
    /// Random time on top of the delay.
    pub jitter: Jitter,
    /// Whether jitter may let a later frame overtake an earlier one. If not (the default), a frame
    /// is held until the one before it is due.
    pub jitter_may_reorder: bool,
    /// A middlebox where frames enter that does not tolerate data on a SYN.
    #[serde(skip_serializing_if = "is_none")]
    pub middlebox: Middlebox,
    /// Which frames are lost before they reach the queue.
    pub loss: Loss,
    /// Which frames overtake others.
    pub reorder: Reorder,
    /// How likely a frame is sent twice.
    pub duplicate: Probability,
    /// How likely one bit of a frame is inverted, in the bytes behind its Ethernet header.
    pub corrupt: Probability,
    /// How fast frames leave the queue; at once if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSource>,
    /// Where frames wait for the rate.
    pub queue: Queue,
    /// When the link is down.
    pub outages: Vec<Outage>,
}

/// A link without a middlebox is written as before there were any.
fn is_none(middlebox: &Middlebox) -> bool {
    *middlebox == Middlebox::None
}

/// How fast frames leave the queue.
#[derive(Debug, Clone, PartialEq)]
pub enum RateSource {
    /// Always this fast. Written `"10mbit/ip"`.
    Fixed(Rate),
    /// As a capacity trace says. Written `{ trace = [1, 5, 5, 12] }`, in milliseconds; begun in its midst,
    /// `{ trace = [1, 5, 5, 12], phase = "7ms" }`.
    Trace(Trace),
}

impl From<Rate> for RateSource {
    fn from(rate: Rate) -> Self {
        RateSource::Fixed(rate)
    }
}

impl From<Trace> for RateSource {
    fn from(trace: Trace) -> Self {
        RateSource::Trace(trace)
    }
}

/// Where frames wait. The frame that is being sent is not counted. Whatever the kind, no more
/// than [`DELAY_LINE_FRAMES`] and [`DELAY_LINE_BYTES`] wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// Drop-tail, limited in frames. Written `{ packets = 1000 }`.
    Packets(u32),
    /// Drop-tail, limited in bytes of Ethernet frames. Written `{ bytes = "64kB" }`.
    Bytes(Bytes),
    /// No limit but the one above. Written `"unlimited"`.
    Unlimited,
    /// CoDel (RFC 8289). Written `{ codel = {} }`.
    Codel(Codel),
}

impl Default for Queue {
    /// Drop-tail of 1000 packets, as a Linux device has.
    fn default() -> Self {
        Queue::Packets(1000)
    }
}

/// CoDel's parameters (RFC 8289 §4). It drops; it does not mark ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Codel {
    /// Acceptable standing delay of the queue.
    pub target: Delay,
    /// About the longest RTT of the flows through the queue.
    pub interval: Delay,
    /// Limit in frames, at which it is drop-tail.
    pub packets: u32,
}

impl Default for Codel {
    /// Target 5 ms and interval 100 ms (RFC 8289 §4.2, §4.3), 1000 packets.
    fn default() -> Self {
        Codel {
            target: Duration::from_millis(5).into(),
            interval: Duration::from_millis(100).into(),
            packets: 1000,
        }
    }
}

/// Deliberate reordering, as netem has it: a frame that is drawn waits `delay` instead of the
/// link's delay and jitter, and so may overtake those before it. Written `"1%"` or
/// `{ probability = "1%", delay = "2ms" }`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Reorder {
    /// How likely a frame is drawn.
    pub probability: Probability,
    /// Its delay, if smaller than the link's. Zero: it arrives as soon as it is sent.
    pub delay: Delay,
}

impl From<Probability> for Reorder {
    fn from(probability: Probability) -> Self {
        Reorder { probability, delay: Delay::ZERO }
    }
}

/// A time in which the link is down, counted from the link's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins (first), after the link's start.
    pub start: Delay,
    /// How long the link is down.
    pub duration: Delay,
    /// From one beginning to the next; once only if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Delay>,
    /// What becomes of frames meanwhile.
    #[serde(default)]
    pub frames: OutageFrames,
}

/// What becomes of frames while the link is down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageFrames {
    /// The sender knows: nothing is taken from the queue until the link is up. A frame whose
    /// sending has begun is finished.
    #[default]
    Wait,
    /// The sender does not know: it sends on, and a frame whose last bit leaves while the link is
    /// down is lost.
    Drop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderTable {
    probability: Probability,
    #[serde(default)]
    delay: Delay,
}

impl From<ReorderTable> for Reorder {
    fn from(table: ReorderTable) -> Self {
        Reorder { probability: table.probability, delay: table.delay }
    }
}

impl<'de> Deserialize<'de> for Reorder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expecting =
            "a probability such as \"1%\", or { probability = \"1%\", delay = \"2ms\" }";
        text_or_table::<_, Probability, ReorderTable, Reorder>(deserializer, expecting)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceTable {
    trace: Trace,
    #[serde(default)]
    phase: Delay,
}

impl From<TraceTable> for RateSource {
    fn from(table: TraceTable) -> Self {
        RateSource::Trace(table.trace.begun_at(table.phase.duration()))
    }
}

impl<'de> Deserialize<'de> for RateSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expecting = "a rate such as \"10mbit/ip\", or { trace = [1, 5, 12] }";
        text_or_table::<_, Rate, TraceTable, RateSource>(deserializer, expecting)
    }
}

impl Serialize for RateSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Table<'a> {
            trace: &'a Trace,
            #[serde(skip_serializing_if = "Option::is_none")]
            phase: Option<Delay>,
        }
        match self {
            RateSource::Fixed(rate) => rate.serialize(serializer),
            RateSource::Trace(trace) => {
                let phase = Some(trace.phase()).filter(|phase| !phase.is_zero());
                Table { trace, phase: phase.map(Delay::from) }.serialize(serializer)
            }
        }
    }
}

impl LinkConfig {
    /// Whether a link can be made of it.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        crate::validate::link(self)
    }
}
