//! `wiretax observe`: how long clients took, from captures or an interface.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use capture::{Event, Filter, Frame, Live, LiveOptions, Merge};
use tracker::{Counters, HandOut, KeyLog, Limits, LinkType, Tracker};

use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::interrupt::Interrupt;
use crate::observe_args::{ObserveArgs, ObserveCommand};
use crate::observe_live::Now;
use crate::observe_metrics::Gauges;
use crate::observe_results::{Late, hand_over, publish};
use crate::observe_sinks::Sinks;
use crate::talk::{Progress, Talk};

/// Frames between two looks at signals and at the clock.
const BETWEEN_LOOKS: u32 = 4096;
/// Connections whose keys are kept at most.
const KEYS: usize = 1_000_000;
/// The longest wait for a frame of a live capture.
const WAIT: Duration = Duration::from_millis(200);
/// Time between two Parquet files of a live capture at most.
const BETWEEN_FILES: Duration = Duration::from_secs(300);
/// Time between two live views.
const BETWEEN_VIEWS: Duration = Duration::from_secs(1);

/// Observes, or does what the subcommand says.
pub fn observe(args: &ObserveArgs, talk: &Talk) -> Outcome {
    match &args.command {
        Some(ObserveCommand::Query(args)) => crate::observe_query::query(args, talk),
        None if args.live.interface.is_empty() => files(args, talk),
        None => live(args, talk),
    }
}

/// What turns frames into records, and where these go.
struct Reading {
    tracker: Tracker,
    sinks: Sinks,
    /// Frames of link types that are not read, by number.
    unread_links: BTreeMap<u32, u64>,
    /// Frames that the kernel lost.
    lost: u64,
    key_log: KeyLog,
}

impl Reading {
    fn open(args: &ObserveArgs) -> Result<Reading, Failed> {
        let run = format!("{:016x}", seed_of_run());
        let sinks = Sinks::open(args, &run)?;
        let limits = Limits {
            connections: args.reading.max_connections,
            seed: seed_of_run(),
            hand_out: HandOut::AfterHandshake,
            ..Limits::default()
        };
        let mut reading = Reading {
            tracker: Tracker::new(limits),
            sinks,
            unread_links: BTreeMap::new(),
            lost: 0,
            key_log: KeyLog::new(KEYS),
        };
        if let Some(file) = &args.reading.key_log {
            reading.read_key_log(file)?;
        }
        Ok(reading)
    }

    fn read_key_log(&mut self, file: &Path) -> Result<(), Failed> {
        let text = crate::files::read_text(file, "key log")?;
        self.add_keys(text.as_bytes());
        if self.key_log.connections() == 0 {
            let shown = file.display();
            let error = anyhow!(
                "{shown} has no keys of TLS 1.3; hint: it is what programs write to SSLKEYLOGFILE"
            );
            return Err(Failed { exit: Exit::Usage, error });
        }
        Ok(())
    }

