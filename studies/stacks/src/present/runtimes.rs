//! What a reader must know of libraries that live in programs of their own.

use report::{Inline, Note};

use super::Findings;
use crate::programs::{RUNTIMES, Runtime};
use crate::summary::Cell;
use tls_drivers::hosts::LOAD_CLIENT;

/// The cells of runtimes that were measured.
fn cells(findings: &Findings) -> impl Iterator<Item = (&'static Runtime, &Cell)> {
    findings.summary.cells.iter().filter(|cell| cell.is_good()).filter_map(|cell| {
        let runtime = RUNTIMES.iter().find(|one| one.name == cell.point.library)?;
        Some((runtime, cell))
    })
}

/// How runtimes were measured, and what of them was not; nothing where none was.
pub(super) fn notes(findings: &Findings) -> Vec<Note> {
    let measured: Vec<&Runtime> = RUNTIMES
        .iter()
        .filter(|runtime| cells(findings).any(|(one, _)| one.name == runtime.name))
        .collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let titles: Vec<String> =
        measured.iter().map(|runtime| findings.summary.title(runtime.name)).collect();
    let titles = titles.join(", ");
    let warm: Vec<String> =
        measured.iter().map(|runtime| format!("{}: {}", runtime.name, runtime.warm_up)).collect();
    let mut lines = vec![
        format!(
            "{titles}: each side is a program in a process of its own. Its CPU time is the whole \
             process's, garbage collection and compilation at run time included. Connections before \
             the measured time, so that code is compiled: {}. Java's gets faster for thousands more, \
             so its figures are upper ends.",
            warm.join(", ")
        ),
        "Of Go's, threads are processors at once (GOMAXPROCS); of Java's, threads that serve a \
         connection each, beside which the virtual machine has threads of its own."
            .to_owned(),
        "Java's server, once warm, serves all repeats of a point and idles while others take turns; \
         with its own client both are started anew each time."
            .to_owned(),
        "Resumption is read off the server's first flight, by each side on its own connections; Go's \
         ConnectionState.DidResume is held against it, Java's JSSE says nothing of its own."
            .to_owned(),
        "Not measured of them: bytes through memory (they bring their own connections), locks and \
         instructions (their locks are futexes of the runtime, which no interposer sees), light locks, \
         a context for each thread, the chain, records, and memory a connection (one heap holds all)."
            .to_owned(),
    ];
    if cells(findings).any(|(_, cell)| cell.point.client == LOAD_CLIENT) {
        lines.insert(
            1,
            "Their fixed client is this program's load generator (rustls), for the drivers' reference \
             client knows only servers in its own process. A server's CPU time is comparable all the \
             same; the rate is that of both sides together on the same cores, and differs with the \
             client."
                .to_owned(),
        );
    }
    lines.into_iter().map(|line| Note::info(Inline::new().text(line))).collect()
}

/// For a chart in which they stand beside drivers.
pub(super) fn beside(findings: &Findings) -> Option<Note> {
    let by_load = cells(findings).any(|(_, cell)| cell.point.client == LOAD_CLIENT);
    let text = "Go and Java serve another client than the libraries do: this program's load generator. \
                Rates are those of both sides together, so compare theirs by the server's CPU time.";
    by_load.then(|| Note::info(Inline::new().text(text)))
}
