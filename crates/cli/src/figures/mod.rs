//! `wiretax figures`: the figures in the project's README, generated from committed results.

mod observe;
mod stacks;

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use record::Manifest;

use crate::args::FiguresArgs;
use crate::exit::{Exit, OrExit, Outcome};
use crate::files::read_text;
use crate::report::{Question, Results};
use crate::talk::Talk;

const END: &str = "<!-- /figures -->";

/// Rewrites the parts between the marks that these results are for; with `--check` says whether any
/// would change.
pub fn figures(args: &FiguresArgs, talk: &Talk) -> Outcome {
    let question = Question::read("tcp+tls12", None, 1)?;
    let results = Results::read(&args.results, 1, talk)?;
    let text = read_text(&args.markdown, "Markdown file")?;
    let mut new = text.clone();
    if results.summary.samples > 0 {
        let findings = question.findings(&results.summary)?;
        let findings = findings.measured_by(&results.manifest);
        for (name, markdown) in study::Findings::markdown(&findings).unwrap_or_default() {
            new = replaced(&new, &name, &markdown).or_exit(Exit::Usage)?;
        }
    }
    if !results.stacks.is_empty() {
        let markdown = stacks::markdown(&results.manifest, &results.stacks, &question);
        new = replaced(&new, "stacks", &markdown).or_exit(Exit::Usage)?;
    }
    if let Some(truth) = results.truth.as_ref().filter(|_| results.summary.samples == 0) {
        let markdown = observe::markdown(truth);
        new = replaced(&new, "observe", &markdown).or_exit(Exit::Usage)?;
    }
    if args.check {
        let same = new == text;
        let shown = args.markdown.display();
        let stale = || anyhow!("{shown} does not say what the results say; hint: make figures");
        same.then_some(()).ok_or_else(stale).or_exit(Exit::Found)?;
        return Ok(Exit::Done);
    }
    write(&args.markdown, &new).or_exit(Exit::Results)?;
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The text with what is between the marks of this name replaced.
fn replaced(text: &str, name: &str, figures: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- figures:{name} -->");
    let missing =
        || anyhow!("the file has no `{begin}` … `{END}`; hint: put both in, on lines of their own");
    let (head, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{head}{begin}\n{figures}{END}{tail}"))
}

/// Date, machine and command.
fn provenance(manifest: &Manifest) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let session = manifest.sessions.first();
    let date = manifest.started().map(|time| time.strftime("%Y-%m-%d").to_string());
    let machine = session.map(|session| &session.environment);
    format!(
        "Measured {} on {} ({} processors, Linux {}) by `{}`",
        known(date),
        known(machine.and_then(|machine| machine.cpu_model.clone())),
        known(machine.and_then(|machine| machine.cpus.map(|cpus| cpus.to_string()))),
        known(machine.and_then(|machine| machine.kernel.clone())),
        known(session.map(|session| program_name_only(&session.command)))
    )
}

/// A command without the folder that its program lay in.
fn program_name_only(command: &str) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("{name} {rest}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let begin = "<!-- figures:a -->";
        let other = format!("<!-- figures:b -->\nkept\n{END}\n");
        let text = format!("a\n{begin}\nold\n{END}\nb\n{other}");
        let new = format!("a\n{begin}\nnew\n{END}\nb\n{other}");
        assert_eq!(replaced(&text, "a", "new\n").unwrap(), new);
        assert!(replaced("no marks", "a", "new\n").is_err());
    }

    #[test]
    fn a_command_names_no_folder_of_a_machine() {
        assert_eq!(program_name_only("/x/y/wiretax run --seed 1"), "wiretax run --seed 1");
        assert_eq!(program_name_only("wiretax"), "wiretax");
    }
}
