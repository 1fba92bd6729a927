//! The program `wiretax`: the command line over the studies. `command_line` defines it, each command
//! has a folder; data goes to stdout, diagnostics to stderr.
#![forbid(unsafe_code)]

mod certificates;
mod chain;
mod command_line;
mod compare;
mod diagnostics;
mod doctor;
mod drivers;
mod ech;
mod exit;
mod explain;
mod figures;
mod files;
mod gateway;
mod guest;
mod interrupt;
mod lab;
mod limits;
mod load;
mod negative;
mod observe;
mod options;
mod output;
mod probe;
mod reach;
mod remote;
mod report;
mod rights;
mod run;
mod runtime;
mod sequence;
mod shell;
mod studies;
mod value;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};
use fault::{Fault, OrProblem, Problem};

use crate::command_line::{Cli, Command, command, documented};
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::options::{Colour, GlobalArgs};

fn main() -> ExitCode {
    // Inside a guest this program is something else, and does not come back.
    ::guest::init_if_guest(studies::workers);
    output::report_panics();
    record::Tool::built_from(option_env!("WIRETAX_COMMIT"));
    if let Err(problem) = limits::check_stack() {
        Diagnostics::new(false, Colour::Auto).error(&problem);
        return Exit::of(problem.fault()).into();
    }
    let mut parsed = negative::parse(command);
    if parsed.as_ref().is_err_and(|error| !error.use_stderr()) {
        parsed = negative::parse(documented);
    }
    let matches = match parsed {
        Ok(matches) => matches,
        Err(error) => return refused(error),
    };
    let global = match GlobalArgs::from_arg_matches(&matches) {
        Ok(global) => global,
        Err(error) => return refused(error),
    };
    let diagnostics = Diagnostics::new(global.quiet, global.color);
    let checked = files::check_command_line(&command(), &matches);
    match checked
        .and_then(|()| limits::check_memory(&matches))
        .and_then(|()| interrupt::begin())
        .and_then(|()| dispatch(&matches, &global, &diagnostics))
    {
        Ok(code) => code,
        Err(_) if child::is_cut_short() => {
            diagnostics.note("interrupted");
            Exit::Interrupted.into()
        }
        Err(problem) => {
            diagnostics.error(&problem);
            Exit::of(problem.fault()).into()
        }
    }
}

/// A command line that is not carried out: it is wrong, or asks for help.
fn refused(error: clap::Error) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help {
        Diagnostics::new(false, Colour::Auto).usage(error);
        return Exit::Usage.into();
    }
    // All of it is our own text. Help and version are data, and no failure; nor is a reader that has gone
    // away.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

/// Traces of the machinery go to stderr, when asked for by -v or RUST_LOG.
fn trace(verbose: u8) {
    let default = match verbose {
        0 => "error",
        1 => "warn,wiretax=info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::stderr(output::Form::Line))
        .with_ansi(false)
        .init();
}

fn dispatch(
    matches: &ArgMatches,
    global: &GlobalArgs,
    diagnostics: &Diagnostics,
) -> Result<ExitCode, Problem> {
    if matches.subcommand_matches("gateway").is_none() {
        trace(global.verbose);
    }
    if let Some((study, options)) = studies::find(matches) {
        return studies::one_study(study, options, diagnostics).map(ExitCode::from);
    }
    if let Some(options) = matches.subcommand_matches("report") {
        return report::report(options, diagnostics).map(ExitCode::from);
    }
    let ended: Outcome = match Cli::from_arg_matches(matches).blame(Fault::Caller)?.command {
        // Its exit status is that of a program of the user's.
        Command::Lab(args) => return lab::lab(&args, diagnostics),
        Command::Run(args) => run::run(args, diagnostics),
        // Its options are the studies' too: see above.
        Command::Report(_) => Ok(Exit::Done),
        Command::Compare(args) => compare::compare(&args, diagnostics),
        Command::Doctor(args) => doctor::doctor(&args, diagnostics),
        Command::Observe(args) => observe::observe(&args, diagnostics),
        Command::Sequence(args) => sequence::sequence(&args, diagnostics),
        Command::Probe(args) => probe::probe(&args, diagnostics),
        Command::Chain(args) => chain::chain(&args, diagnostics),
        Command::Ech(args) => ech::ech(&args, diagnostics),
        Command::Load(args) => load::load(&args, diagnostics),
        // It runs for long, and logs in its own way.
        Command::Gateway(args) => gateway::gateway(&args, global.verbose, global.quiet),
        Command::Completions { shell } => shell::completions(shell, &mut documented()),
        Command::Man { folder } => shell::man(&folder, documented()),
        Command::Explain(args) => explain::explain(&args),
        Command::Drivers(args) => drivers::drivers(&args, diagnostics),
        Command::Guest(args) => guest::guest(&args, diagnostics),
        Command::StacksHost => drivers::host(),
        Command::Figures(args) => figures::figures(&args, diagnostics),
    };
    ended.map(ExitCode::from)
}
