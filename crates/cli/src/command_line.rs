//! The command line, defined once: help, man pages and completions all come from here.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueHint};

use crate::chain::ChainArgs;
use crate::compare::CompareArgs;
use crate::drivers::DriversArgs;
use crate::ech::EchArgs;
use crate::exit::usual_epilogue;
use crate::explain::ExplainArgs;
use crate::figures::FiguresArgs;
use crate::gateway::GatewayArgs;
use crate::guest::GuestArgs;
use crate::lab::LabCommandArgs;
use crate::load::LoadArgs;
use crate::observe::ObserveArgs;
use crate::options::{GlobalArgs, JsonArg};
use crate::probe::ProbeArgs;
use crate::report::ReportArgs;
use crate::run::RunArgs;
use crate::sequence::SequenceArgs;

/// Measures what security costs on the wire, and how to get it back.
#[derive(Debug, Parser)]
#[command(
    name = "wiretax",
    // Whatever name the program was started by.
    bin_name = "wiretax",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = usual_epilogue(
        "Examples:
  wiretax run                 begin here: every study, 4 minutes at most, and a report
  wiretax probe example.org   ask your own server"
    )
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// The command line as it is parsed. Its help is still to be completed; see [`documented`].
pub fn command() -> clap::Command {
    crate::studies::attach(Cli::command(), false)
}

/// The command line as it is printed: with the studies' examples, which say what plans come to.
pub fn documented() -> clap::Command {
    crate::studies::attach(Cli::command(), true)
}

/// The hidden command of a measurement's own process.
use tls_drivers::hosts::HOST;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure with every study at a quick scale and write one report (4 minutes at most)
    #[command(display_order = 0)]
    Run(RunArgs),
    /// Build the report of earlier results again, without measuring
    Report(ReportArgs),
    /// Show what got slower between two results, and how certain that is
    Compare(CompareArgs),
    /// Check what this machine can do, what is missing and how to get it
    #[command(after_help = usual_epilogue(
        "Examples:
  wiretax doctor
  wiretax doctor --json | jq '.[] | select(.ok | not)'"
    ))]
    Doctor(JsonArg),
    /// Run any programs over an emulated path, without root
    Lab(Box<LabCommandArgs>),
    /// How long real clients take to set up TLS, from capture files or a live interface
    Observe(Box<ObserveArgs>),
    /// Sequence charts of flow control in SPDY and HTTP/2, from captures
    Sequence(SequenceArgs),
    /// Measure a live server's handshakes from here: few connections, read-only, no root
    Probe(ProbeArgs),
    /// What a server's certificates cost in bytes and round trips, with post-quantum chains for comparison
    Chain(Box<ChainArgs>),
    /// What Encrypted Client Hello costs: the hello's bytes, a retry's round trips, the DNS record's wait
    Ech(Box<EchArgs>),
    /// Load a TLS server with thousands of connections per second, at a fixed number or rate
    Load(Box<LoadArgs>),
    /// Carry connections of unmodified programs over SSLmTCP, with a gateway at each end
    Gateway(GatewayArgs),
    /// Explain a term that reports use
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    #[command(after_help = usual_epilogue(
        "Examples:
  wiretax completions bash > ~/.local/share/bash-completion/completions/wiretax
  wiretax completions zsh > ~/.zfunc/_wiretax   (with ~/.zfunc in fpath)
  wiretax completions fish > ~/.config/fish/completions/wiretax.fish"
    ))]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    #[command(after_help = usual_epilogue(
        "Examples:
  wiretax man ~/.local/share/man/man1 && man wiretax-probe"
    ))]
    Man {
        /// The folder.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// List the TLS libraries that can be measured, and build them
    Drivers(DriversArgs),
    /// Fetch and check the guest: a virtual machine in virtual time, for `--clock virtual`
    Guest(GuestArgs),
    /// Make one measurement with a driver: the process that `wiretax stacks` starts for each
    // By a name that no typo is taken for.
    #[command(hide = true, name = HOST)]
    StacksHost,
    /// Rewrite the figures in a Markdown file from committed results
    #[command(hide = true)]
    Figures(FiguresArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::MEANINGS;

    #[test]
    fn the_definition_holds_together() {
        documented().debug_assert();
    }

    /// Every command's help says what its exit status means, each by a code that the program has.
    #[test]
    fn help_states_these_codes() {
        fn codes_of(command: &clap::Command) -> Vec<u8> {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let table = help.split_once("Exit codes:\n").map_or("", |(_, table)| table);
            let codes = table.lines().filter_map(|line| line.split_whitespace().next());
            codes.map(|code| code.parse().unwrap()).collect()
        }
        fn look(command: &clap::Command, all: &[u8]) {
            let codes = codes_of(command);
            let name = command.get_name();
            assert!(codes.iter().all(|code| all.contains(code)), "{name}: {codes:?}");
            assert!(codes.is_sorted(), "{name}: {codes:?}");
            command.get_subcommands().for_each(|inner| look(inner, all));
        }
        let all = MEANINGS.map(|(exit, _)| exit as u8);
        let command = documented();
        assert_eq!(codes_of(&command), all);
        look(&command, &all);
    }
}
