//! The options of `wiretax figures`.

use std::path::PathBuf;

use clap::Args;

/// `wiretax figures`: for the project's own README.
#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// The Markdown file, with `<!-- figures:NAME -->` and `<!-- /figures -->` in it.
    pub markdown: PathBuf,
    /// The folder of results, of one clean commit.
    pub results: PathBuf,
    /// Change nothing; fail if the file would change. Results that cannot be traced to one commit are
    /// warned of, not refused.
    #[arg(long)]
    pub check: bool,
}
