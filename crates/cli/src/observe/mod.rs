//! `wiretax observe`: how long clients took, from captures or an interface.

mod args;
mod query;
mod results;
mod tickets;

use std::sync::Arc;
use std::time::Duration;

use capture::{Doubts, Filter, Live, LiveOptions, Merge};
use export::{DataSet, Names};
use fault::{Fault, OrProblem, Problem, WhileDoing};
use observe::Options;
use observe::reading::{self, Hidden, Read, Reading, SinkOptions, Times, View};
use outfile::Folder;
use study::Watcher;
use tracker::KeyLog;
use units::{Delay, counted};

pub use self::args::ObserveArgs;
use self::args::ObserveCommand;
use self::results::{Files, publish};
use crate::diagnostics::{self, Diagnostics, Progress};
use crate::exit::{Exit, Outcome};
use crate::interrupt::{Interrupt, ends_at_once};
use crate::output::json_lines;
use crate::rights;

/// Observes, or does what the subcommand says.
pub fn observe(args: &ObserveArgs, diagnostics: &Diagnostics) -> Outcome {
    match &args.command {
        Some(ObserveCommand::Query(args)) => {
            ends_at_once(diagnostics)?;
            self::query::query(args, diagnostics)
        }
        Some(ObserveCommand::Tickets(args)) => {
            ends_at_once(diagnostics)?;
            self::tickets::tickets(args)
        }
        None if args.live.interface.is_empty() => files(args, diagnostics),
        None => live(args, diagnostics),
    }
}

/// Arguments that are checked before any capture or output is touched.
struct Checked {
    hidden: Hidden,
    /// Keys of the sessions.
    keys: Vec<u8>,
}

impl Checked {
    fn of(args: &ObserveArgs) -> Result<Checked, Problem> {
        if let Some(address) = args.results.prometheus {
            crate::remote::only_local("--prometheus", address, args.results.allow_remote)?;
        }
        for file in args.files.iter().filter(|file| file.as_os_str() != capture::STDIN) {
            // Opening it would wait for the writer of a pipe.
            let found = std::fs::metadata(file).blame(Fault::Caller);
            found.while_doing(|| format!("{} cannot be read", file.display()))?;
        }
        let hidden = hidden(args)?;
        let Some(file) = &args.reading.key_log else {
            return Ok(Checked { hidden, keys: Vec::new() });
        };
        let keys = study::Options::none().key_log_of(file)?;
        let mut known = KeyLog::new(args.reading.max_connections);
        known.read(&keys);
        if known.connections() == 0 {
            let what = format!("{} has no keys of TLS 1.3", file.display());
            let remedy = "give what programs write to SSLKEYLOGFILE";
            return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
        }
        Ok(Checked { hidden, keys })
    }
}

/// `folder`: that of `--parquet`, if it is open.
fn open(
    args: &ObserveArgs,
    Checked { hidden, keys }: Checked,
    folder: Option<Folder>,
) -> Result<Reading, Problem> {
    let rows = export::Options::default();
    let parquet = args.results.parquet.as_deref().map(|path| match folder {
        Some(folder) => DataSet::in_folder(folder, rows),
        None => DataSet::open(path, rows),
    });
    let (prefix4, prefix6) = args.picture.prefix;
    let digest = Options {
        bin: args.picture.bin.duration(),
        prefix4,
        prefix6,
        seed: args.picture.seed,
        ..Options::default()
    };
    let options = SinkOptions {
        digest,
        hidden,
        json: args.json.json.then(json_lines).transpose()?.map(|lines| Box::new(lines) as _),
        parquet: parquet.transpose()?,
        captures: match args.results.parquet {
            Some(_) => args.files.iter().filter_map(|file| reading::beginning(file)).collect(),
            None => Vec::new(),
        },
        again: args.results.again,
        tickets: args.picture.tickets,
    };
    let live = !args.live.interface.is_empty();
    let threads = if live { listeners(args) } else { threads(args) };
    let mut reading = Reading::open(options, args.reading.max_connections, threads)?;
    reading.add_keys(&keys);
    Ok(reading)
}

fn hidden(args: &ObserveArgs) -> Result<Hidden, Problem> {
    let names = if args.results.anonymise_names { Names::Hash } else { Names::Keep };
    let key = args.results.anonymise_key.as_ref().map(|file| {
        let text = study::Options::none().text_of(file, "key")?;
        text.parse::<export::Key>().while_doing(|| file.display())
    });
    Ok(Hidden { addresses: args.results.anonymise, names, key: key.transpose()? })
}

