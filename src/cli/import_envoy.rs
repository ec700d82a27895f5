//! `weir import-envoy DIR`: converts the limits of Envoy's files to a configuration of Weir.

mod names;
mod rule;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use weir_config::MAX_FILE;
use weir_envoy::files::EnvoyFiles;

use super::{envoy, fail, print, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir import-envoy ratelimit/config > weir.yaml && weir check weir.yaml
  weir import-envoy basic.yaml                       one file";

#[derive(Debug, clap::Args)]
pub(crate) struct ImportEnvoyArgs {
    /// The directory of files in the format of envoyproxy/ratelimit, or one such file
    directory: PathBuf,
    /// Several files may have one domain in common
    #[arg(long)]
    merge_domains: bool,
}

/// Prints the configuration. Anything that it cannot express becomes a comment in it, and a line on stderr.
pub(crate) fn run(args: &ImportEnvoyArgs) -> ExitCode {
    let files = match EnvoyFiles::load(args.directory.as_path(), args.merge_domains) {
        Ok(files) => files,
        Err(errors) => {
            say(&errors.to_string());
            return ExitCode::FAILURE;
        }
    };
    envoy::warn(&files);
    let imported = rule::all(&files);
    if imported.iter().all(|rule| rule.limit.is_none()) {
        return fail(&format!("there is no limit in {}", args.directory.display()), 1);
    }
    for rule in &imported {
        for lost in &rule.lost {
            say(&format!("not expressed: {}: {lost}", rule.path.escape_debug()));
        }
    }
    let text = write::configuration(&args.directory.display().to_string(), &imported);
    match print(&text) {
        Ok(()) if text.len() > MAX_FILE => {
            let bytes = text.len();
            fail(
                &format!(
                    "that is {bytes} bytes, and a configuration has at most {MAX_FILE}; import file by file"
                ),
                1,
            )
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), 1),
    }
}
