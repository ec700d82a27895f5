//! Bounds of a question's fields. Every error names the field, the value and the bound.

use std::fmt::Write as _;

use weir_core::algorithm::MAX_LIMITS;
use weir_core::key::MAX_PART;
use weir_core::strategy::{MAX_ATTRIBUTES, Strategy, Unknown};
use weir_units::{LONGEST_SPAN, Micros};

use super::Question;

/// The most questions that one batch may hold.
pub const MAX_BATCH: usize = 1000;

/// The longest id, in bytes.
pub const MAX_ID: usize = 128;

/// A field that breaks its bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: {bound}")]
pub struct InvalidField {
    /// The field, as the request names it.
    pub field: &'static str,
    /// The value, escaped and shortened.
    pub value: String,
    /// The bound, as a sentence.
    pub bound: String,
}

/// Checks the bounds that do not depend on the strategy.
pub(super) fn check(question: &Question<'_>) -> Result<(), InvalidField> {
    if question.resource.is_empty() {
        return Err(invalid("resource", "", format!("it must be 1 to {MAX_PART} bytes")));
    }
    for (field, text) in
        [("resource", question.resource), ("consumer", question.consumer), ("strategy", question.strategy)]
    {
        check_length(field, text)?;
    }
    check_attributes(&question.attributes)
}

/// Checks that the request has each field that a limit counts by.
pub(super) fn check_needed(question: &Question<'_>, strategy: &Strategy) -> Result<(), InvalidField> {
    if question.consumer.is_empty() && strategy.names_consumer() {
        let bound = format!(
            "it must be 1 to {MAX_PART} bytes, because a limit of strategy `{}` counts by consumer",
            strategy.name()
        );
        return Err(invalid("consumer", "", bound));
    }
    let has =
        |name: &str| question.attributes.iter().any(|(known, value)| *known == name && !value.is_empty());
    match strategy.needed_attributes().iter().find(|one| !has(&one.attribute)) {
        Some(one) => {
            let bound = format!(
                "it must be 1 to {MAX_PART} bytes, because limit `{}` of strategy `{}` counts by it",
                one.limit,
                strategy.name()
            );
            Err(InvalidField { field: "attributes", value: format!("without \"{}\"", one.attribute), bound })
        }
        None => Ok(()),
    }
}

fn check_attributes(attributes: &[(&str, &str)]) -> Result<(), InvalidField> {
    let count = attributes.len();
    if count > MAX_ATTRIBUTES {
        let (value, bound) = (format!("{count} entries"), format!("there may be at most {MAX_ATTRIBUTES}"));
        return Err(InvalidField { field: "attributes", value, bound });
    }
    for (name, value) in attributes {
        check_length("attributes (name)", name)?;
        check_length("attributes (value)", value)?;
    }
    Ok(())
}

/// Checks how many questions a batch holds.
pub fn check_batch(count: usize) -> Result<(), InvalidField> {
    if (1..=MAX_BATCH).contains(&count) {
        return Ok(());
    }
    let (value, bound) = (format!("{count} entries"), format!("there must be 1 to {MAX_BATCH}"));
    Err(InvalidField { field: "requests", value, bound })
}

pub(super) fn check_refund(cost: u64, id: &str) -> Result<(), InvalidField> {
    check_some_cost(cost, "nothing cannot be given back")?;
    check_id(id)
}

pub(super) fn check_debit(cost: u64, id: &str) -> Result<(), InvalidField> {
    check_some_cost(cost, "nothing was used that could be charged")?;
    check_id(id)
}

fn check_some_cost(cost: u64, why: &str) -> Result<(), InvalidField> {
    if cost == 0 {
        let bound = format!("it must be at least 1: {why}");
        return Err(InvalidField { field: "cost", value: "0".to_owned(), bound });
    }
    Ok(())
}

/// Checks an id that may be empty.
fn check_id(id: &str) -> Result<(), InvalidField> {
    if id.len() > MAX_ID {
        return Err(invalid("id", id, format!("it has {} bytes; at most {MAX_ID} fit", id.len())));
    }
    Ok(())
}

/// Checks the id of a reservation.
pub(super) fn check_needed_id(id: &str) -> Result<(), InvalidField> {
    if id.is_empty() {
        return Err(invalid("id", "", format!("it must be 1 to {MAX_ID} bytes")));
    }
    check_id(id)
}

