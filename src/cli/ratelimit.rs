//! `weir ratelimit`: serves in the place of envoyproxy/ratelimit, as its variables say.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Parser as _;
use weir_config::{Config, ConfigErrors, FeatureSection};
use weir_envoy::metrics::short_digest;
use weir_envoy::ratelimit::{
    PORTS, RATELIMIT_DIFFERENCES, RatelimitErrors, RatelimitGiven, RatelimitLine, RatelimitLog,
    RatelimitPlan, RatelimitSurroundings, VariableEffect,
};
use weir_node::telemetry::{Format, init_logs, log_panics};

use super::{Bare, environment, fail, print, say, serve};

/// The name of the reference's program.
const NAME: &str = "ratelimit";

pub(super) const EXAMPLES: &str = "\
Examples:
  RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 weir ratelimit
  weir ratelimit --explain                             show the effect of each variable that is set";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct RatelimitArgs {
    /// Show the effect of each variable that is set, and exit
    #[arg(long)]
    explain: bool,
    /// Ignored, as the reference ignores all arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "IGNORED")]
    ignored: Vec<OsString>,
}

/// Returns the arguments, if the program or its first argument has the name of the reference's program: a launcher of the
/// reference starts that. `weir ratelimit` is a command like all others.
pub(super) fn called_as(mut arguments: impl Iterator<Item = OsString>) -> Option<RatelimitArgs> {
    let has_name = |path: &OsString| Path::new(path).file_name().is_some_and(|name| name == NAME);
    if !has_name(&arguments.next()?) {
        arguments.next().filter(|first| has_name(first) && first != NAME)?;
    }
    Some(RatelimitArgs { explain: false, ignored: arguments.collect() })
}

/// Serves until shutdown, or explains the variables.
pub(super) fn run(args: RatelimitArgs, unread: &[environment::Unread]) -> ExitCode {
    let given = RatelimitGiven::read(variable);
    let log = RatelimitLog::from_given(&given);
    if args.explain {
        return explain(given);
    }
    let filter = variable("WEIR_LOG").and_then(|filter| filter.into_string().ok());
    let filter = filter.unwrap_or_else(|| log.level.to_owned());
    let log = match init_logs(&filter, if log.json { Format::Json } else { Format::Text }) {
        Ok(log) => log,
        Err(reason) => return fail(&reason, 2),
    };
    log_panics();
    environment::warn(unread);
    super::ended(start(given, &args.ignored), &log)
}

fn explain(given: RatelimitGiven) -> ExitCode {
    let (lines, notes, mistakes) = match planned(given) {
        Ok((plan, _)) => (plan.lines, plan.notes, Vec::new()),
        Err(errors) => (errors.lines, Vec::new(), errors.mistakes),
    };
    let differences = RATELIMIT_DIFFERENCES
        .iter()
        .map(|(what, there, here)| format!("difference: {what}: there {there}; here {here}"));
    let lines = lines.iter().map(line).chain(notes).chain(differences);
    if let Err(error) = print(&lines.map(|line| line + "\n").collect::<String>()) {
        return fail(&format!("stdout: {error}"), 2);
    }
    mistakes.iter().for_each(|mistake| say(&format!("error: {mistake}")));
    if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// The effect of one variable, as `--explain` shows it.
fn line(RatelimitLine { name, value, effect }: &RatelimitLine) -> String {
    match effect {
        VariableEffect::Mapped(what) => format!("{name}={value}: sets {what}"),
        VariableEffect::Ignored(why) => format!("{name}={value}: ignored: {why}"),
        VariableEffect::Unsupported(instead) => format!("{name}={value}: not supported: {instead}"),
    }
}

/// The plan, and the native file if there is one.
fn planned(given: RatelimitGiven) -> Result<(RatelimitPlan, Vec<PathBuf>), RatelimitErrors> {
    let (files, native) = Bare::parse_from(["weir"]).serve.settings.into_parts();
    let around = RatelimitSurroundings { native, has_file: !files.is_empty(), digest: short_digest };
    Ok((RatelimitPlan::new(given, around)?, files))
}

fn start(given: RatelimitGiven, ignored: &[OsString]) -> Result<()> {
    let mistakes = |errors: &dyn std::fmt::Display| anyhow!("the configuration has mistakes:\n{errors}");
    if !ignored.is_empty() {
        tracing::warn!(
            count = ignored.len(),
            "ignoring arguments; `weir ratelimit` is configured by variables"
        );
    }
    let (plan, files) = planned(given).map_err(|errors| mistakes(&errors))?;
    log_lines(&plan);
    let mut config = load(&files, &plan).map_err(|errors| mistakes(&errors))?;
    config.server.alone = Some(plan.alone);
    config.sections.push(FeatureSection::new(PORTS, Arc::new(plan.ports)));
    serve::serve(config)
}

/// Loads the native file, if there is one; never the built-in example.
fn load(files: &[PathBuf], plan: &RatelimitPlan) -> Result<Config, ConfigErrors> {
    match files {
        [] => Config::parse("", "variables", &plan.overrides),
        files => Config::load_all(files, &plan.overrides),
    }
}

fn log_lines(plan: &RatelimitPlan) {
    for note in &plan.notes {
        tracing::warn!("{note}");
    }
    for one in &plan.lines {
        match one.effect {
            VariableEffect::Unsupported(_) => tracing::warn!("{}", line(one)),
            VariableEffect::Ignored(_) => tracing::info!("{}", line(one)),
            VariableEffect::Mapped(_) => tracing::debug!("{}", line(one)),
        }
    }
}

#[allow(clippy::disallowed_methods)] // the command line may read the environment
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(arguments: &[&str]) -> Option<Vec<OsString>> {
        called_as(arguments.iter().map(OsString::from)).map(|args| args.ignored)
    }

    #[test]
    fn a_launcher_of_the_reference_gets_what_it_starts() {
        let words = |words: &[&str]| Some(words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(called(&["/bin/ratelimit"]), words(&[]));
        assert_eq!(called(&["/bin/ratelimit", "-config", "F"]), words(&["-config", "F"]));
        assert_eq!(called(&["/weir", "/bin/ratelimit", "--explain"]), words(&["--explain"]));
        assert_eq!(called(&["/weir", "ratelimit"]), None, "a command of weir");
        assert_eq!(called(&["/weir", "serve", "/bin/ratelimit"]), None);
        assert_eq!(called(&["/weir"]), None);
        assert_eq!(called(&[]), None);
    }
}
