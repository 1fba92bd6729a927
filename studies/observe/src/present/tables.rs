//! The tables, and the sections that hold them.

use report::{Cell, Column, Inline, Note, Row, Section, Table};
use stats::Estimate;

use crate::difference::{Compared, FEWEST};
use crate::findings::{ClassRow, Findings, Groups, Names, Reported, percent};
use crate::modes::Modes;

/// Rows of a table in the report.
const ROWS: usize = 40;

fn columns(names: &[(&str, &str)]) -> Vec<Column> {
    names.iter().map(|(title, unit)| Column::new(*title).unit(*unit)).collect()
}

fn estimate(estimate: Estimate, decimals: usize) -> Cell {
    Cell::estimate(estimate.value, estimate.low, estimate.high, decimals)
}

pub(super) fn classes(findings: &Findings) -> Table {
    let mut heads = vec![
        ("Version", ""),
        ("class", ""),
        ("handshakes", ""),
        ("share", "%"),
        ("to Finished", "ms"),
        ("think", "ms"),
        ("to data", "ms"),
        ("RTT", "ms"),
        ("Finished", "RTT"),
        ("left out", ""),
    ];
    let caption = "Handshakes by version and class (medians; from the ClientHello)";
    if findings.is_of_samples() {
        heads.insert(0, ("Clients", ""));
        let mut table = Table::new(caption, columns(&heads));
        for population in &findings.populations {
            for row in &population.classes {
                let cells = [vec![Cell::text(population.name.clone())], class_cells(row)].concat();
                table.push(Row::new(cells));
            }
        }
        return table;
    }
    let mut table = Table::new(caption, columns(&heads));
    for row in &findings.classes {
        table.push(Row::new(class_cells(row)));
    }
    table
}

fn class_cells(row: &ClassRow) -> Vec<Cell> {
    vec![
        Cell::text(row.kind.to_string()),
        Cell::text(row.class.name()),
        Cell::count(row.count),
        Cell::number(row.percent, 1),
        Cell::known(row.handshake_ms, 1),
        Cell::known(row.think_ms, 1),
        Cell::known(row.to_data_ms, 1),
        Cell::known(row.round_trip_ms, 1),
        Cell::known(row.round_trips, 2),
        Cell::count(row.doubtful),
    ]
}

pub(super) fn classes_section(findings: &Findings) -> Section {
    let text = "A handshake ends here at the client's **Finished**; the think time is from there to its \
                first application data. In a full handshake of TLS 1.2 a client cannot speak before the \
                server's Finished has come back, so that one round trip of its think time is not its own.";
    Section::new("classes", "Classes").with(Inline::marked(text)).with(classes(findings))
}

pub(super) fn modes(findings: &Findings) -> Table {
    let heads = [
        ("Distribution", ""),
        ("mode at", "ms"),
        ("share", "%"),
        ("spread", "ms"),
        ("of", ""),
        ("kernel density", ""),
    ];
    let caption = "Modes (mixture on the logarithm of time, size by BIC; 95 % intervals)";
    let mut table = Table::new(caption, columns(&heads));
    for of in &findings.modes {
        push_modes(&mut table, &format!("{}, full: to data", of.kind), of.to_data.as_ref());
        push_modes(&mut table, &format!("{}, full: to Finished", of.kind), of.handshake.as_ref());
    }
    push_modes(&mut table, "round-trip time, full, over TCP", findings.round_trip_modes.as_ref());
    table
}

fn push_modes(table: &mut Table, name: &str, modes: Option<&Modes>) {
    let Some(modes) = modes else { return };
    let agrees = if modes.confirmed { "agrees" } else { "differs" };
    for mode in &modes.modes {
        table.push(Row::new(vec![
            Cell::text(name),
            estimate(mode.place_ms, 1),
            estimate(mode.weight.map(|weight| 100.0 * weight), 0),
            estimate(mode.spread_ms, 1),
            Cell::count(modes.values as u64),
            Cell::text(agrees),
        ]));
    }
}

pub(super) fn modes_section(findings: &Findings) -> Section {
    let section = Section::new("modes", "Modes");
    let table = modes(findings);
    if table.rows.is_empty() {
        let text = "There are too few full handshakes of any version to find modes.";
        return section.with(Note::info(text));
    }
    let text = "A mode is a hump of the fitted mixture; several components under one hump are one mode. \
                The kernel density (improved Sheather-Jones bandwidth) is a second opinion: where it has \
                not the same maxima, do not lean on the number of modes.";
    section.with(Inline::new().text(text)).with(table)
}