fn files(args: &ObserveArgs, diagnostics: &Diagnostics) -> Outcome {
    let checked = Checked::of(args)?;
    let late = Files::claim(args, false)?;
    let mut reading = open(args, checked, None)?;
    serve_metrics(args, &mut reading, diagnostics)?;
    let interrupt = Interrupt::listen()?;
    // A pipe is waited for here, until the user wants to stop.
    let mut source = Merge::open(&args.files)?;
    let mut following = Following {
        diagnostics,
        interrupt: &interrupt,
        progress: diagnostics.progress(),
        view: None,
    };
    let read = reading.files(&mut source, &mut following);
    following.finish();
    for cut in source.cuts() {
        diagnostics.warning(format!("{cut}; what is whole was read"));
    }
    let doubts = source.doubts();
    warn_of_doubts(doubts, diagnostics);
    let unread = reading.is_unread();
    // What was read before a failure is shown too.
    let mut left = reading.finish()?;
    for (link, count) in &left.unread_links {
        diagnostics.warning(format!(
            "{} of {} skipped: unsupported link type",
            counted(*count, "frame"),
            link_type(*link)
        ));
    }
    note_unread_quic(args, &left, diagnostics);
    warn_of_wrappings(&left, diagnostics);
    publish(args, &left, late, diagnostics)?;
    if !child::is_cut_short() {
        read?;
    }
    left.sinks.unsaved.take().map_or(Ok(()), Err)?;
    if interrupt.came() && !unread {
        diagnostics.note("interrupted; this is what was read until then");
        return Ok(Exit::Interrupted);
    }
    nothing_read(&left, doubts.misdated).map_or(Ok(Exit::Done), Err)
}

/// Says which frames make the result worth less, and how to capture better.
fn warn_of_doubts(doubts: Doubts, diagnostics: &Diagnostics) {
    let frames = |count: u64| counted(count, "frame");
    if doubts.cut_short > 0 {
        diagnostics.warning_with_remedy(
            format!(
                "{} cut short by the capture's snap length: of a handshake in them little or nothing can be told",
                frames(doubts.cut_short)
            ),
            Some("capture whole frames, as `tcpdump -s 0` does"),
        );
    }
    if doubts.out_of_order > 0 {
        diagnostics.warning_with_remedy(
            format!(
                "{} more than a second earlier than frames before: times may be wrong",
                frames(doubts.out_of_order)
            ),
            Some("sort them with `reordercap IN OUT`"),
        );
    }
    if doubts.leaps > 0 {
        diagnostics.warning_with_remedy(
            format!(
                "{} more than a day later than all frames before: if a clock was set, durations \
                 across it are wrong",
                frames(doubts.leaps)
            ),
            Some("split the capture there with `editcap -A START -B STOP IN OUT`"),
        );
    }
    if doubts.misdated > 0 {
        diagnostics.warning(format!(
            "{} skipped: their times lie before 1970 or after 2554",
            frames(doubts.misdated)
        ));
    }
    if doubts.timeless > 0 {
        diagnostics.warning_with_remedy(
            format!(
                "{} without a time (Simple Packet Blocks): durations mean nothing",
                frames(doubts.timeless)
            ),
            Some("capture to pcap, or to pcapng with Enhanced Packet Blocks"),
        );
    }
}

/// Names the wrappings that hide frames.
fn warn_of_wrappings(left: &Read, diagnostics: &Diagnostics) {
    for (wrapping, count) in left.counters.wrapped.counts() {
        diagnostics.warning_with_remedy(
            format!("{} wrapped in {}: not read", counted(count, "frame"), wrapping.name()),
            Some("capture where the traffic enters or leaves it"),
        );
    }
}

/// The problem of a capture in which no handshake could be read; `None` if one was.
fn nothing_read(left: &Read, misdated: u64) -> Option<Problem> {
    let problem = |what: String, remedy| {
        let problem = Problem::new(Fault::Measurement, format!("nothing was read: {what}"));
        Some(problem.with_remedy(remedy))
    };
    let counters = &left.counters;
    if counters.frames == 0 {
        if misdated > 0 {
            return problem(
                format!("{}, all with impossible times", counted(misdated, "frame")),
                "correct them with `editcap -t SECONDS IN OUT`",
            );
        }
        let Some((link, _)) = left.unread_links.first_key_value() else {
            return problem("there is no frame".to_owned(), "capture for a longer time");
        };
        return problem(
            format!("all frames were skipped: unsupported link type, as {}", link_type(*link)),
            "capture where the frames are Ethernet, IP, PPP or Linux cooked",
        );
    }
    let seen = counters.connections + counters.dropped + counters.quic_unread + counters.dtls;
    if seen > 0 {
        return None;
    }
    if counters.other < counters.frames {
        let frames = counted(counters.frames, "frame");
        return problem(
            format!("{frames}, and no handshake of TCP or QUIC in them"),
            "begin the capture before the connections",
        );
    }
    problem(
        format!("{}, none with TCP or UDP over IP", counted(counters.frames, "frame")),
        "look at one with `tshark -V -c 1 -r FILE`, and capture where TLS is in TCP or QUIC",
    )
}

/// A link type by number and name.
fn link_type(number: u32) -> String {
    match capture::link_type_name(number) {
        Some(name) => format!("link type {number} ({name})"),
        None => format!("link type {number}"),
    }
}

