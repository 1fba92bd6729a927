//! What `wiretax observe` prints and writes when it has seen all.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use capture::Identity;
use observe::{Findings, findings};
use report::{Cell, Column, Row, Table};
use tracker::Counters;

use crate::exit::{Exit, Failed, OrExit};
use crate::observe_args::ObserveArgs;
use crate::observe_sinks::{LISTED, Sinks};
use crate::output::{say, terminal_width};
use crate::talk::Talk;

/// Files that are written at the end: claimed at the beginning, so that one that cannot be written is
/// known before time is spent.
pub struct Late {
    html: Option<(PathBuf, Option<File>)>,
    rtt: Option<(PathBuf, Option<File>)>,
}

impl Late {
    /// Looks whether the files can be written. `keep_open`: rights are given up before they are, so
    /// they are opened now.
    pub fn open(args: &ObserveArgs, keep_open: bool) -> Result<Late, Failed> {
        let claim = |path: &Option<PathBuf>| -> Result<_, Failed> {
            let Some(path) = path else { return Ok(None) };
            let was_there = path.exists();
            let file = File::options().write(true).create(true).truncate(keep_open).open(path);
            let file = file
                .with_context(|| {
                    format!("{} cannot be written; hint: name another file", path.display())
                })
                .or_exit(Exit::Results)?;
            if keep_open {
                return Ok(Some((path.clone(), Some(file))));
            }
            if !was_there {
                // Nothing half-written is left if the program is killed.
                let _ = std::fs::remove_file(path);
            }
            Ok(Some((path.clone(), None)))
        };
        Ok(Late { html: claim(&args.results.html)?, rtt: claim(&args.results.rtt_out)? })
    }
}

/// Gives a folder for rows that root has just made to whom the process will run as. `is_new`: it was not
/// there before.
pub fn hand_over(folder: &Path, is_new: bool) -> Result<(), Failed> {
    let failed = || format!("{} cannot be given to the user who called", folder.display());
    let owner = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.uid());
    let Some(Identity { user, group }) = capture::identity_after() else { return Ok(()) };
    if !is_new && owner(folder).with_context(failed).or_exit(Exit::Results)? == 0 {
        let shown = folder.display();
        let error = anyhow!(
            "{shown} belongs to root, and a capture goes on as user {user}; hint: name a new folder, or \
             `chown -R {user} {shown}`"
        );
        return Err(Failed { exit: Exit::Results, error });
    }
    for entry in ["", "connections", "endings"] {
        let path = folder.join(entry);
        if owner(&path).is_ok_and(|owner| owner == 0) {
            chown(&path, Some(user), Some(group)).with_context(failed).or_exit(Exit::Results)?;
        }
    }
    Ok(())
}

/// Prints and writes what the records say.
pub fn publish(
    args: &ObserveArgs,
    sinks: Sinks,
    counters: &Counters,
    late: Late,
    talk: &Talk,
) -> Result<(), Failed> {
    let prints = !args.json.json && !sinks.unread;
    // Modes and intervals are drawn: nothing to do for a stream of records alone.
    let found = (prints || late.html.is_some()).then(|| findings(&sinks.digest));
    if let Some(findings) = found.as_ref().filter(|_| prints) {
        let mut text = String::new();
        if !sinks.listed.is_empty() && sinks.listed.len() <= LISTED {
            text += &connections(&sinks.listed).to_text(terminal_width());
            text.push('\n');
        }
        text += &findings.text(terminal_width());
        say(&text)?;
    }
    if sinks.listed.len() > LISTED && !args.json.json {
        talk.advice("--json prints every connection");
    }
    if counters.dropped > 0 {
        talk.warning(format!(
            "{} connections were dropped because there were more than {} at once",
            counters.dropped, args.reading.max_connections
        ));
        talk.advice("give a larger --max-connections");
    }
    if let (Some((path, file)), Some(findings)) = (late.html, &found) {
        write_report(findings, &path, file)?;
        talk.note(format!("report: {}", path.display()));
    }
    if let Some((path, file)) = late.rtt {
        write_round_trips(&sinks, &path, file)?;
        talk.note(format!("round-trip times: {}", path.display()));
    }
    Ok(())
}

fn write_report(findings: &Findings, path: &Path, file: Option<File>) -> Result<(), Failed> {
    let mut report = findings.report().or_exit(Exit::Results)?;
    report.command = std::env::args().collect::<Vec<_>>().join(" ");
    match file {
        None => report.write_to(path).map(|_| ()).or_exit(Exit::Results),
        Some(mut file) => write_text(&mut file, &report::render(&report), path),
    }
}

fn write_round_trips(sinks: &Sinks, path: &Path, file: Option<File>) -> Result<(), Failed> {
    let text = sinks.digest.client_rtts().to_json().or_exit(Exit::Results)?;
    match file {
        None => replace(path, &text),
        Some(mut file) => write_text(&mut file, &text, path),
    }
}

fn write_text(file: &mut File, text: &str, path: &Path) -> Result<(), Failed> {
    file.write_all(text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
        .or_exit(Exit::Results)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> Result<(), Failed> {
    let failed = || format!("{} cannot be written", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let write = || -> anyhow::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
        new.write_all(text.as_bytes()).with_context(failed)?;
        new.persist(path).with_context(failed)?;
        Ok(())
    };
    write().or_exit(Exit::Results)
}

/// Each connection in a line.
fn connections(rows: &[export::Row]) -> Table {
    let columns = vec![
        Column::new("Client"),
        Column::new("Server"),
        Column::new("Version"),
        Column::new("Suite"),
        Column::new("Class"),
        Column::new("handshake").unit("ms"),
        Column::new("think").unit("ms"),
        Column::new("RTT").unit("ms"),
        Column::new("round trips"),
        Column::new("Remarks"),
    ];
    let mut table = Table::new("Connections with TLS", columns);
    for row in rows {
        let ms = |nanos: Option<u64>| match nanos {
            Some(nanos) => Cell::number(nanos as f64 / 1e6, 3),
            None => Cell::text("-"),
        };
        let text =
            |text: &Option<String>| Cell::text(text.clone().unwrap_or_else(|| "-".to_owned()));
        let server = match &row.sni {
            Some(name) => format!("{name}:{}", row.server_port),
            None => format!("{}:{}", row.server, row.server_port),
        };
        table.push(Row::new(vec![
            Cell::text(format!("{}:{}", row.client, row.client_port)),
            Cell::text(server),
            text(&row.version),
            text(&row.cipher_suite),
            text(&row.class),
            ms(row.tls_handshake),
            ms(row.think),
            ms(row.round_trip),
            row.tls_round_trips.map_or_else(|| Cell::text("-"), |n| Cell::number(n, 2)),
            Cell::text(remarks(row)),
        ]));
    }
    table
}

fn remarks(row: &export::Row) -> String {
    let mut remarks = Vec::new();
    if row.transport == "quic" {
        remarks.push("QUIC".to_owned());
    }
    if let (Some(alert), Some(from)) = (&row.alert, &row.alert_from) {
        remarks.push(format!("alert of the {from}: {alert}"));
    }
    if let Some(early) = row.early_data.as_deref().filter(|early| *early != "not_offered") {
        remarks.push(format!("early data {early}"));
    }
    if row.ended == "reset" {
        remarks.push("reset".to_owned());
    }
    if !row.uncertain.is_empty() {
        remarks.push(format!("uncertain: {}", row.uncertain.join(", ")));
    }
    remarks.join("; ")
}
