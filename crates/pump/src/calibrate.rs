//! Measuring the emulator: delay error, difference to the model, capacity.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linkmodel::{Link, LinkConfig, Output, Path, Queue};
use packet::{PacketSocket, SendBatch, clock};
use units::{CountedBytes, Delay, Rate, Time};

use crate::calibration::{Calibration, Capacity, DelayCheck, DifferenceSummary};
use crate::pace::Rest;
use crate::{Builder, Error, Handle, LinkId, Options, Port, Stats};

/// Two ports, and a raw socket at the far end of each: in the nodes' namespaces, or wherever a
/// frame goes in that is to come out of the port. All interfaces are up, and carry nothing else.
#[derive(Debug)]
pub struct CalibrationRig {
    /// How the ends are joined to the ports: "veth" or "tap".
    pub backend: String,
    /// The port at which frames enter; in the calling thread's namespace if it is an interface.
    pub a: Port,
    /// The port from which they leave.
    pub b: Port,
    /// A socket whose frames come out of port `a`.
    pub far_a: PacketSocket,
    /// A socket that receives what port `b` sends.
    pub far_b: PacketSocket,
}

/// How long to calibrate. The default takes about 2.5 s.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationOptions {
    /// The pump to calibrate.
    pub pump: Options,
    /// Constant one-way delays to check.
    pub delays: Vec<Delay>,
    /// Frames sent for each delay, and for the comparison with the model.
    pub frames: u32,
    /// Frame lengths whose capacity is measured, in bytes, from 60 up to the interfaces' MTU and
    /// 14.
    pub frame_bytes: Vec<u32>,
    /// How long each is sent.
    pub capacity_time: Duration,
    /// Processor of the capacity test's sender; any if not given.
    pub sender_cpu: Option<usize>,
    /// Whether that sender asks for real-time scheduling, so that on a busy machine the pump's
    /// capacity is measured and not what other programs leave to the sender. On two processors the
    /// machine hardly answers meanwhile. Off by default.
    pub sender_realtime: bool,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        CalibrationOptions {
            pump: Options::default(),
            delays: vec![Duration::from_millis(10).into(), Duration::from_micros(200).into()],
            frames: 250,
            frame_bytes: vec![64, 1000, 1514],
            capacity_time: Duration::from_millis(400),
            sender_cpu: None,
            sender_realtime: false,
        }
    }
}

/// IEEE 802 Local Experimental EtherType 1, which no stack answers.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// Where a frame's number is.
const NUMBER: std::ops::Range<usize> = 14..22;
/// How long a frame may be overdue before it counts as lost.
const PATIENCE: Duration = Duration::from_millis(500);

/// Measures how well a pump emulates a link between the ends of `rig`. `progress` is told the part
/// done, from 0 to 1, and what comes next; it says whether to go on.
///
/// # Errors
/// [`Error::Port`] and others of [`Builder::add_link`] and [`Builder::start`];
/// [`Error::CalibrationLost`] if the rig does not carry frames; [`Error::Stopped`] if it was not to go on.
pub fn calibrate(
    rig: CalibrationRig,
    options: &CalibrationOptions,
    mut progress: impl FnMut(f64, &str) -> ControlFlow<()>,
) -> Result<Calibration, Error> {
    let mut builder = Builder::new(options.pump);
    let link = builder.add_link(rig.a, rig.b, &Path::default(), 1)?;
    let pump = builder.start()?;
    rig.far_a.enable_timestamps()?;
    rig.far_b.enable_timestamps()?;
    let steps = options.delays.len() + 1 + options.frame_bytes.len();
    let mut bench = Bench { pump, link, from: rig.far_a, to: Some(rig.far_b) };
    let mut step = 0;
    let mut announce = |what: &str| {
        let goes_on = progress(f64::from(step) / steps as f64, what);
        step += 1;
        if goes_on.is_break() { Err(Error::Stopped) } else { Ok(()) }
    };
    let mut delays = Vec::new();
    for delay in &options.delays {
        announce(&format!("checking a delay of {delay}"))?;
        delays.push(bench.check_delay(*delay, options.frames)?);
    }
    announce("comparing with the model")?;
    let model_difference = bench.compare_with_model(options.frames)?;
    // Closed: a socket that nobody reads would cost the pump time in the receiving stack.
    bench.to = None;
    bench.set(LinkConfig::default())?;
    let mut capacity = Vec::new();
    for len in &options.frame_bytes {
        announce(&format!("capacity for {len}-byte frames"))?;
        capacity.push(bench.capacity(*len, options)?);
    }
    announce("done")?;
    let mode = bench.pump.mode();
    bench.pump.stop()?;
    Ok(Calibration { backend: rig.backend, mode, delays, model_difference, capacity })
}

