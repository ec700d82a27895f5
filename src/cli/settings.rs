//! The options that override settings, generated from the table of settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use weir_config::{Config, ConfigErrors, ConfigOverrides, Outside, Setting};
use weir_store::tls;

use crate::features::{self, settings};

/// Options of `serve`, and their variables, as unparsed texts: the configuration validates them together with the
/// file, and reports all mistakes at once.
#[derive(Debug)]
pub(crate) struct Settings {
    config: Vec<PathBuf>,
    overrides: ConfigOverrides,
}

impl Settings {
    /// Loads the files, or the built-in example, with the overrides.
    pub(crate) fn load(self) -> Result<Config, ConfigErrors> {
        loaded(&self.config, &self.overrides)
    }

    /// The files that are named, and the overrides.
    #[cfg(feature = "envoy")]
    pub(crate) fn into_parts(self) -> (Vec<PathBuf>, ConfigOverrides) {
        (self.config, self.overrides)
    }
}

/// Loads files and directories, or the built-in example if none is named.
pub(super) fn loaded(paths: &[PathBuf], overrides: &ConfigOverrides) -> Result<Config, ConfigErrors> {
    if paths.is_empty() { Config::built_in_with(overrides) } else { Config::load_all(paths, overrides) }
}

impl Args for Settings {
    /// Adds the option for the file, and one for each setting of the table that has a flag.
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config").long("config").short('c').env("WEIR_CONFIG").value_name("PATH");
        let file = file.value_parser(value_parser!(PathBuf)).action(ArgAction::Append);
        let file = file.help(
            "A configuration file, or a directory of them; may be given several times; without one, the built-in \
             example is served",
        );
        let files = Arg::new("files").value_name("FILE");
        let files = files.value_parser(value_parser!(PathBuf)).action(ArgAction::Append).num_args(0..);
        let files = files.help("The same as --config, without the flag");
        let options = settings().into_iter().filter_map(|(_, setting)| option(&setting));
        command.arg(file).arg(files).args(options).after_help(variables())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut overrides = no_overrides();
        for (_, setting) in settings() {
            let Some(name) = setting.outside.name() else { continue };
            let text = match (setting.flag(), setting.variable()) {
                (Some(_), _) => matches.get_one::<String>(name).cloned(),
                (None, Some(variable)) => secret(&variable),
                (None, None) => None,
            };
            if let Some(text) = text {
                overrides = overrides.with(name, text);
            }
        }
        let paths = |name| matches.get_many::<PathBuf>(name).into_iter().flatten().cloned();
        // A file that is named goes before the one of WEIR_CONFIG.
        let mut config: Vec<PathBuf> = paths("files").collect();
        if config.is_empty() || matches.value_source("config") == Some(ValueSource::CommandLine) {
            config.extend(paths("config"));
        }
        Ok(Self { config, overrides })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns no overrides, but the TLS checks, which validate certificates, and the variables that values name.
pub(super) fn no_overrides() -> ConfigOverrides {
    let checks = features::overrides().with_tls_check(tls::check);
    checks.with_port_tls_check(weir_node::tls::check).with_variables(variable)
}

/// Looks up a variable that a value of the configuration names.
#[allow(clippy::disallowed_methods)] // the command line may read the environment
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Iterates over the variables of settings without a flag: everybody on the machine can read a command line.
pub(super) fn secrets() -> impl Iterator<Item = String> {
    settings().into_iter().filter(|(_, setting)| setting.flag().is_none()).filter_map(|(_, it)| it.variable())
}

/// Builds the option of a setting, if it has a flag.
fn option(setting: &Setting) -> Option<Arg> {
    let (name, flag) = (setting.outside.name()?, setting.flag()?);
    let hidden = matches!(setting.outside, Outside::HiddenFlag(_));
    let arg = Arg::new(name).long(flag).value_name(setting.value_name).help(help(setting));
    Some(arg.env(setting.variable()?).hide_env_values(hidden))
}

/// Formats the help: its sentence without the full stop, its choices, and its default.
fn help(setting: &Setting) -> String {
    let about = setting.about.trim_end_matches('.');
    let words = if setting.value_name == "WORD" { format!(" ({})", setting.bounds) } else { String::new() };
    let default = setting.default.as_ref().map(|default| format!(" [default: {default}]"));
    format!("{about}{words}{}", default.unwrap_or_default())
}

fn variables() -> String {
    let secrets: Vec<String> = secrets().collect();
    format!("Passwords have a variable and no flag: {}.", secrets.join(", "))
}

/// Reads a variable of a setting without a flag.
#[allow(clippy::disallowed_methods)] // the command line may read the environment
fn secret(variable: &str) -> Option<String> {
    // A value that is not UTF-8 counts as empty, and is reported as that.
    std::env::var_os(variable).map(|value| value.into_string().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Settings {
        let command = Settings::augment_args(Command::new("serve").no_binary_name(true));
        Settings::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap()
    }

    /// Loads the built-in example with overrides; the mistake of a rejected value names its flag.
    fn outcome(overrides: &ConfigOverrides) -> Result<impl PartialEq + std::fmt::Debug + use<>, String> {
        let config = Config::built_in_with(overrides);
        config
            .map(|config| {
                let sections = format!("{:?}", config.sections);
                (config.key_secret, sections, config.server.audit_file)
            })
            .map_err(|errors| errors.to_string())
    }

    /// Tests that every flag of the table reaches the configuration.
    #[test]
    fn the_flag_of_every_setting_reaches_the_configuration() {
        let mut flags = 0;
        for (path, setting) in settings() {
            let (Some(flag), Some(name)) = (setting.flag(), setting.outside.name()) else { continue };
            let found = outcome(&parsed(&[&format!("--{flag}"), "what was given"]).overrides);
            assert_eq!(found, outcome(&no_overrides().with(name, "what was given")), "--{flag} of {path}");
            assert_ne!(found, outcome(&no_overrides()), "--{flag} of {path}");
            flags += 1;
        }
        assert!(flags >= 29, "{flags} flags");
        assert_eq!(
            parsed(&["-c", "weir.yaml", "-c", "more"]).config,
            ["weir.yaml", "more"].map(PathBuf::from)
        );
    }
}
