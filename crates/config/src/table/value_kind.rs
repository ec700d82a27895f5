//! The types of values, which the reader and the schema share.

use weir_units::Micros;

use super::super::quantities::{written_duration, written_size};
use super::Rows;

/// The type of a value, with its bounds.
#[derive(Debug)]
pub enum ValueKind {
    /// A duration without bounds.
    Duration,
    /// A duration, with inclusive bounds.
    Span(Micros, Micros),
    /// A rate.
    Rate,
    /// A whole number, with inclusive bounds.
    Count(u64, u64),
    /// A number of bytes, with inclusive bounds.
    Size(usize, usize),
    /// True or false.
    Boolean,
    /// A fraction of 1.
    Part,
    /// A decimal number above 0.
    Positive,
    /// A number with at most three fractional digits, with inclusive bounds.
    Thousandths(f64, f64),
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A choice among words of the table of settings.
    Words(Vec<&'static str>),
    /// Text with a minimum and a maximum length in bytes.
    Text(usize, usize),
    /// Text that matches a regular expression.
    Pattern(&'static str),
    /// A list of unique items, with a minimum and a maximum length.
    Set(&'static ValueKind, usize, usize),
    /// A list of at least, and at most so many items, which may be equal.
    Items(&'static ValueKind, usize, usize),
    /// A list of any length.
    List(&'static ValueKind),
    /// A section of the table of settings.
    Section(Rows),
    /// A reference to an entry of `$defs`.
    Defined(&'static str),
}

impl ValueKind {
    /// Formats the bounds for readers; empty without bounds.
    pub(crate) fn bounds(&self) -> String {
        match self {
            Self::Span(min, max) => format!("{} to {}", written_duration(*min), written_duration(*max)),
            Self::Count(min, max) => format!("{min} to {max}"),
            Self::Size(min, usize::MAX) => format!("{} or more", written_size(*min as u64)),
            Self::Size(min, max) => {
                format!("{} to {}", written_size(*min as u64), written_size(*max as u64))
            }
            Self::Part => "0 to 1".to_owned(),
            Self::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Self::Text(0, max) => format!("at most {max} bytes"),
            Self::Text(min, max) => format!("{min} to {max} bytes"),
            Self::Set(_, min, max) | Self::Items(_, min, max) => format!("{min} to {max}"),
            Self::Duration
            | Self::Rate
            | Self::Boolean
            | Self::Positive
            | Self::Thousandths(..)
            | Self::Choice(_)
            | Self::Pattern(_)
            | Self::List(_)
            | Self::Section(_)
            | Self::Defined(_) => String::new(),
        }
    }
}
