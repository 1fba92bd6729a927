//! `wiretax figures`: the figures in the project's Markdown, generated from committed results.

mod args;
mod conditions;

use std::fs;

use fault::{Explain, Fault, OrProblem, Problem, WhileDoing};
use study::Options;

pub use self::args::FiguresArgs;
use self::conditions::conditions;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::studies::{Questions, Results};

const END: &str = "<!-- /figures -->";

/// Rewrites the parts between the marks that these results are for; with `--check` says whether any
/// would change. Results that cannot be traced to one commit are not written: a check reports them, and
/// compares the texts all the same.
pub fn figures(args: &FiguresArgs, diagnostics: &Diagnostics) -> Outcome {
    let results = Results::read(&args.results, &Questions::of(&Options::none())?, diagnostics)?;
    let (manifest, folder) = (&results.manifest, args.results.display());
    for (at, session) in manifest.sessions.iter().enumerate() {
        let commit = session.tool.commit.as_deref().unwrap_or("an unknown commit");
        diagnostics.note(format!("{folder}: session {} is of {commit}", at + 1));
    }
    for warning in &manifest.warnings {
        let what = format!("{folder}: {}", warning.what);
        diagnostics.warning_with_remedy(what, Some(&warning.remedy));
    }
    if let Err(untraceable) = manifest.commit() {
        if !args.check {
            return Err(Problem::from(untraceable).while_doing(folder));
        }
        let remedy = untraceable.remedy();
        diagnostics.warning_with_remedy(format!("{folder}: {untraceable}"), remedy.as_deref());
    }
    let text = Options::none().text_of(&args.markdown, "Markdown file")?;
    let mut new = text.clone();
    for found in &results.found {
        for (name, markdown) in found.findings.markdown()? {
            let markdown = format!("{markdown}\n{}", conditions(manifest));
            new = replaced(&new, &name, &markdown)?;
        }
    }
    let shown = args.markdown.display();
    if args.check && new != text {
        diagnostics.warning(format!("{shown} does not say what the results say"));
        diagnostics.advice("make figures");
        return Ok(Exit::Found);
    }
    if !args.check {
        fs::write(&args.markdown, &new)
            .blame(Fault::Results)
            .while_doing(|| format!("{shown} cannot be written"))?;
    }
    Ok(Exit::Done)
}

/// The text with what is between the marks of this name replaced.
fn replaced(text: &str, name: &str, figures: &str) -> Result<String, Problem> {
    let begin = format!("<!-- figures:{name} -->");
    let missing = || {
        Problem::new(Fault::Caller, format!("the file has no `{begin}` … `{END}`"))
            .with_remedy("put both in, on lines of their own")
    };
    let (head, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{head}{begin}\n{figures}{END}{tail}"))
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
}
