//! `wiretax figures`: the figures in the project's README, generated from a committed result.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use handshake::{Findings, Row, value};
use record::Manifest;

use crate::args::FiguresArgs;
use crate::exit::{Exit, OrExit, Outcome};
use crate::files::read_text;
use crate::report::{Question, Results};
use crate::talk::Talk;

const BEGIN: &str = "<!-- figures:handshake -->";
const END: &str = "<!-- /figures -->";

/// Rewrites the part between the marks; with `--check` says whether it would change.
pub fn figures(args: &FiguresArgs, talk: &Talk) -> Outcome {
    let question = Question::read("tcp+tls12", None, 1)?;
    let Results { manifest, summary, .. } = Results::read(&args.results, 1, talk)?;
    let findings = question.findings(&summary)?;
    let text = read_text(&args.markdown, "Markdown file")?;
    let new = replaced(&text, &markdown(&manifest, &findings)).or_exit(Exit::Usage)?;
    if args.check {
        let same = new == text;
        let shown = args.markdown.display();
        let stale = || anyhow!("{shown} does not say what the results say; hint: make figures");
        return same.then_some(Exit::Done).ok_or_else(stale).or_exit(Exit::Found);
    }
    write(&args.markdown, &new).or_exit(Exit::Results)?;
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The text with what is between the marks replaced.
fn replaced(text: &str, figures: &str) -> anyhow::Result<String> {
    let missing =
        || anyhow!("the file has no `{BEGIN}` … `{END}`; hint: put both in, on lines of their own");
    let (head, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{head}{BEGIN}\n{figures}{END}{tail}"))
}

fn markdown(manifest: &Manifest, findings: &Findings<'_>) -> String {
    let mut text = provenance(manifest);
    text += "\n| mode | n ready (spec) | c ready | n response (spec) | response at 11.6 ms | at 85.5 ms | saved at 85.5 ms | bytes up / down |\n";
    text += "|---|---|---|---|---|---|---|---|\n";
    for row in findings.main_rows() {
        text += &line(row, findings);
    }
    text
}

/// Date, machine and command.
fn provenance(manifest: &Manifest) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let session = manifest.sessions.first();
    let date = manifest.started().map(|time| time.strftime("%Y-%m-%d").to_string());
    let machine = session.map(|session| &session.environment);
    let libraries: Vec<String> = ["OpenSSL", "rustls", "quinn"]
        .iter()
        .filter_map(|name| {
            let mut known = manifest.libraries.iter();
            let (name, version) = known.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
            Some(format!("{name} {}", version_number(name, version)))
        })
        .collect();
    format!(
        "Measured {} on {} ({} processors, Linux {}) by `{}`; {}. Medians; saved: against \
         `tcp+tls12`; bytes: Ethernet, until the first response byte.\n",
        known(date),
        known(machine.and_then(|machine| machine.cpu_model.clone())),
        known(machine.and_then(|machine| machine.cpus.map(|cpus| cpus.to_string()))),
        known(machine.and_then(|machine| machine.kernel.clone())),
        known(session.map(|session| program_name_only(&session.command))),
        libraries.join(", ")
    )
}

/// `3.5.5` of `OpenSSL 3.5.5 27 Jan 2026`.
fn version_number<'a>(name: &str, version: &'a str) -> &'a str {
    let words = version.strip_prefix(name).unwrap_or(version).trim_start();
    words.split(' ').next().unwrap_or(words)
}

/// A number without decimals; none is negative and nothing at once.
fn whole(value: f64) -> String {
    let rounded = value.round();
    format!("{:.0}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// A command without the folder that its program lay in.
fn program_name_only(command: &str) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("{name} {rest}").trim_end().to_owned()
}

fn line(row: &Row, findings: &Findings<'_>) -> String {
    let fitted = |fit: &Option<stats::LineFit>, spec: Option<u32>| match (fit, spec) {
        (Some(fit), Some(spec)) => {
            // Nothing below zero that rounds to it: no `-0.000`.
            let n = (fit.slope.value * 1e3).round() / 1e3 + 0.0;
            format!("{n:.3} ({spec})")
        }
        _ => String::new(),
    };
    let compute = row.ready.as_ref().map(|fit| format!("{:.2} ms", fit.intercept.value));
    let at = |rtt: f64| {
        let median = row.at_rtt(rtt).and_then(|cell| cell.median(value::RESPONSE));
        median.map_or(String::new(), |median| format!("{:.1} ms", median.value))
    };
    let change = findings.changes.iter().find(|change| change.to == row.key.mode);
    let saving = change.and_then(|change| change.savings.iter().find(|s| s.rtt_ms == 85.5));
    let saved = saving.map_or(String::new(), |saving| {
        format!("{:.1} ms, {} %", saving.saved_ms.value, whole(saving.percent()))
    });
    let bytes = |name: &str| {
        let median = row.cells.first().and_then(|cell| cell.median(name));
        median.map_or(String::new(), |median| format!("{:.0}", median.value))
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {saved} | {} / {} |\n",
        row.key.mode,
        fitted(&row.ready, row.spec.map(|spec| spec.ready)),
        compute.unwrap_or_default(),
        fitted(&row.response, row.spec.map(|spec| spec.response)),
        at(11.6),
        at(85.5),
        bytes(value::UP_BYTES),
        bytes(value::DOWN_BYTES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(replaced(&text, "new\n").unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert!(replaced("no marks", "new\n").is_err());
    }

    #[test]
    fn a_command_names_no_folder_of_a_machine() {
        assert_eq!(program_name_only("/x/y/wiretax run --seed 1"), "wiretax run --seed 1");
        assert_eq!(program_name_only("wiretax"), "wiretax");
    }
    #[test]
    fn versions_and_shares_read_well() {
        assert_eq!(version_number("OpenSSL", "OpenSSL 3.5.5 27 Jan 2026"), "3.5.5");
        assert_eq!(version_number("rustls", "0.23.46"), "0.23.46");
        assert_eq!([whole(-0.3), whole(-1.6), whole(25.4)], ["0", "-2", "25"]);
    }
}