/// A frame that was sent, and when it arrived.
#[derive(Debug, Clone, Copy)]
struct Journey {
    sent: Time,
    arrived: Time,
}

struct Bench {
    pump: Handle,
    link: LinkId,
    from: PacketSocket,
    to: Option<PacketSocket>,
}

impl Bench {
    fn set(&self, forward: LinkConfig) -> Result<(), Error> {
        self.pump.set_path(self.link, &Path { forward, backward: LinkConfig::default() })
    }

    fn check_delay(&mut self, delay: Delay, frames: u32) -> Result<DelayCheck, Error> {
        self.set(LinkConfig { delay, ..LinkConfig::default() })?;
        self.pump.clear_release_errors(self.link)?;
        // Spaced so that no pattern of the timer's tick is hit; one frame a wake-up.
        let gaps = |number: u32| Duration::from_micros(900 + u64::from(number * 7919 % 1301));
        let journeys = self.send(frames, 100, gaps, delay.duration())?;
        let delays: Vec<i64> =
            journeys.iter().map(|it| it.arrived.signed_nanos_since(it.sent)).collect();
        let jitter: u64 = delays.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
        let configured = delay.duration().as_nanos() as i64;
        let errors = delays.iter().map(|delay| delay - configured).collect();
        let stats = self.pump.stats(self.link)?;
        Ok(DelayCheck {
            configured: delay,
            release_error: stats.forward.release_error,
            one_way_error: DifferenceSummary::of(errors),
            jitter_ns: jitter / (delays.len() as u64).saturating_sub(1).max(1),
        })
    }

    /// Bursts over a rate-limited link, so that a queue builds up and empties again.
    fn compare_with_model(&mut self, frames: u32) -> Result<DifferenceSummary, Error> {
        const LEN: usize = 500;
        const BURST: u32 = 10;
        let config = LinkConfig {
            delay: Duration::from_millis(3).into(),
            rate: Rate::new(20_000_000, CountedBytes::Ethernet).map(Into::into),
            queue: Queue::Unlimited,
            ..LinkConfig::default()
        };
        self.set(config.clone())?;
        let gaps = |number: u32| {
            Duration::from_micros(if number % BURST == BURST - 1 { 2_300 } else { 0 })
        };
        let journeys = self.send(frames, LEN, gaps, Duration::from_millis(50))?;
        let mut model: Link<Vec<u8>> = Link::new(config, 1)?;
        let mut differences = Vec::with_capacity(journeys.len());
        let mut arrivals = journeys.iter();
        for journey in &journeys {
            // The model has no limit that could drop a frame.
            let _ = model.handle_frame(journey.sent, vec![0; LEN]);
        }
        while let Some(at) = model.next_event() {
            while let Some(output) = model.poll(at) {
                if let (Output::Deliver { due, .. }, Some(journey)) = (output, arrivals.next()) {
                    differences.push(journey.arrived.signed_nanos_since(due));
                }
            }
        }
        Ok(DifferenceSummary::of(differences))
    }

    /// Sends `frames` frames and waits for them, at most [`PATIENCE`] longer than `longest`.
    fn send(
        &mut self,
        frames: u32,
        len: usize,
        gap: impl Fn(u32) -> Duration,
        longest: Duration,
    ) -> Result<Vec<Journey>, Error> {
        let mut sent: Vec<Option<Time>> = Vec::with_capacity(frames as usize);
        let mut arrived: Vec<Option<Time>> = vec![None; frames as usize];
        for number in 0..frames {
            let before = clock::realtime();
            let bytes = frame(u64::from(number), len);
            packet::send(self.from.as_fd(), &bytes)
                .map_err(|source| Error::System { doing: "sending a frame", source })?;
            // Where the device gives no stamp, the time before the call has to do.
            sent.push(Some(self.from.take_send_time()?.unwrap_or(before)));
            let pause = gap(number);
            if !pause.is_zero() {
                thread::sleep(pause);
            }
            self.collect(&mut arrived)?;
        }
        let deadline = clock::monotonic() + longest + PATIENCE;
        while arrived.iter().any(Option::is_none) && clock::monotonic() < deadline {
            thread::sleep(Duration::from_micros(500));
            self.collect(&mut arrived)?;
        }
        let journeys: Vec<Journey> = sent
            .iter()
            .zip(&arrived)
            .filter_map(|(sent, arrived)| Some(Journey { sent: (*sent)?, arrived: (*arrived)? }))
            .collect();
        let lost = sent.len() - journeys.len();
        if lost > 0 {
            return Err(Error::CalibrationLost { sent: sent.len(), lost });
        }
        Ok(journeys)
    }

