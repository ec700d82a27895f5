//! `weir check FILE`: every mistake of a configuration in one run.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{fail, print};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let _ = (args, print);
    fail("configuration files are not read yet", 1)
}
