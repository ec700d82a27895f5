//! Detects unknown `WEIR_*` variables: a misspelled one would silently have no effect.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory as _};

use super::{Cli, settings};

const PREFIX: &str = "WEIR_";
/// Maximum edit distance of a misspelling.
const EDITS: usize = 2;

/// Variables of earlier versions that would change nothing any more, with the present ones.
const RENAMED: [(&str, &str); 1] = [("WEIR_CONTROL_AUDIT_FILE", "WEIR_AUDIT_FILE")];

/// An unknown variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// A name that is similar to that of a known variable.
    Misspelled {
        /// The name that is set.
        name: String,
        /// The name that was probably meant.
        meant: String,
    },
    /// A name that is similar to none.
    Unknown(String),
}

/// Returns the unknown variables of this process that begin with `WEIR_`, sorted.
#[allow(clippy::disallowed_methods)] // the command line may read the environment
pub(super) fn unread() -> Vec<Unread> {
    let set = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    among(set, &known())
}

/// Returns the variables of all options of all commands.
fn known() -> BTreeSet<String> {
    fn add(command: &Command, names: &mut BTreeSet<String>) {
        let variables = command.get_arguments().filter_map(|argument| argument.get_env());
        names.extend(variables.map(|name| name.to_string_lossy().into_owned()));
        command.get_subcommands().for_each(|command| add(command, names));
    }
    let mut names = settings::secrets().collect();
    add(&Cli::command(), &mut names);
    names
}

/// Logs the variables that nothing reads.
pub(super) fn warn(unread: &[Unread]) {
    for variable in unread {
        if let Unread::Unknown(name) = variable {
            tracing::warn!(
                variable = name,
                "unknown environment variable with the prefix WEIR_; ignoring it"
            );
        }
    }
}

fn among(set: impl Iterator<Item = String>, known: &BTreeSet<String>) -> Vec<Unread> {
    let set: BTreeSet<String> =
        set.filter(|name| name.starts_with(PREFIX) && !known.contains(name)).collect();
    let unread = |name: String| {
        if let Some((_, now)) = RENAMED.iter().find(|(before, _)| *before == name) {
            return Unread::Misspelled { name, meant: (*now).to_owned() };
        }
        let near = known.iter().map(|known| (strsim::levenshtein(known, &name), known)).min();
        match near.filter(|(edits, _)| *edits <= EDITS && !is_of_kubernetes(&name)) {
            Some((_, meant)) => Unread::Misspelled { meant: meant.clone(), name },
            None => Unread::Unknown(name),
        }
    };
    set.into_iter().map(unread).collect()
}

/// True for variables that Kubernetes sets: for a Service called `weir` every pod of its namespace gets
/// `WEIR_SERVICE_HOST`, `WEIR_PORT`, `WEIR_PORT_8081_TCP` and more. They are not mistakes.
fn is_of_kubernetes(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_the_help_is_known() {
        let known = known();
        for name in ["WEIR_LOG", "WEIR_LISTEN", "WEIR_STRATEGY", "WEIR_TIMEOUT", "WEIR_REDIS_PASSWORD"] {
            assert!(known.contains(name), "{name} is not in {known:?}");
        }
    }

    #[test]
    fn what_is_nearly_a_known_name_is_misspelled() {
        let misspelled =
            |name: &str, meant: &str| Unread::Misspelled { name: name.to_owned(), meant: meant.to_owned() };
        let unknown = |name: &str| Unread::Unknown(name.to_owned());
        for (name, expected) in [
            ("WEIR_BUDGTE", misspelled("WEIR_BUDGTE", "WEIR_BUDGET")),
            ("WEIR_LISTN", misspelled("WEIR_LISTN", "WEIR_LISTEN")),
            ("WEIR_REDIS_PASSWORT", misspelled("WEIR_REDIS_PASSWORT", "WEIR_REDIS_PASSWORD")),
            ("WEIR_CONTROL_AUDIT_FILE", misspelled("WEIR_CONTROL_AUDIT_FILE", "WEIR_AUDIT_FILE")),
            ("WEIR_COLOUR_OF_LOGS", unknown("WEIR_COLOUR_OF_LOGS")),
            // Two edits from WEIR_COST and WEIR_STORE.
            ("WEIR_PORT", unknown("WEIR_PORT")),
            ("WEIR_SERVICE_HOST", unknown("WEIR_SERVICE_HOST")),
            ("WEIR_SERVICE_PORT_GRPC", unknown("WEIR_SERVICE_PORT_GRPC")),
            ("WEIR_PORT_8081_TCP_ADDR", unknown("WEIR_PORT_8081_TCP_ADDR")),
            ("WEIR_ADMIN_PORT_8080_TCP", unknown("WEIR_ADMIN_PORT_8080_TCP")),
        ] {
            assert_eq!(among([name.to_owned()].into_iter(), &known()), [expected]);
        }
        let fine = ["WEIR_BUDGET", "HOME", "WEIRD"].map(str::to_owned);
        assert_eq!(among(fine.into_iter(), &known()), []);
    }
}
