//! `wiretax gateway survey`: asks, answers, and puts results together.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::fchown;
use std::path::Path;
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, WhileDoing};
use gateway::survey::{
    Fate, Group, RECORD_SCHEMA, Record, Survey, SurveyOptions, SurveyServeOptions, merge,
    serve_survey,
};
use gateway::{Common, Place};
use report::{Cell, Column, Row, Table};

use super::service::{self, LogForm};
use super::survey_args::{PlaceArgs, SurveyArgs, SurveyCommand, SurveyMergeArgs, SurveyServeArgs};
use super::{resolve, run};
use crate::exit::{Exit, Outcome};
use crate::interrupt::Asked;
use crate::output::{say, say_json, terminal_width};

/// How long questions that are being answered may go on after the end was asked for.
const DRAIN: Duration = Duration::from_secs(2);

/// Asks, answers or merges.
pub fn survey(args: &SurveyArgs, verbose: u8, quiet: bool) -> Outcome {
    service::log_to_stderr(verbose, quiet, LogForm::Text);
    match &args.other {
        Some(SurveyCommand::Serve(args)) => serve(args),
        Some(SurveyCommand::Merge(args)) => merged(args),
        None => asked(args),
    }
}

fn common(args: &PlaceArgs) -> Common {
    let place = match (&args.tun, args.redirect) {
        (Some(name), _) => Place::Tun { name: name.clone() },
        (None, true) => Place::Redirect { name: args.interface.clone() },
        (None, false) => Place::Interface { name: args.interface.clone() },
    };
    Common { address: args.address, router: args.router, drain: DRAIN, ..Common::new(place) }
}

fn serve(args: &SurveyServeArgs) -> Outcome {
    let first = args.listen.first().map(SocketAddr::ip);
    if args.listen.iter().any(|at| Some(at.ip()) != first) {
        let what = "--listen names more than one address";
        let remedy = "start a process for each address";
        return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
    }
    let options = SurveyServeOptions { common: common(&args.place), listen: args.listen.clone() };
    run(|ended| serve_survey(options, ended, || service::tell("READY=1")))
}

fn asked(args: &SurveyArgs) -> Outcome {
    let host = args.host.as_deref().unwrap_or_default();
    // A name with several addresses gives one for all ports.
    let first = args.port.first().map(|port| resolve(&with_port(host, *port))).transpose()?;
    let ports = first
        .iter()
        .flat_map(|(_, at)| args.port.iter().map(|port| SocketAddr::new(at.ip(), *port)));
    let options = SurveyOptions {
        common: common(&args.place),
        server: host.to_owned(),
        ports: ports.collect(),
        sizes: args.size.clone(),
        answer: args.answer,
        repeat: args.repeat,
        timeout: args.timeout.duration(),
        network: args.network.clone(),
    };
    // Root's own output needs rights, a caller's is opened with the caller's.
    let open = || args.out.as_deref().map(opened).transpose();
    let own = capture::heir().map(|_| open()).transpose()?;
    let (mut records, mut unwritten) = (Vec::new(), None);
    let runtime = crate::runtime::runtime()?;
    let interrupted = runtime.block_on(async {
        let mut signals = Asked::listen()?;
        let survey = Survey::begin(options)?;
        let mut file = own.map_or_else(open, Ok)?;
        let asking = survey.ask(|record| {
            if let Some(file) = &mut file
                && let Err(problem) = written(file, &record)
            {
                unwritten.get_or_insert(problem);
            }
            records.push(record);
        });
        Ok::<_, Problem>(tokio::select! {
            () = signals.next() => true,
            () = asking => false,
        })
    })?;
    runtime.shutdown_background();
    if let Some(problem) = unwritten {
        return Err(problem);
    }
    show(&merge(&records), args.json.json)?;
    Ok(match (interrupted, records.iter().all(Record::survived)) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Done,
        (false, false) => Exit::Found,
    })
}