/// Checks the optional fields of a question: at_most, id, max_wait.
#[cold]
pub(super) fn check_shaping(question: &Question<'_>, strategy: &Strategy) -> Result<(), InvalidField> {
    let Some(shaping) = question.shaping.as_deref() else { return Ok(()) };
    if question.peek && shaping.at_most {
        let bound = "it cannot stand beside peek, which grants nothing".to_owned();
        return Err(InvalidField { field: "at_most", value: "true".to_owned(), bound });
    }
    if question.peek && shaping.once.is_some() {
        let bound = "it cannot stand beside peek, which charges nothing".to_owned();
        return Err(invalid("id", question.id(), bound));
    }
    let Some(max_wait) = shaping.max_wait else { return check_id(question.id()) };
    check_needed_id(question.id())?;
    let bound = |bound: String| Err(InvalidField { field: "max_wait", value: max_wait.to_string(), bound });
    let most = strategy.max_reservation();
    if max_wait > most {
        return bound(format!(
            "it must be at most {most}, the max_reservation of strategy `{}`",
            strategy.name()
        ));
    }
    match strategy.algorithms() {
        [one] => match one.longest_wait().filter(|longest| max_wait > *longest) {
            Some(longest) => bound(format!(
                "it must be at most {longest}, the window of the held log of strategy `{}`",
                strategy.name()
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Names of limits that the strategy does not have. At most as many are shown as it could have.
pub(super) fn unknown_limits(strategy: &Strategy, names: &[&str]) -> InvalidField {
    let quoted = |name: &&str| format!("\"{}\"", shown(name));
    let unknown: Vec<String> = names.iter().take(MAX_LIMITS).map(quoted).collect();
    let bound = format!("strategy `{}` has only {}", strategy.name(), limit_names(strategy));
    InvalidField { field: "limits", value: unknown.join(", "), bound }
}

pub(super) fn unknown_limit(strategy: &Strategy, name: &str) -> InvalidField {
    let bound = format!("strategy `{}` has only {}", strategy.name(), limit_names(strategy));
    invalid("limit", name, bound)
}

/// Error for a missing name of a limit where the strategy has several.
pub(super) fn unnamed_limit(strategy: &Strategy) -> InvalidField {
    let bound =
        format!("strategy `{}` has several limits; name one of {}", strategy.name(), limit_names(strategy));
    invalid("limit", "", bound)
}

/// Error for a refund that names no limits, beside costs by name.
pub(super) fn unnamed_refund(strategy: &Strategy) -> InvalidField {
    let bound = format!(
        "the limits of strategy `{}` have costs of different units, so those that are meant must be named: {}",
        strategy.name(),
        limit_names(strategy)
    );
    InvalidField { field: "limits", value: "empty".to_owned(), bound }
}

/// An interval, given as whole seconds and nanoseconds.
pub fn interval(span: Option<(i64, i32)>) -> Result<Micros, InvalidField> {
    let bound = format!("it must be from 0 s to {} s", LONGEST_SPAN.0 / 1_000_000);
    let Some((seconds, nanos)) = span else {
        return Err(InvalidField { field: "interval", value: "not set".to_owned(), bound });
    };
    let fits = (0..=LONGEST_SPAN.0 / 1_000_000).contains(&u64::try_from(seconds).unwrap_or(u64::MAX))
        && (0..1_000_000_000).contains(&nanos);
    if !fits {
        return Err(InvalidField { field: "interval", value: format!("{seconds} s and {nanos} ns"), bound });
    }
    let micros = u64::try_from(seconds).unwrap_or(0) * 1_000_000 + u64::try_from(nanos / 1_000).unwrap_or(0);
    Ok(Micros(micros))
}

/// Error for a count over more than the window of its limit.
pub(super) fn beyond_window(interval: Micros, window: Micros) -> InvalidField {
    let bound = format!("it must be at most {window}, the window of the limit");
    InvalidField { field: "interval", value: interval.to_string(), bound }
}

/// Error for a reset that names no limits, of a strategy without limits by consumer.
pub(super) fn no_limit_by_consumer(strategy: &Strategy) -> InvalidField {
    let bound = format!(
        "no limit of strategy `{}` counts by consumer, so those that are meant must be named: {}",
        strategy.name(),
        limit_names(strategy)
    );
    InvalidField { field: "limits", value: "empty".to_owned(), bound }
}

fn limit_names(strategy: &Strategy) -> String {
    let names: Vec<&str> = strategy.limits().iter().map(|limit| &*limit.name).collect();
    names.join(", ")
}

/// Escapes and shortens the name in an error.
pub(super) fn shortened(unknown: Unknown) -> Unknown {
    match unknown {
        Unknown::Strategy { name, near } => Unknown::Strategy { name: shown(&name), near },
        Unknown::Resource { name, near } => Unknown::Resource { name: shown(&name), near },
    }
}

fn check_length(field: &'static str, text: &str) -> Result<(), InvalidField> {
    if text.len() > MAX_PART {
        return Err(invalid(field, text, format!("it has {} bytes; at most {MAX_PART} fit", text.len())));
    }
    Ok(())
}

fn invalid(field: &'static str, text: &str, bound: String) -> InvalidField {
    InvalidField { field, value: format!("\"{}\"", shown(text)), bound }
}

/// The beginning of a text that somebody else chose, with everything escaped that is not printable.
pub fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 64;
    let mut out = String::new();
    for (index, char) in text.chars().enumerate() {
        if index == SHOWN_CHARS {
            out.push('…');
            break;
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "{}", char.escape_debug());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_is_shown_is_short_and_printable() {
        assert_eq!(shown("bob"), "bob");
        assert_eq!(shown("a\0b\nc"), "a\\0b\\nc");
        assert_eq!(shown(&"x".repeat(64)), "x".repeat(64));
        assert_eq!(shown(&"🦀".repeat(65)), format!("{}…", "🦀".repeat(64)));
    }
}