pub(super) fn difference(findings: &Findings) -> Table {
    let difference = &findings.difference;
    let heads = [
        ("Clients", ""),
        ("handshakes", ""),
        ("medians", "ms"),
        ("sooner", "ms"),
        ("medians", "RTT"),
        ("sooner", "RTT"),
    ];
    let caption = format!(
        "{} and {}, {} handshakes over TCP: ClientHello to first data",
        difference.from, difference.to, difference.class
    );
    let mut table = Table::new(caption, columns(&heads));
    let (from, to) = difference.all.handshakes;
    if from + to == 0 {
        return table;
    }
    push_compared(&mut table, "all".to_owned(), &difference.all);
    for mode in &difference.by_mode {
        let name = format!("RTT about {:.1} ms", mode.round_trip_ms);
        push_compared(&mut table, name, &mode.compared);
    }
    table
}

fn push_compared(table: &mut Table, name: String, compared: &Compared) {
    let (from, to) = compared.handshakes;
    let mut cells = vec![Cell::text(name), Cell::text(format!("{from}, {to}"))];
    match &compared.found {
        None => cells.push(Cell::text("too few to tell")),
        Some(found) => {
            let (from, to) = found.medians_ms;
            cells.push(Cell::text(format!("{from:.1}, {to:.1}")));
            cells.push(estimate(found.saved_ms, 1));
            let both = found.round_trips.map(|(from, to)| format!("{from:.2}, {to:.2}"));
            cells.push(both.map_or(Cell::Empty, Cell::text));
            cells.push(found.saved_round_trips.map_or(Cell::Empty, |saved| estimate(saved, 2)));
        }
    }
    table.push(Row::new(cells));
}

pub(super) fn difference_section(findings: &Findings) -> Section {
    let text = format!(
        "Each handshake is divided by its own round-trip time, and belongs to the mode of round-trip \
         times that it most likely came from. Intervals are of 95 % (bootstrap). Below {FEWEST} handshakes \
         of a version nothing is said. Think time is in all of these."
    );
    let section = Section::new("difference", "Difference between versions");
    section.with(Inline::new().text(text)).with(difference(findings))
}

pub(super) fn changes(findings: &Findings) -> Table {
    let heads = [
        ("Change", ""),
        ("who", ""),
        ("handshakes", ""),
        ("share", "%"),
        ("saves", "RTT"),
        ("each", "ms"),
        ("over all", "ms"),
    ];
    let caption = "What the records show could be saved (median round trip of those concerned)";
    let mut table = Table::new(caption, columns(&heads));
    for change in &findings.changes {
        let most = if change.at_most { " (at most)" } else { "" };
        table.push(Row::new(vec![
            Cell::text(format!("{}{most}", change.what)),
            Cell::text(if change.by_the_server { "server" } else { "clients" }),
            Cell::count(change.handshakes),
            Cell::number(change.percent, 1),
            Cell::number(change.round_trips, 0),
            Cell::known(change.saved_ms, 1),
            Cell::known(change.saved_over_all_ms, 2),
        ]));
    }
    table
}

pub(super) fn change_section(findings: &Findings) -> Section {
    let section = Section::new("save", "What to change, by these records");
    if findings.is_of_samples() {
        return section.with(Inline::new().text("The lab's clients do what they are set to."));
    }
    if findings.changes.is_empty() {
        return section
            .with(Inline::new().text("Every handshake took the fewest round trips it can."));
    }
    let why = findings.changes.iter();
    let why = why.map(|change| {
        Inline::new().strong(change.what.clone()).text(": ").text(change.why.clone())
    });
    let mut section = section.with(changes(findings));
    section.blocks.push(report::Block::List(why.collect()));
    section
}

pub(super) fn names(caption: &str, what: &str, names: &Names, rows: usize) -> Table {
    let heads = [(what, ""), ("count", ""), ("share", "%"), ("missed at most", "")];
    let mut table = Table::new(caption, columns(&heads));
    let mut shown = 0;
    for count in names.names.iter().take(rows) {
        shown += count.count;
        let name = if count.name.is_empty() { "(none)" } else { &count.name };
        table.push(Row::new(vec![
            Cell::text(name),
            Cell::count(count.count),
            Cell::number(percent(count.count, names.total), 1),
            if count.missed > 0 { Cell::count(count.missed) } else { Cell::Empty },
        ]));
    }
    let others = names.total.saturating_sub(shown);
    if others > 0 {
        let share = Cell::number(percent(others, names.total), 1);
        table.push(Row::new(vec![Cell::text("others"), Cell::count(others), share]));
    }
    table
}

fn reported(name: String, reported: &Reported) -> Row {
    Row::new(vec![
        Cell::text(name),
        Cell::count(reported.count),
        Cell::number(reported.tls13_percent, 1),
        Cell::number(reported.resumed_percent, 1),
        Cell::number(reported.failed_percent, 1),
        Cell::known(reported.handshake_ms, 1),
        Cell::known(reported.round_trip_ms, 1),
    ])
}

