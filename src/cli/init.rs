//! `weir init`: writes a first configuration, with comments.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use weir_config::EXAMPLE;

use super::{fail, print, printed};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir init                   write weir.yaml
  weir init conf.d/api.yaml   write another file";

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// The file to write; one that exists stays as it is
    #[arg(default_value = "weir.yaml", value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &InitArgs) -> ExitCode {
    let file = args.file.display();
    let written = OpenOptions::new().write(true).create_new(true).open(&args.file);
    match written.and_then(|mut made| made.write_all(EXAMPLE.as_bytes())) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return fail(&format!("{file} exists, and stays as it is; name another file: weir init FILE"), 1);
        }
        Err(error) => return fail(&format!("{file} cannot be written: {error}"), 1),
    }
    let next =
        format!("{file} is written. Change it, then:\n  weir check {file}\n  weir serve --config {file}\n");
    printed(print(&next))
}
