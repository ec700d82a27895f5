//! `weir check FILE`: every mistake of a configuration in one run.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use weir::config::{Config, Overrides};

use super::{fail, print};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file
    file: PathBuf,
}

/// Checks the file alone: what this shell's environment would replace is no part of it.
pub(crate) fn run(args: &Args) -> ExitCode {
    match Config::load(&args.file, &Overrides::default()) {
        Ok(config) => {
            let strategies = counted(config.rules.strategies().len(), "strategy", "strategies");
            let resources = counted(config.rules.resources().len(), "resource pattern", "resource patterns");
            let summary = format!("{}: ok, {strategies}, {resources}\n", args.file.display());
            match print(&summary) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&error.to_string(), 1),
            }
        }
        Err(errors) => {
            // As compilers write them, so that editors find the place; nobody left to tell if stderr is gone.
            let _ = writeln!(io::stderr(), "{errors}");
            ExitCode::FAILURE
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