fn reported_columns(what: &str) -> Vec<Column> {
    columns(&[
        (what, ""),
        ("handshakes", ""),
        ("TLS 1.3", "%"),
        ("resumed", "%"),
        ("failed", "%"),
        ("to Finished", "ms"),
        ("RTT", "ms"),
    ])
}

pub(super) fn groups(caption: &str, what: &str, groups: &Groups, rows: usize) -> Table {
    let caption = format!("{caption} (medians right to 5 %)");
    let mut table = Table::new(caption, reported_columns(what));
    let mut shown = 0;
    for group in groups.groups.iter().take(rows) {
        shown += group.reported.count;
        let name = if group.name.is_empty() { "(none)".to_owned() } else { group.name.clone() };
        table.push(reported(name, &group.reported));
    }
    let others = groups.total.saturating_sub(shown);
    if others > 0 {
        table.push(Row::new(vec![Cell::text("others"), Cell::count(others)]));
    }
    table
}

pub(super) fn offers_section(findings: &Findings) -> Section {
    let text = "Each ClientHello counts once for each version that it offers. Drafts of TLS 1.3 have names \
                of their own; GREASE values (RFC 8701) are left out.";
    let offers = &findings.offers;
    let counts = [
        ("pre-shared key offered (TLS 1.3)", offers.psk_offered),
        ("pre-shared key chosen", offers.psk_accepted),
        ("ticket brought (TLS 1.2)", offers.ticket_offered),
        ("resumed in TLS 1.2", offers.resumed_tls12),
        ("early data announced", offers.early_data_offered),
        ("early data taken (over QUIC: likely)", offers.early_data_taken),
        ("early data refused", offers.early_data_rejected),
        ("HelloRetryRequest", offers.hello_retry),
        ("encrypted_client_hello, in earnest or as GREASE", offers.ech_offered),
        ("client certificate asked for, where it can be seen", offers.certificate_requested),
        ("whether one was asked for cannot be seen", offers.certificate_request_hidden),
        ("another protocol before the ClientHello (STARTTLS)", offers.preceded),
    ];
    let heads = [("What", ""), ("handshakes", ""), ("share", "%")];
    let mut table = Table::new("Offered and got", columns(&heads));
    for (name, count) in counts {
        let share = Cell::number(percent(count, findings.handshakes), 1);
        table.push(Row::new(vec![Cell::text(name), Cell::count(count), share]));
    }
    let mut section = Section::new("offers", "What clients offer, and what is agreed")
        .with(Inline::new().text(text))
        .with(table);
    let lists = [
        ("Versions offered", "version", &findings.offered_versions),
        ("Versions offered together", "versions", &findings.offered_sets),
        ("Cipher suites agreed", "suite", &findings.suites),
        ("Groups agreed", "group", &findings.groups),
        ("First key shares, of hellos that offer TLS 1.3", "groups", &findings.key_shares),
        ("Application protocols offered", "protocol", &findings.alpn),
    ];
    for (caption, what, list) in lists {
        if list.total > 0 {
            section = section.with(names(caption, what, list, ROWS));
        }
    }
    section
}

pub(super) fn who_section(findings: &Findings) -> Section {
    let text = "The most frequent of each are counted one by one; the others together. A network is the \
                first bits of the clients' addresses: behind one there may be many clients, or one.";
    let section = Section::new("who", "By server name and client network")
        .with(Inline::new().text(text))
        .with(groups("By server name", "server name", &findings.server_names, ROWS))
        .with(groups("By client network", "network", &findings.networks, ROWS));
    if !findings.cross_names.any() {
        return section;
    }
    let text = "A server whose certificate has several names, and whose ticket keys serve all of them, could resume a \
                session at a name other than its own. At which name a session began cannot be seen: only that its \
                client was not seen at this name before, but at another of the same address and port. Several \
                clients behind one address look like one, and a session may be older than the capture: each count is \
                the most that there were. In TLS 1.3 such a session spares the certificate and its signature, and \
                the round trip only with early data.";
    section.with(Inline::new().text(text)).with(cross_names(findings))
}

pub(super) fn cross_names(findings: &Findings) -> Table {
    let found = &findings.cross_names;
    let heads = [
        ("A name new to a client, of a server that it knows", ""),
        ("at most", ""),
        ("share", "%"),
    ];
    let mut table = Table::new("Sessions across server names", columns(&heads));
    if !found.any() {
        return table;
    }
    let rows = [
        ("resumed: a session of another name, or one from before", found.resumed),
        ("full, though a session was brought", found.refused),
        ("full in TLS 1.3: a session for all names would spare it", found.missed_tls13),
        ("full in TLS 1.2, whose servers must refuse one", found.missed_tls12),
    ];
    for (name, count) in rows {
        let share = Cell::number(percent(count, found.handshakes), 1);
        table.push(Row::new(vec![Cell::text(name), Cell::count(count), share]));
    }
    table
}

