//! The options of `wiretax figures`.

use std::path::PathBuf;

use clap::Args;

/// `wiretax figures`: for the project's own README.
#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// The Markdown file, with `<!-- figures:NAME -->` and `<!-- /figures -->` in it.
    pub markdown: PathBuf,
    /// The folder of results.
    pub results: PathBuf,
    /// Change nothing; fail if the file would change.
    #[arg(long)]
    pub check: bool,
}
