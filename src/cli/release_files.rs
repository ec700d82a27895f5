//! Files beside the program in packages: shell completions and man pages, from the definitions of the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, fail};

#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseFilesArgs {
    /// Folder for `completions` and `man`
    folder: PathBuf,
}

pub(super) fn run(args: &ReleaseFilesArgs) -> ExitCode {
    match write(&args.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{}: {error}", args.folder.display()), 2),
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let (completions, man) = (folder.join("completions"), folder.join("man"));
    std::fs::create_dir_all(&completions)?;
    std::fs::create_dir_all(&man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "weir", &completions)?;
    }
    clap_mangen::generate_to(Cli::command(), &man)
}
