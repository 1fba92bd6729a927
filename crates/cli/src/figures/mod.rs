//! `wiretax figures`: the figures in the project's Markdown, generated from committed results.

mod args;
mod conditions;
mod harmless;

use std::collections::{BTreeMap, BTreeSet};

use fault::{Explain, Fault, OrProblem, Problem, WhileDoing};
use study::{Counterpart, Options};

pub use self::args::FiguresArgs;
use self::conditions::conditions;
use self::harmless::harmless;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::ends_at_once;
use crate::studies::{Found, Questions, Results, Texts, power};

const END: &str = "<!-- /figures -->";
/// The beginning of every mark.
const MARK: &str = "<!--";
/// Whoever made the results wrote their texts.
const TEXTS: Texts =
    Texts { manifest: |manifest| harmless(&manifest), sample: |sample| harmless(&sample) };

/// Rewrites the parts between the marks that these results are for; with `--check` says whether any
/// would change. Results that cannot be traced to one commit are not written: a check reports them, and
/// compares the texts all the same.
pub fn figures(args: &FiguresArgs, diagnostics: &Diagnostics) -> Outcome {
    ends_at_once(diagnostics)?;
    let questions = Questions::of(&Options::none())?;
    let results = Results::read_with(&args.results, &questions, TEXTS, diagnostics)?;
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
    let new = rewritten(&text, &texts(&results, &text)?)?;
    let shown = args.markdown.display();
    if args.check && new != text {
        diagnostics.warning(format!("{shown} does not say what the results say"));
        diagnostics.advice("make figures");
        return Ok(Exit::Found);
    }
    if !args.check {
        outfile::write(&args.markdown, new.as_bytes())
            .blame(Fault::Results)
            .while_doing(|| format!("{shown} cannot be written"))?;
    }
    Ok(Exit::Done)
}

/// What the results say, by the names of the marks: each study's tables, its first sentence as
/// `STUDY-headline`, and what stands beside the published figures as `STUDY-published`.
fn texts(results: &Results, page: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut texts = Vec::new();
    for found in &results.found {
        for (name, markdown) in found.findings.markdown()? {
            texts.push((name, format!("{markdown}\n{}", conditions(&results.manifest))));
        }
        let headline = found.findings.answer().first().map(report::Inline::to_plain);
        texts
            .extend(headline.map(|line| (format!("{}-headline", found.study.name()), line + "\n")));
        texts.push((format!("{}-published", found.study.name()), published(found, results)?));
        // A thousand draws of each ranking take seconds: only where they are wanted.
        let power = format!("{}-power", found.study.name());
        if page.contains(&begin(&power)) {
            texts.extend(power::markdown(found.findings.as_ref()).map(|text| (power, text)));
        }
    }
    Ok(texts)
}

/// The published figures of a study with ours beside, and where ours come from.
fn published(found: &Found, results: &Results) -> Result<String, Problem> {
    let counterparts = found.findings.counterparts();
    let mut elsewhere = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (key, counterpart) in &counterparts {
        if let Counterpart::NotMeasured { command } = counterpart {
            elsewhere.entry(command).or_default().insert(key);
        }
    }
    let is_here = |key: &str| !elsewhere.values().any(|keys| keys.contains(key));
    let mut figures = study::figures(found.study.published())?;
    figures.retain(|figure| is_here(&figure.key()));
    let mut text = format!("{}.\n", study::provenance(&results.manifest));
    for table in study::beside(&figures, &counterparts) {
        text += &format!("\n{}", table.to_markdown());
    }
    for (command, keys) in &elsewhere {
        let items: BTreeSet<&str> =
            keys.iter().filter_map(|key| Some(key.split_once('/')?.0)).collect();
        let items: Vec<&str> = items.into_iter().collect();
        text += &format!(
            "\n{} figures of {} are not in these results: `{command}` measures them.\n",
            keys.len(),
            items.join(", ")
        );
    }
    Ok(format!("{text}\n{}", conditions(&results.manifest)))
}

/// The text with what is between the marks of these names replaced. A page has marks of some of them, of one
/// at least.
///
/// # Errors
/// The page lacks a mark. A replacement has one: the next run would leave a part of it in the page.
fn rewritten(text: &str, texts: &[(String, String)]) -> Result<String, Problem> {
    let mut new = text.to_owned();
    let mut any = false;
    for (name, figures) in texts {
        let begin = begin(name);
        let Some((head, rest)) = new.split_once(&begin) else { continue };
        if figures.contains(MARK) {
            let what = format!("the text of `{name}` has a mark `{MARK}` in it");
            return Err(Problem::new(Fault::Results, what));
        }
        let (_, tail) = rest.split_once(END).ok_or_else(|| missing(name))?;
        new = format!("{head}{begin}\n{figures}{END}{tail}");
        any = true;
    }
    match texts.first() {
        Some((name, _)) if !any => Err(missing(name)),
        _ => Ok(new),
    }
}

fn begin(name: &str) -> String {
    format!("<!-- figures:{name} -->")
}

fn missing(name: &str) -> Problem {
    Problem::new(Fault::Caller, format!("the file has no `{}` … `{END}`", begin(name)))
        .with_remedy("put both in, on lines of their own")
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
        let texts = [("none", "x\n"), ("a", "new\n")];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(rewritten(&text, &texts).unwrap(), new);
        assert!(rewritten("no marks", &texts).is_err());
        let marked = [("a".to_owned(), format!("new\n{END}\n"))];
        assert!(rewritten(&text, &marked).is_err(), "it would end the region");
        assert!(rewritten(begin, &texts).is_err(), "a mark without its end");
    }
}
