//! Errors of commands.

use std::borrow::Cow;

/// The text of an error, without the minus sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimulatedError(pub(super) Cow<'static, str>);

impl SimulatedError {
    pub(super) const WRONG_TYPE: Self =
        Self::new("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(super) const SYNTAX: Self = Self::new("ERR syntax error");
    pub(super) const NOT_AN_INTEGER: Self = Self::new("ERR value is not an integer or out of range");
    pub(super) const NOT_A_FLOAT: Self = Self::new("ERR value is not a valid float");
    pub(super) const OVERFLOW: Self = Self::new("ERR increment or decrement would overflow");

    pub(super) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(super) fn from_text(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    /// The error of a command with too few or too many arguments.
    pub(super) fn arity(command: &str) -> Self {
        Self::from_text(format!("ERR wrong number of arguments for '{command}' command"))
    }
}
