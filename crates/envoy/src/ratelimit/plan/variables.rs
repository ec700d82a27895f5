//! The table of the reference's variables: name, kind, default, and what each does here. It feeds the reader,
//! `--explain` and the table of docs/envoy.md.

mod process;
mod server;
mod store;
mod xds;

use weir_config::foreign::quote;

use super::values::{boolean, duration, float, integer};

/// A variable of the reference.
#[derive(Debug)]
pub struct RatelimitVariable {
    /// Name of the variable.
    pub name: &'static str,
    /// Default in the reference, as text.
    pub default: &'static str,
    pub(super) kind: VariableKind,
    /// Effect in Weir.
    pub effect: VariableEffect,
}

/// The effect of a variable here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableEffect {
    /// Sets this setting.
    Mapped(&'static str),
    /// No meaning in Weir; the reason.
    Ignored(&'static str),
    /// A meaning that Weir lacks; the behaviour in its place.
    Unsupported(&'static str),
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum VariableKind {
    Text,
    /// A text that is never shown.
    Hidden,
    /// An address, whose user and parameters are never shown.
    Url,
    Boolean,
    Duration,
    /// A whole number within bounds.
    Integer(i64, i64),
    Float,
    /// One of these words, in any case.
    Words(&'static [&'static str]),
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Boolean(bool),
    /// Nanoseconds.
    Duration(i64),
    Integer(i64),
    Float(f64),
}

/// A port.
const PORT: VariableKind = VariableKind::Integer(1, 65_535);
/// A count that has no meaning here.
const COUNT: VariableKind = VariableKind::Integer(i64::MIN, i64::MAX);

/// Returns every variable of the reference.
#[must_use]
pub fn ratelimit_variables() -> Vec<RatelimitVariable> {
    let mut all = server::variables();
    all.extend(process::variables());
    all.extend(xds::variables());
    all.extend(store::variables());
    all
}

fn mapped(
    name: &'static str,
    default: &'static str,
    kind: VariableKind,
    what: &'static str,
) -> RatelimitVariable {
    RatelimitVariable { name, default, kind, effect: VariableEffect::Mapped(what) }
}

fn ignored(
    name: &'static str,
    default: &'static str,
    kind: VariableKind,
    why: &'static str,
) -> RatelimitVariable {
    RatelimitVariable { name, default, kind, effect: VariableEffect::Ignored(why) }
}

fn unsupported(
    name: &'static str,
    default: &'static str,
    kind: VariableKind,
    instead: &'static str,
) -> RatelimitVariable {
    RatelimitVariable { name, default, kind, effect: VariableEffect::Unsupported(instead) }
}

impl RatelimitVariable {
    /// Parses a value, which is not empty.
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            VariableKind::Text | VariableKind::Hidden | VariableKind::Url => Ok(Value::Text(text.to_owned())),
            VariableKind::Boolean => boolean(text).map(Value::Boolean),
            VariableKind::Duration => duration(text).map(Value::Duration),
            VariableKind::Float => float(text).map(Value::Float),
            VariableKind::Integer(min, max) => match integer(text)? {
                number if number < min || number > max => {
                    Err(format!("{number} is out of bounds: it must be from {min} to {max}"))
                }
                number => Ok(Value::Integer(number)),
            },
            VariableKind::Words(words) => {
                let word = text.to_ascii_lowercase();
                let is_known = words.iter().any(|known| known.eq_ignore_ascii_case(&word));
                let wrong = || format!("{} is not one of {}", quote(text), words.join(", "));
                is_known.then_some(Value::Text(word)).ok_or_else(wrong)
            }
        }
    }

    /// The value as it may be shown.
    pub(super) fn shown(&self, text: &str) -> String {
        match self.kind {
            VariableKind::Hidden => "(hidden)".to_owned(),
            VariableKind::Url => quote(&without_secrets(text)),
            _ => quote(text),
        }
    }
}

/// An address, or several with commas, without users and parameters.
pub(super) fn without_secrets(url: &str) -> String {
    // A password may contain a comma: everything before the last `@` is hidden.
    let (start, rest) = match url.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", url),
    };
    let (rest, end) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?…"),
        None => (rest, ""),
    };
    format!("{start}{rest}{end}")
}
