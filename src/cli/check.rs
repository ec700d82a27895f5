//! `weir check PATH`: reports all mistakes of a configuration in one run.

mod acl;
mod diff;
mod directory;
#[cfg_attr(not(feature = "envoy"), path = "check/without_envoy.rs")]
mod envoy;
mod strategies;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_config::{Checked, Config, MAX_FILE};

use self::directory::DirectoryFiles;
use self::envoy::EnvoyArgs;
use super::feature_texts::summaries;
use super::settings::no_overrides;
use super::{fail, print, printed, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir check weir.yaml                 a configuration, and Envoy's files if it names some
  weir check a.yaml b.yaml             several, each by itself
  helm template . | weir check -       one from standard input
  weir check configs                   every configuration of a directory, each by itself
  weir check --config conf.d           the files of a directory as one configuration, as `weir serve` reads them
  weir check ratelimit/config          a directory of files in the format of envoyproxy/ratelimit
  weir check --envoy basic.yaml        one such file
  weir check --diff weir.yaml new.yaml what a change does: what differs, starts full, or needs a restart
  weir check --redis-acl weir.yaml     the ACL line for Weir's user on Redis: pipe it to redis-cli";

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Configuration files, `-` for standard input; or directories of configurations, or of Envoy's rate limit files
    #[arg(required_unless_present_any = ["config", "diff"], value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file or a directory of one configuration, as `weir serve --config` reads it; may be given several times
    #[arg(long, short, value_name = "PATH", conflicts_with = "files")]
    config: Vec<PathBuf>,
    /// Show the effects of a change: which strategies, limits and overrides differ, which states start full, and what needs a
    /// restart. Both are files or directories
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["files", "config"])]
    diff: Vec<PathBuf>,
    /// Print the `ACL SETUSER` line with all rights that the configuration needs on Redis, and nothing else
    #[arg(long, conflicts_with = "diff")]
    redis_acl: bool,
    #[command(flatten)]
    of_envoy: EnvoyArgs,
}

/// The summary of a valid configuration, or the lines of its mistakes.
type CheckedConfig = Result<String, Vec<String>>;

/// Checks the file alone: overrides in this shell's environment are ignored.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    if let [old, new] = &args.diff[..] {
        return differences(old, new);
    }
    if args.redis_acl {
        let paths = if args.files.is_empty() { &args.config } else { &args.files };
        return acl::run(paths, &args.of_envoy);
    }
    let mut code = ExitCode::SUCCESS;
    let outcomes = outcomes(args);
    let several = outcomes.len() > 1;
    for (file, outcome) in outcomes {
        match outcome {
            Ok(summary) => {
                if let Err(error) = print(&format!("{file}: ok, {summary}\n")) {
                    return fail(&error.to_string(), 1);
                }
            }
            Err(errors) => {
                code = ExitCode::FAILURE;
                // In the format of compilers, so that editors find the position.
                errors.iter().for_each(|error| say(error));
            }
        }
    }
    if code != ExitCode::SUCCESS && args.files.iter().any(|path| path.is_dir()) && several {
        let hint =
            "each file was checked by itself; `weir check --config DIR` checks them as one configuration";
        say(&format!("note: {hint}"));
    }
    code
}

fn differences(old: &Path, new: &Path) -> ExitCode {
    match diff::diff(old, new) {
        Ok(text) => printed(print(&text)),
        Err(errors) => {
            errors.iter().for_each(|error| say(error));
            ExitCode::FAILURE
        }
    }
}

fn outcomes(args: &CheckArgs) -> Vec<(String, CheckedConfig)> {
    if args.files.is_empty() {
        return vec![(names(&args.config), native(&args.config, &args.of_envoy))];
    }
    args.files.iter().flat_map(|path| outcomes_of(path, args)).collect()
}

/// The outcomes of one path, each with the name of its file.
fn outcomes_of(path: &Path, args: &CheckArgs) -> Vec<(String, CheckedConfig)> {
    let shown = |path: &Path| path.display().to_string();
    if args.of_envoy.is_on() || !path.is_dir() {
        return vec![(shown(path), one(path, args))];
    }
    let files = DirectoryFiles::read(path);
    let whole = files.natives.is_empty() && (files.unknown.is_empty() || !files.envoys.is_empty());
    if whole {
        return vec![(shown(path), envoy::directory(path, &args.of_envoy))];
    }
    let alone = |file: &PathBuf| native(std::slice::from_ref(file), &args.of_envoy);
    let natives = files.natives.iter().map(|file| (file.clone(), alone(file)));
    let envoys = files.envoys.iter().map(|file| (file.clone(), envoy::files(file, &args.of_envoy)));
    let unknown = files.mistakes().map(|(file, error)| (file.to_owned(), Err(vec![error])));
    natives.chain(envoys).chain(unknown).map(|(path, outcome)| (shown(&path), outcome)).collect()
}

fn one(file: &Path, args: &CheckArgs) -> CheckedConfig {
    match args.of_envoy.is_on() {
        true => envoy::files(file, &args.of_envoy),
        false => native(&[file.to_owned()], &args.of_envoy),
    }
}

/// Reads a configuration from files, or from standard input.
fn checked(paths: &[PathBuf]) -> Result<Checked, Vec<String>> {
    if paths != [Path::new("-")] {
        return Ok(Config::check_all(paths, &no_overrides()));
    }
    let mut text = Vec::new();
    // One byte more than allowed detects a text that is too large.
    let read = io::stdin().lock().take(MAX_FILE as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| vec![format!("-: cannot be read: {error}")])?;
    let text = String::from_utf8(text).map_err(|_| vec!["-: is not UTF-8".to_owned()])?;
    Ok(Config::check_text(&text, "-", &no_overrides()))
}

/// Checks a configuration of Weir, with Envoy's files if it names some.
fn native(paths: &[PathBuf], of_envoy: &EnvoyArgs) -> CheckedConfig {
    let Checked { config, notes, sections } = checked(paths)?;
    notes.iter().for_each(|note| say(&format!("note: {note}")));
    let (config, files) = match (config, envoy::named_by(&sections, of_envoy)) {
        (Ok(config), Ok(files)) => (config, files),
        (config, files) => {
            let errors = [config.err().map(|it| it.to_string()), files.err()];
            return Err(errors.into_iter().flatten().collect());
        }
    };
    for exposure in config.exposures() {
        say(&format!("note: {}: {exposure}", names(paths)));
    }
    for warning in config.access_warnings() {
        say(&format!("warning: {}: {warning}", names(paths)));
    }
    for remark in strategies::remarks(&config) {
        say(&remark.line(&names(paths)));
    }
    let strategies = counted(config.rules.strategies().len(), "strategy", "strategies");
    let resources = counted(config.rules.resources().len(), "resource pattern", "resource patterns");
    let features: String = summaries(&config).map(|text| format!(", {text}")).collect();
    let files = files.map(|files| format!(", and for Envoy {files}"));
    Ok(format!("{strategies}, {resources}{features}{}", files.unwrap_or_default()))
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
