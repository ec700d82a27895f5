//! The variables that are set, parsed by the table, and all mistakes in them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use super::variables::{RatelimitVariable, Value, VariableEffect, ratelimit_variables};

/// The variables of the reference that are set.
#[derive(Debug)]
pub struct RatelimitGiven {
    values: BTreeMap<&'static str, Value>,
    lines: Vec<RatelimitLine>,
    pub(super) errors: Vec<String>,
}

/// The effect of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatelimitLine {
    /// Name of the variable.
    pub name: &'static str,
    /// Value of the variable, without secrets.
    pub value: String,
    /// Effect of the variable.
    pub effect: VariableEffect,
}

/// Every mistake in the variables. No message shows a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatelimitErrors {
    /// The mistakes, a line each.
    pub mistakes: Vec<String>,
    /// Lines about the variables without mistakes.
    pub lines: Vec<RatelimitLine>,
}

impl fmt::Display for RatelimitErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistakes.join("\n"))
    }
}

impl std::error::Error for RatelimitErrors {}

impl RatelimitGiven {
    /// Reads every variable of the table from `lookup`. A variable that is set but empty counts as not set.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut given = Self { values: BTreeMap::new(), lines: Vec::new(), errors: Vec::new() };
        for variable in ratelimit_variables() {
            match lookup(variable.name).map(OsString::into_string) {
                None => {}
                Some(Err(_)) => given.errors.push(format!("{}: it is not UTF-8", variable.name)),
                Some(Ok(text)) => given.add(&variable, &text),
            }
        }
        given
    }

    fn add(&mut self, variable: &RatelimitVariable, text: &str) {
        let name = variable.name;
        if text.is_empty() {
            let effect = VariableEffect::Ignored("it is empty, which is as not set");
            self.lines.push(RatelimitLine { name, value: "\"\"".to_owned(), effect });
            return;
        }
        match variable.parse(text) {
            Ok(value) => {
                let effect = match (variable.effect, &value) {
                    (VariableEffect::Unsupported(_), Value::Boolean(false)) => {
                        VariableEffect::Ignored("it is off here in any case")
                    }
                    (effect, _) => effect,
                };
                self.lines.push(RatelimitLine { name, value: variable.shown(text), effect });
                self.values.insert(name, value);
            }
            Err(reason) => self.errors.push(format!("{name}: {reason}")),
        }
    }

    /// Says what a variable does that does something else than the table says.
    pub(super) fn explain(&mut self, name: &'static str, effect: VariableEffect) {
        for line in self.lines.iter_mut().filter(|line| line.name == name) {
            line.effect = effect;
        }
    }

    /// Returns a line for each variable that is set.
    pub(super) fn lines(&self) -> Vec<RatelimitLine> {
        self.lines.clone()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let Value::Text(text) = self.values.get(name)? else { return None };
        Some(text)
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        let Value::Boolean(boolean) = self.values.get(name)? else { return None };
        Some(*boolean)
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        let Value::Integer(integer) = self.values.get(name)? else { return None };
        Some(*integer)
    }

    pub(super) fn float(&self, name: &str) -> Option<f64> {
        let Value::Float(float) = self.values.get(name)? else { return None };
        Some(*float)
    }

    /// A duration in microseconds, at least 0.
    pub(super) fn micros(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            Value::Duration(nanos) => Some(u64::try_from(*nanos / 1_000).unwrap_or(0)),
            _ => None,
        }
    }

    /// Reports a mistake of a variable.
    pub(super) fn wrong(&mut self, name: &str, reason: impl fmt::Display) {
        self.errors.push(format!("{name}: {reason}"));
    }
}