    fn collect(&self, arrived: &mut [Option<Time>]) -> Result<(), Error> {
        let Some(to) = &self.to else { return Ok(()) };
        let mut buffer = [0; 2048];
        while let Some((len, stamp)) = to.receive_stamped(&mut buffer)? {
            let at = stamp.unwrap_or_else(clock::realtime);
            if let Some(place) = buffer
                .get(..len)
                .and_then(number)
                .and_then(|number| arrived.get_mut(usize::try_from(number).ok()?))
            {
                *place = place.or(Some(at));
            }
        }
        Ok(())
    }

    fn capacity(&self, len: u32, options: &CalibrationOptions) -> Result<Capacity, Error> {
        const WARM_UP: Duration = Duration::from_millis(60);
        let end = clock::monotonic() + WARM_UP + options.capacity_time + WARM_UP;
        let stop = AtomicBool::new(false);
        let flooding = || flood(&self.from, len as usize, options, end, &stop);
        let (before, after) = thread::scope(|scope| {
            let thread = thread::Builder::new().name("flood".to_owned());
            let starting =
                |source| Error::System { doing: "starting a thread to calibrate", source };
            thread.spawn_scoped(scope, flooding).map_err(starting)?;
            thread::sleep(WARM_UP);
            let before = self.pump.stats(self.link);
            thread::sleep(options.capacity_time);
            let after = self.pump.stats(self.link);
            stop.store(true, Ordering::Relaxed);
            Ok::<_, Error>((before, after))
        })?;
        Ok(rates(&before?, &after?, len))
    }
}

fn rates(before: &Stats, after: &Stats, frame_bytes: u32) -> Capacity {
    let (old, new) = (&before.thread, &after.thread);
    let wall = new.wall.saturating_sub(old.wall).as_secs_f64().max(1e-9);
    let cpu = new.cpu.saturating_sub(old.cpu).as_secs_f64();
    let spun = new.spun.saturating_sub(old.spun).as_secs_f64();
    let (first, last) = (&before.forward.pump, &after.forward.pump);
    let given = (last.given - first.given) as f64;
    let lost = last.ring_full - first.ring_full;
    let offered = (last.taken - first.taken + lost) as f64;
    let calls = (new.send_calls + new.receive_calls + new.wait_calls)
        - (old.send_calls + old.receive_calls + old.wait_calls);
    Capacity {
        frame_bytes,
        frames_per_second: given / wall,
        offered_per_second: offered / wall,
        cpu_ns_per_frame: (cpu - spun).max(0.0) * 1e9 / given.max(1.0),
        calls_per_frame: calls as f64 / given.max(1.0),
        busy: ((cpu - spun).max(0.0) / wall).min(1.0),
    }
}

/// Sends as fast as it can until told to stop, but not past `end`.
fn flood(
    from: &PacketSocket,
    len: usize,
    options: &CalibrationOptions,
    end: Time,
    stop: &AtomicBool,
) {
    const FRAMES: usize = 64;
    // Where these are refused the sender is slower, which `Capacity::busy` shows.
    if let Some(cpu) = options.sender_cpu {
        let _ = packet::thread::pin(cpu);
    }
    if options.sender_realtime {
        let _ = packet::thread::try_round_robin(1);
    }
    let bytes = frame(u64::MAX, len);
    let mut batch = SendBatch::new(FRAMES);
    let mut now = clock::monotonic();
    let mut rest = Rest::new(now);
    while now < end && !stop.load(Ordering::Relaxed) {
        let frames = std::iter::repeat_n(bytes.as_slice(), FRAMES);
        if batch.send(from.as_fd(), frames).is_err() {
            // The device's queue is full.
            thread::yield_now();
        }
        now = clock::monotonic();
        if let Some(pause) = rest.wanted(now).filter(|_| options.sender_realtime) {
            thread::sleep(pause);
        }
    }
}

fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len.max(60)];
    // Locally administered addresses, to a station that does not exist.
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    frame[NUMBER].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.get(12..14)? == ETHER_TYPE).then_some(())?;
    bytes.get(NUMBER)?.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_gives_its_number_back_and_no_other_frame_has_one() {
        assert_eq!(number(&frame(77, 100)), Some(77));
        assert_eq!(frame(1, 10).len(), 60);
        assert_eq!(number(&[0; 60]), None);
        assert_eq!(number(&[]), None);
    }
}