    fn add_keys(&mut self, text: &[u8]) {
        self.key_log.read(text);
        self.tracker.set_key_log(Arc::new(self.key_log.clone()));
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Failed> {
        match LinkType::from_number(frame.link) {
            Some(link) => {
                self.tracker.handle_packet(frame.at, link, frame.bytes, frame.original_len);
            }
            None => *self.unread_links.entry(frame.link).or_default() += 1,
        }
        while let Some(output) = self.tracker.poll_output() {
            self.sinks.take(output)?;
        }
        Ok(())
    }

    fn show_metrics(&self) {
        if let Some(gauges) = &self.sinks.gauges {
            gauges.set(*self.tracker.counters(), self.tracker.active(), self.lost);
        }
    }

    /// Gives out what is still open. Where the records went, what the tracker counted in the end, and
    /// frames of link types that are not read.
    fn finish(mut self) -> Result<(Sinks, Counters, BTreeMap<u32, u64>), Failed> {
        self.tracker.close();
        while let Some(output) = self.tracker.poll_output() {
            self.sinks.take(output)?;
        }
        let counters = *self.tracker.counters();
        self.sinks.digest.count_frames(&counters);
        self.sinks.digest.count_lost(self.lost);
        self.sinks.finish()?;
        Ok((self.sinks, counters, self.unread_links))
    }
}

/// Differs from run to run: keys hash tables, names the run in rows.
fn seed_of_run() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

fn source_failed(error: capture::Error) -> Failed {
    let exit = match &error {
        capture::Error::NotPermitted { .. } | capture::Error::Wait(_) => Exit::Machine,
        capture::Error::Interface { .. } => Exit::Machine,
        _ => Exit::Usage,
    };
    Failed { exit, error: error.into() }
}

fn files(args: &ObserveArgs, talk: &Talk) -> Outcome {
    let late = Late::open(args, false)?;
    let mut reading = Reading::open(args)?;
    serve_metrics(args, &mut reading, talk)?;
    let interrupt = Interrupt::listen()?;
    // A pipe is waited for here.
    let mut source = Merge::open(&args.files).map_err(source_failed)?;
    let mut progress = talk.progress();
    let read = read_files(&mut source, &mut reading, &interrupt, &mut progress);
    progress.finish();
    for cut in source.cuts() {
        talk.warning(format!("{cut}; what is whole was read"));
    }
    let unread = reading.sinks.unread;
    // What was read before a failure is shown too.
    let (sinks, counters, links) = reading.finish()?;
    for (link, frames) in &links {
        talk.warning(format!(
            "{frames} frames of link type {link} were passed over: it is not read"
        ));
    }
    publish(args, sinks, &counters, late, talk)?;
    match read {
        Err(failed) => Err(failed.into()),
        Ok(()) if interrupt.came() && !unread => {
            talk.note("interrupted; this is what was read until then");
            Ok(Exit::Interrupted)
        }
        Ok(()) => Ok(Exit::Done),
    }
}

fn read_files(
    source: &mut Merge,
    reading: &mut Reading,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<(), Failed> {
    let began = Instant::now();
    let mut until_look = BETWEEN_LOOKS;
    loop {
        match source.next().map_err(source_failed)? {
            Some(Event::Frame(frame)) => reading.frame(&frame)?,
            Some(Event::KeyLog(text)) => reading.add_keys(text),
            Some(_) => {}
            None => return Ok(()),
        }
        if reading.sinks.unread {
            return Ok(());
        }
        until_look -= 1;
        if until_look == 0 {
            until_look = BETWEEN_LOOKS;
            if interrupt.came() {
                return Ok(());
            }
            reading.sinks.flush()?;
            reading.show_metrics();
            show_progress(source, reading.tracker.counters(), began.elapsed(), progress);
        }
    }
}

fn show_progress(source: &Merge, counters: &Counters, took: Duration, progress: &mut Progress) {
    let at = source.progress();
    let share = at.of.map_or(0.0, |of| at.read as f64 / of.max(1) as f64).clamp(1e-6, 1.0);
    let text = format!("reading: {} connections", counters.connections);
    progress.show(&text, took, took.div_f64(share).min(Duration::from_secs(1 << 30)));
}

fn serve_metrics(args: &ObserveArgs, reading: &mut Reading, talk: &Talk) -> Result<(), Failed> {
    let Some(address) = args.results.prometheus else { return Ok(()) };
    let gauges = Arc::new(Gauges::default());
    let page = Arc::clone(&gauges);
    let listening = metrics::serve_on_thread(address, Arc::new(move || page.page()))
        .with_context(|| format!("metrics cannot be served at {address}; hint: take another port"))
        .or_exit(Exit::Machine)?;
    talk.note(format!("metrics at http://{listening}/metrics"));
    reading.sinks.gauges = Some(gauges);
    Ok(())
}

fn live(args: &ObserveArgs, talk: &Talk) -> Outcome {
    let mut options = LiveOptions::default();
    options.filter = Filter { ports: args.live.port.clone(), ..Filter::default() };
    options.promiscuous = args.live.promiscuous;
    let mut source = Live::open(&args.live.interface, &options).map_err(source_failed)?;
    // All that needs rights is opened before they are given up, and threads begin after.
    let late = Late::open(args, true)?;
    let is_new = args.results.parquet.as_ref().is_some_and(|folder| !folder.exists());
    let mut reading = Reading::open(args)?;
    if let Some(folder) = &args.results.parquet {
        hand_over(folder, is_new)?;
    }
    let dropped = capture::drop_privileges()
        .context("rights that are no longer needed could not be given up")
        .or_exit(Exit::Machine)?;
    if let Some(identity) = dropped.identity {
        talk.note(format!("captures go on as user {} of group {}", identity.user, identity.group));
    }
    let interrupt = Interrupt::listen()?;
    serve_metrics(args, &mut reading, talk)?;
    reading.sinks.now = Some(Now::default());
    let view = talk.view();
    let names: Vec<_> = source.names().map(str::to_owned).collect();
    talk.note(format!("capturing on {}; Ctrl-C ends it", names.join(", ")));
    let captured = capture_live(args, &mut source, &mut reading, &interrupt, &view);
    view.finish();
    let (sinks, counters, _) = reading.finish()?;
    publish(args, sinks, &counters, late, talk)?;
    captured?;
    Ok(Exit::Done)
}

fn capture_live(
    args: &ObserveArgs,
    source: &mut Live,
    reading: &mut Reading,
    interrupt: &Interrupt,
    view: &crate::talk::View,
) -> Result<(), Failed> {
    let began = Instant::now();
    let end = args.live.duration.map(|duration| began + duration.duration());
    let (mut viewed, mut saved) = (began, began);
    while !interrupt.came() && !reading.sinks.unread && end.is_none_or(|end| Instant::now() < end) {
        let mut until_look = BETWEEN_LOOKS;
        while let Some(frame) = source.next() {
            reading.frame(&frame)?;
            until_look -= 1;
            if until_look == 0 {
                break;
            }
        }
        let now = Instant::now();
        if now - viewed >= BETWEEN_VIEWS {
            reading.lost = source.statistics().map_err(source_failed)?.drops;
            reading.show_metrics();
            reading.sinks.flush()?;
            let counters = *reading.tracker.counters();
            let (active, lost) = (reading.tracker.active(), reading.lost);
            if let Some(state) = &mut reading.sinks.now {
                view.show(state.text(now - began, now - viewed, &counters, active, lost));
            }
            viewed = now;
        }
        if now - saved >= BETWEEN_FILES {
            reading.sinks.save()?;
            saved = now;
        }
        if until_look > 0 {
            let left = end.map_or(WAIT, |end| end.saturating_duration_since(now).min(WAIT));
            source.wait(left).map_err(source_failed)?;
        }
    }
    reading.lost = source.statistics().map_err(source_failed)?.drops;
    Ok(())
}
