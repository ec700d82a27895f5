//! `weir check PATH`: every mistake of a configuration in one run.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use weir::config::{Config, EnvoyFiles, Overrides};

use super::{envoy, fail, print};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir check weir.yaml                 a configuration, and Envoy's files if it names some
  weir check ratelimit/config          a directory of files in the format of envoyproxy/ratelimit
  weir check --envoy basic.yaml        one such file";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file; or a directory of Envoy's rate limit files
    file: PathBuf,
    /// It is in the format of envoyproxy/ratelimit, as a directory always is
    #[arg(long)]
    envoy: bool,
    /// Several of Envoy's files may have one domain in common
    #[arg(long)]
    merge_domains: bool,
}

/// Checks the file alone: what this shell's environment would replace is no part of it.
pub(crate) fn run(args: &Args) -> ExitCode {
    let checked = if args.envoy || args.file.is_dir() {
        let files = EnvoyFiles::load(&args.file, args.merge_domains);
        files.map(|files| files_are_ok(&files)).map_err(|errors| errors.to_string())
    } else {
        native(args)
    };
    match checked.map(|summary| print(&format!("{}: ok, {summary}\n", args.file.display()))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&error.to_string(), 1),
        Err(errors) => {
            // As compilers write them, so that editors find the place; nobody left to tell if stderr is gone.
            let _ = writeln!(io::stderr(), "{errors}");
            ExitCode::FAILURE
        }
    }
}

fn native(args: &Args) -> Result<String, String> {
    let config = Config::load(&args.file, &Overrides::default()).map_err(|errors| errors.to_string())?;
    let strategies = counted(config.rules.strategies().len(), "strategy", "strategies");
    let resources = counted(config.rules.resources().len(), "resource pattern", "resource patterns");
    let mut summary = format!("{strategies}, {resources}");
    if let Some(folder) = &config.envoy.config {
        let files = EnvoyFiles::load(folder, args.merge_domains || config.envoy.merge_domains);
        let files = files.map_err(|errors| errors.to_string())?;
        summary.push_str(&format!(", and for Envoy {}", files_are_ok(&files)));
    }
    Ok(summary)
}

/// What Envoy's files hold, after telling what has no effect.
fn files_are_ok(files: &EnvoyFiles) -> String {
    envoy::warn(files);
    let limits = files.clone().compile().rules().len();
    let (count, domains) =
        (counted(files.count, "file", "files"), counted(files.domains.len(), "domain", "domains"));
    format!("{count}, {domains}, {}", counted(limits, "limit", "limits"))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
