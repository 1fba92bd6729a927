//! The command of each study: what the study adds, and what all of them have.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, ValueHint, value_parser};
use study::Study;

use super::STUDIES;
use crate::exit::usual_epilogue;
use crate::options::{JsonArg, LabArgs, OutArgs};

/// Options of every study's command that say what to measure, beside the study's own.
const COMMON: [&str; 3] = ["scale", "plan", "seed"];

/// Adds the command of each study where it belongs. With `documented` the helps are complete: examples
/// may say what a plan comes to, which takes longer than all else of a start.
pub fn attach(mut root: Command, documented: bool) -> Command {
    for (order, study) in STUDIES.iter().enumerate() {
        let command = command_of(*study, documented).display_order(order + 1);
        root = attach_at(root, study.command(), command);
    }
    root.mut_subcommand("report", add_asks)
}

fn attach_at(parent: Command, words: &[&'static str], command: Command) -> Command {
    match words {
        [first, rest @ ..] if !rest.is_empty() => {
            parent.mut_subcommand(first, |inner| attach_at(inner, rest, command))
        }
        _ => parent.subcommand(command),
    }
}

/// Adds what each study can be asked; an option that two studies share is one.
pub fn add_asks(mut command: Command) -> Command {
    for study in STUDIES {
        let asks = study.asks(Command::new("asks"));
        for ask in asks.get_arguments() {
            if !command.get_arguments().any(|known| known.get_id() == ask.get_id()) {
                command = command.arg(ask.clone());
            }
        }
    }
    command
}

fn command_of(study: &dyn Study, documented: bool) -> Command {
    let name = study.command().last().copied().unwrap_or_default();
    let mut command = Command::new(name).args(common());
    command = study.asks(study.means(study.options(command)));
    command = OutArgs::augment_args(command);
    if study.uses_links() {
        command = LabArgs::augment_args(command);
    }
    if study.keeps_captures() {
        command = command.arg(
            Arg::new("keep_captures")
                .long("keep-captures")
                .action(clap::ArgAction::SetTrue)
                .help("Keep the packet captures (pcapng) with the samples")
                .help_heading("Results"),
        );
    }
    if study.makes_quic() {
        command = command.arg(
            Arg::new("qlog")
                .long("qlog")
                .value_name("DIR")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf))
                .help("Write a qlog file (JSON-SEQ) for each side of each QUIC connection; not with --clock virtual")
                .help_heading("Results"),
        );
    }
    command = JsonArg::augment_args(command).args_conflicts_with_subcommands(true);
    // The options that were added come with a description of their own.
    command = command.about(study.about()).long_about(None);
    match documented {
        true => command.after_help(usual_epilogue(&study.examples())),
        false => command,
    }
}

fn common() -> [Arg; 3] {
    [
        Arg::new("scale")
            .long("scale")
            .value_name("NAME")
            .help("Scale of the built-in plan, or of the plan file"),
        Arg::new("plan")
            .long("plan")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("A plan file (TOML) instead of the built-in plan"),
        Arg::new("seed")
            .long("seed")
            .value_name("N")
            .value_parser(value_parser!(u64))
            .help("Seed of every random draw [default: 1]"),
    ]
}

/// The study whose command was given, with its options.
pub fn find(matches: &ArgMatches) -> Option<(&'static dyn Study, &ArgMatches)> {
    let (mut path, mut inner) = (Vec::new(), matches);
    while let Some((name, deeper)) = inner.subcommand() {
        path.push(name);
        inner = deeper;
    }
    let study = STUDIES.iter().find(|study| study.command() == path)?;
    Some((*study, inner))
}

/// The names of a study's options that say what to measure.
pub fn plan_options(study: &dyn Study) -> Vec<String> {
    let own = study.options(Command::new("options"));
    let own = own.get_arguments().map(|argument| argument.get_id().to_string());
    own.chain(COMMON.map(str::to_owned)).collect()
}

/// The options with which `wiretax run` measures a study.
pub fn at_scale(study: &dyn Study, scale: &str, seed: u64) -> Result<ArgMatches, clap::Error> {
    // A value is joined to its option: it may begin like one.
    let line = [format!("--scale={}", study.scale_in_run(scale)), format!("--seed={seed}")];
    command_of(study, false).no_binary_name(true).try_get_matches_from(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::time::Duration;

    /// Time that `wiretax run` may take for all that it measures, the lab's measurement of itself and
    /// the report among it.
    const RUN: Duration = Duration::from_secs(240);
    /// The lab's measurement of itself, and the report.
    const BESIDE: Duration = Duration::from_secs(10);

    #[test]
    fn each_study_has_a_command_of_its_own_and_parses_its_quick_plan() {
        let mut names = BTreeSet::new();
        for study in STUDIES {
            assert!(names.insert(study.name()), "two studies are called {}", study.name());
            let about = command_of(*study, true).get_about().map(ToString::to_string);
            assert_eq!(about.as_deref(), Some(study.about()));
            let matches = at_scale(*study, "quick", 7).unwrap();
            let options = study::Options::new(&matches);
            assert_eq!(options.get::<u64>("seed"), Some(7));
            study.question(&options).unwrap();
        }
    }

    #[test]
    fn the_plans_of_a_run_keep_to_four_minutes_together() {
        let mut sum = BESIDE;
        for study in STUDIES.iter().filter(|study| study.in_run()) {
            let matches = at_scale(*study, "quick", 1).unwrap();
            let plan = study.plan(&study::Options::new(&matches)).unwrap();
            let budget = plan.budget();
            sum += budget.unwrap_or_else(|| panic!("{} has no budget", study.name()));
        }
        assert!(sum <= RUN, "the studies declare {sum:?} together");
    }

    #[test]
    fn commands_made_again_are_those_that_were_recorded() {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let (mut samples, mut made) = (0, 0);
        for folder in std::fs::read_dir(all).unwrap().flatten() {
            if !record::Run::is_results(folder.path()) {
                continue;
            }
            let (manifest, read) = record::Run::stream(folder.path()).unwrap();
            let mut commands = BTreeMap::new();
            for sample in read.take(40).map(Result::unwrap) {
                samples += 1;
                let study = STUDIES.iter().find(|study| study.name() == sample.study).unwrap();
                let plan = &manifest.plan[study.name()];
                let again = commands.entry(study.name()).or_insert_with(|| study.commands(plan));
                let Some(again) = again(&sample) else { continue };
                made += 1;
                // As many threads as the machine has: no plan says how many that were.
                let recorded = sample.command.split(" --load-threads ").next().unwrap();
                assert_eq!(again, recorded, "{}", folder.path().display());
            }
        }
        // What is said of a library before the first slice has no point.
        assert!(made > 1000 && made * 10 > samples * 9, "{made} of {samples}");
    }

    #[test]
    fn every_study_has_published_figures_that_read() {
        for study in STUDIES {
            let figures = study::figures(study.published()).unwrap();
            assert!(!figures.is_empty(), "{} has published figures", study.name());
        }
    }
}