/// `HOST:PORT` of a host as people write it.
fn with_port(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Opens a file to add to. A new one of root's own goes to whom the process will run as.
fn opened(path: &Path) -> Result<File, Problem> {
    let mut to_add = OpenOptions::new();
    to_add.append(true);
    let file = match (to_add.clone().create_new(true).open(path), capture::heir()) {
        // Of a link what it leads to is made.
        (Err(error), _) if error.kind() == ErrorKind::AlreadyExists => {
            to_add.create(true).open(path)
        }
        (Ok(file), Some(heir)) => fchown(&file, Some(heir.user), Some(heir.group)).map(|()| file),
        (file, _) => file,
    };
    file.blame(Fault::Results).while_doing(|| format!("{} cannot be written", path.display()))
}

fn written(file: &mut File, record: &Record) -> Result<(), Problem> {
    // By one call: a line is there whole, whatever ends the program.
    let line = serde_json::to_string(record).blame(Fault::Results)? + "\n";
    let written = file.write_all(line.as_bytes()).blame(Fault::Results);
    written.while_doing(|| "the results cannot be written")
}

fn merged(args: &SurveyMergeArgs) -> Outcome {
    let mut records = Vec::new();
    for path in &args.files {
        let text = study::Options::none().text_of(path, "survey result")?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let wrong = |what: &dyn std::fmt::Display| {
                let what = format!("{}, line {}: {what}", path.display(), number + 1);
                let remedy = "give files that `wiretax gateway survey HOST --out FILE` has written";
                Problem::new(Fault::Caller, what).with_remedy(remedy)
            };
            let record: Record = serde_json::from_str(line).map_err(|error| wrong(&error))?;
            if record.schema != RECORD_SCHEMA {
                return Err(wrong(&"it is of another version of this program"));
            }
            records.push(record);
        }
    }
    if records.is_empty() {
        let remedy = "give files that `wiretax gateway survey HOST --out FILE` has written";
        let what = "the files have no record of a survey";
        return Err(Problem::new(Fault::Measurement, what).with_remedy(remedy));
    }
    show(&merge(&records), args.json.json)?;
    Ok(Exit::Done)
}

fn show(groups: &[Group], json: bool) -> Result<(), Problem> {
    if json {
        let text = serde_json::to_string_pretty(groups).blame(Fault::Results)?;
        return say_json(&(text + "\n"));
    }
    say(&(table(groups).to_text(terminal_width()) + "\n"))
}

fn table(groups: &[Group]) -> Table {
    let columns = vec![
        Column::new("Way"),
        Column::new("port"),
        Column::new("in the SYN").unit("bytes"),
        Column::new("in the SYN+ACK").unit("bytes"),
        Column::new("connections"),
        Column::new("SYN's data"),
        Column::new("SYN+ACK's data"),
        Column::new("paths that carry both"),
        Column::new("SYN answered after").unit("ms"),
    ];
    let caption = "Data in the handshake's segments: what became of them";
    let mut table = Table::new(caption, columns);
    for group in groups {
        table.push(Row::new(vec![
            Cell::text(group.way.name()),
            Cell::text(group.port.to_string()),
            Cell::count(group.syn_bytes.into()),
            Cell::count(group.syn_ack_bytes.into()),
            Cell::count(group.connections),
            Cell::text(fates(group.syn.iter())),
            Cell::text(fates(group.syn_ack.iter())),
            Cell::text(format!("{} of {}", group.paths_carried, group.paths)),
            group.connect_ms.map_or(Cell::Empty, |ms| Cell::number(ms, 1)),
        ]));
    }
    table
}

fn fates<'a>(counts: impl Iterator<Item = (&'a Fate, &'a u64)>) -> String {
    let each = counts.map(|(fate, count)| format!("{count} {fate}"));
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_their_ports() {
        assert_eq!(with_port("192.0.2.1", 443), "192.0.2.1:443");
        assert_eq!(with_port("2001:db8::1", 443), "[2001:db8::1]:443");
        assert_eq!(with_port("[2001:db8::1]", 443), "[2001:db8::1]:443");
        assert_eq!(with_port("example.org", 80), "example.org:80");
    }
}