/// Says which versions of QUIC were passed over: in JSON no line counts them.
fn note_unread_quic(args: &ObserveArgs, left: &Read, diagnostics: &Diagnostics) {
    if args.json.json && !left.unread_quic.is_empty() {
        let each = left.unread_quic.iter().map(|(version, count)| format!("{version}: {count}"));
        let each: Vec<String> = each.collect();
        diagnostics.note(format!(
            "QUIC connections of unsupported versions were skipped: {}",
            each.join(", ")
        ));
    }
}

fn serve_metrics(
    args: &ObserveArgs,
    reading: &mut Reading,
    diagnostics: &Diagnostics,
) -> Result<(), Problem> {
    let Some(address) = args.results.prometheus else { return Ok(()) };
    let page = reading.count_for_metrics();
    let listening = metrics::serve_on_thread(address, Arc::new(move || page.page()));
    let listening = listening.map_err(|error| {
        Problem::of(Fault::Machine, error)
            .while_doing(format!("metrics cannot be served at {address}"))
            .with_remedy("take another port")
    })?;
    diagnostics.note(format!("metrics at http://{listening}/metrics"));
    Ok(())
}

/// Threads for all that is not live: as many as there are processors unless another number is asked for.
fn threads(args: &ObserveArgs) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(8);
    args.reading.threads.unwrap_or_else(processors)
}

/// Threads of a live capture: one unless more are asked for, since tunnels over UDP may have one address
/// and two hashes.
fn listeners(args: &ObserveArgs) -> usize {
    args.reading.threads.unwrap_or(1)
}

fn live(args: &ObserveArgs, diagnostics: &Diagnostics) -> Outcome {
    let checked = Checked::of(args)?;
    // All that needs rights is opened before they are given up, and threads begin after. Only root's own
    // outputs need rights. They come first: who keeps the rights for them gets no descriptor of a capture.
    let own = capture::heir().map(|_| Files::claim(args, true)).transpose()?;
    let mut options = LiveOptions::default();
    options.filter = Filter { ports: args.live.port.clone(), ..Filter::default() };
    options.promiscuous = args.live.promiscuous;
    options.ring.blocks = args.live.ring;
    let mut sources = Live::open_several(&args.live.interface, &options, listeners(args))?;
    let folder = args.results.parquet.as_deref().map(reading::hand_over).transpose()?.flatten();
    rights::give_up("captures continue", diagnostics)?;
    let late = own.map_or_else(|| Files::claim(args, false), Ok)?;
    let mut reading = open(args, checked, folder)?;
    let interrupt = Interrupt::listen()?;
    serve_metrics(args, &mut reading, diagnostics)?;
    let names = args.live.interface.join(", ");
    let times = times(args);
    diagnostics.note(format!("capturing on {names}; Ctrl-C ends it{}", kept(args, times)));
    let view = Some(diagnostics.view());
    let mut following =
        Following { diagnostics, interrupt: &interrupt, progress: diagnostics.progress(), view };
    let captured = reading.live(&mut sources, times, &mut following);
    following.finish();
    let mut left = reading.finish()?;
    note_unread_quic(args, &left, diagnostics);
    publish(args, &left, late, diagnostics)?;
    captured?;
    left.sinks.unsaved.take().map_or(Ok(()), Err)?;
    nothing_read(&left, 0).filter(|_| !interrupt.came()).map_or(Ok(Exit::Done), Err)
}

fn times(args: &ObserveArgs) -> Times {
    let (duration, usual) = (args.live.duration.map(Delay::duration), Times::default());
    Times { duration, flush: args.live.flush.map_or(usual.flush, Delay::duration) }
}

/// Says how many records a kill loses at most, where they are kept.
fn kept(args: &ObserveArgs, times: Times) -> String {
    if args.results.parquet.is_none() {
        return String::new();
    }
    let seconds = times.flush.as_secs();
    let lost = match seconds {
        60.. if seconds.is_multiple_of(60) => counted(seconds / 60, "minute"),
        seconds => counted(seconds, "second"),
    };
    format!("; if it is killed, the records of at most {lost} are lost")
}

/// Follows a reading.
struct Following<'a> {
    diagnostics: &'a Diagnostics,
    interrupt: &'a Interrupt,
    progress: Progress,
    /// Of a live capture.
    view: Option<diagnostics::View>,
}

impl Following<'_> {
    fn finish(&self) {
        self.progress.finish();
        if let Some(view) = &self.view {
            view.finish();
        }
    }
}

impl Watcher for Following<'_> {
    fn progress(&mut self, step: &str, done: Duration, total: Duration) {
        self.progress.show(step, done, total);
    }

    fn progress_without_end(&mut self, step: &str) {
        self.progress.show_without_end(step);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.came()
    }

    fn warning(&mut self, what: &str, remedy: Option<&str>) {
        self.diagnostics.warning_with_remedy(what, remedy);
    }

    fn note(&mut self, what: &str) {
        self.diagnostics.note(what);
    }
}

impl View for Following<'_> {
    fn now(&mut self, text: String) {
        if let Some(view) = &self.view {
            view.show(text);
        }
    }
}