pub(super) fn time_section(findings: &Findings) -> Section {
    let caption = format!("Stretches of {} s (medians right to 5 %)", findings.stretch_s);
    let mut table = Table::new(caption, reported_columns("from, s after the first"));
    let first = findings.over_time.first().map(|stretch| stretch.from);
    for stretch in &findings.over_time {
        let after = first.map(|first| stretch.from.saturating_since(first).as_secs());
        table.push(reported(after.unwrap_or_default().to_string(), &stretch.reported));
    }
    Section::new("time", "Over time").with(table)
}

pub(super) fn failures_section(findings: &Findings) -> Section {
    let section = Section::new("failures", "Failures and alerts");
    if findings.failures.total == 0 && findings.alerts.total == 0 {
        return section.with(Inline::new().text("No handshake failed, and no alert was seen."));
    }
    let section = section
        .with(names("Why handshakes failed", "why", &findings.failures, ROWS))
        .with(names("Alerts until both sides had sent data", "alert", &findings.alerts, ROWS));
    if findings.fallbacks.is_empty() {
        return section;
    }
    let text = "A client whose hello got no answer, and within a minute a connection of the same address to \
                the same server name that offers less: something on the way may not tolerate TLS 1.3 or long \
                hellos. They are the most that there were, for another client may have the address.";
    section.with(Inline::new().text(text)).with(fallbacks(findings))
}

pub(super) fn fallbacks(findings: &Findings) -> Table {
    let heads =
        [("Tried again", ""), ("first hello", ""), ("at most", ""), ("lost", "ms"), ("95 %", "ms")];
    let caption = "Clients that tried again with less, and the time from hello to hello";
    let mut table = Table::new(caption, columns(&heads));
    for row in &findings.fallbacks {
        table.push(Row::new(vec![
            Cell::text(row.less.to_string()),
            Cell::text(row.fate.to_string()),
            Cell::count(row.count),
            Cell::known(row.lost_ms, 0),
            Cell::known(row.lost_p95_ms, 0),
        ]));
    }
    table
}

pub(super) fn doubt(findings: &Findings) -> Table {
    let heads = [("Reason for doubt", ""), ("records", ""), ("touches", ""), ("what it means", "")];
    let mut table = Table::new("Records in doubt, by reason", columns(&heads));
    for reason in &findings.uncertain {
        table.push(Row::new(vec![
            Cell::text(reason.name.clone()),
            Cell::count(reason.count),
            Cell::text(reason.touches.clone()),
            Cell::text(reason.meaning),
        ]));
    }
    table
}

pub(super) fn frames(findings: &Findings) -> Table {
    let frames = &findings.frames;
    let of_samples = findings.is_of_samples();
    if of_samples && frames.frames == 0 {
        return Table::new("What was seen", Vec::new());
    }
    // Of samples, the manifest's warnings have what the capture lost.
    let mut counts = vec![("frames", frames.frames)];
    if !of_samples {
        counts.push(("lost by the capture", frames.lost));
    }
    counts.extend([
        ("neither TCP nor UDP over IP, or malformed", frames.other),
        ("IP fragments not put together", frames.fragments),
        ("of no connection that was followed", frames.stray),
        ("connections dropped, too many at once", frames.dropped_connections),
    ]);
    if !of_samples {
        counts.push(("connections without TLS", findings.without_tls));
    }
    counts.push(("TLS of which too little was captured to tell", findings.untold));
    let mut table = Table::new("What was seen", columns(&[("What", ""), ("count", "")]));
    for (name, count) in counts {
        table.push(Row::new(vec![Cell::text(name), Cell::count(count)]));
    }
    for (wrapping, count) in frames.wrapped.counts() {
        let name = format!("wrapped in {}: not read", wrapping.name());
        table.push(Row::new(vec![Cell::text(name), Cell::count(count)]));
    }
    for (version, count) in &findings.unread_quic {
        let name = format!("QUIC, {version}: not read");
        table.push(Row::new(vec![Cell::text(name), Cell::count(*count)]));
    }
    table
}

pub(super) fn doubt_section(findings: &Findings) -> Section {
    let text = format!(
        "{} of {} records have a reason for doubt. A doubt leaves out the times that it touches, those of {} \
         records, and no others. Of QUIC it cannot be seen whether a packet holds application data: its \
         times are kept, on curves of their own.",
        findings.uncertain_records,
        findings.handshakes + findings.untold,
        findings.doubtful_records
    );
    let mut section = Section::new("doubt", "What is in doubt, and what was skipped")
        .with(Inline::new().text(text));
    if !findings.uncertain.is_empty() {
        section = section.with(doubt(findings));
    }
    let seen = frames(findings);
    if seen.rows.is_empty() { section } else { section.with(seen) }
}
