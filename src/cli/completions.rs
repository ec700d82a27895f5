//! `weir completions SHELL`: prints what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, print, printed};

pub(super) const EXAMPLES: &str = "\
Examples:
  source <(weir completions bash)                              this shell
  weir completions fish > ~/.config/fish/completions/weir.fish every fish";

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    printed(print(&String::from_utf8_lossy(&script)))
}
