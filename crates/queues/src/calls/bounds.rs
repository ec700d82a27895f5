//! Bounds of calls about queues. Every error names the field, the value and the bound.

use std::collections::HashSet;

use crate::model::{MAX_DELAY, MAX_ITEMS, MAX_OUTCOME, MAX_PAYLOAD, MAX_PUT_ID, MAX_TAKER, MAX_VISIBILITY};
use weir_node::limiter::{InvalidField, shown};
use weir_units::Micros;

use super::{PutItem, WorkersItems};

/// The longest wait of a call for an item.
pub const MAX_WAIT: Micros = Micros::from_secs(300);

/// The shortest time that a worker can ask for.
const SHORTEST_VISIBILITY: Micros = Micros(1_000);

/// Most unused credit of a subscription.
pub const MAX_CREDIT: u32 = 10_000;

pub(super) fn check_items(items: &[PutItem<'_>]) -> Result<(), InvalidField> {
    check_count("items", items.len())?;
    let mut ids = HashSet::with_capacity(items.len());
    for item in items {
        if item.payload.len() > MAX_PAYLOAD {
            let value = format!("{} bytes", item.payload.len());
            return Err(invalid("payload", value, format!("an item has at most {MAX_PAYLOAD} bytes")));
        }
        check_text("id", item.id, 0, MAX_PUT_ID)?;
        if !item.id.is_empty() && !ids.insert(item.id) {
            let bound = "two items of one call cannot have the same id".to_owned();
            return Err(invalid("id", quoted(item.id), bound));
        }
    }
    Ok(())
}

pub(super) fn check_ids(items: WorkersItems<'_>) -> Result<(), InvalidField> {
    let (ids, tokens) = (items.ids.len(), items.tokens.len());
    check_count("ids", ids)?;
    if tokens == 0 || tokens == ids {
        return Ok(());
    }
    let bound = format!("there must be none, or one for each of the {ids} ids");
    Err(invalid("tokens", format!("{tokens} entries"), bound))
}

pub(super) fn check_visibility(visibility: Micros) -> Result<(), InvalidField> {
    if (SHORTEST_VISIBILITY..=MAX_VISIBILITY).contains(&visibility) {
        return Ok(());
    }
    let bound = format!("it must be {SHORTEST_VISIBILITY} to {MAX_VISIBILITY}");
    Err(invalid("visibility", visibility.to_string(), bound))
}

fn check_count(field: &'static str, count: usize) -> Result<(), InvalidField> {
    if (1..=MAX_ITEMS).contains(&count) {
        return Ok(());
    }
    Err(invalid(field, format!("{count} entries"), format!("there must be 1 to {MAX_ITEMS}")))
}

pub(super) fn check_taker(consumer: &str, max_items: usize) -> Result<(), InvalidField> {
    check_text("consumer", consumer, 1, MAX_TAKER)?;
    check_page(max_items)
}

pub(super) fn check_page(max_items: usize) -> Result<(), InvalidField> {
    if (1..=MAX_ITEMS).contains(&max_items) {
        return Ok(());
    }
    Err(invalid("max_items", max_items.to_string(), format!("it must be 1 to {MAX_ITEMS}")))
}

pub(super) fn check_wait(wait: Micros) -> Result<(), InvalidField> {
    check_span("max_wait", wait, MAX_WAIT)
}

pub(super) fn check_delay(delay: Micros) -> Result<(), InvalidField> {
    check_span("delay", delay, MAX_DELAY)
}

fn check_span(field: &'static str, span: Micros, most: Micros) -> Result<(), InvalidField> {
    if span <= most {
        return Ok(());
    }
    Err(invalid(field, span.to_string(), format!("it must be at most {most}")))
}

pub(super) fn check_outcome(outcome: &str) -> Result<(), InvalidField> {
    check_text("outcome", outcome, 0, MAX_OUTCOME)
}

pub(super) fn check_shown(field: &'static str, outcomes: usize) -> Result<(), InvalidField> {
    if outcomes <= MAX_ITEMS {
        return Ok(());
    }
    Err(invalid(field, outcomes.to_string(), format!("it must be at most {MAX_ITEMS}")))
}

fn check_text(field: &'static str, text: &str, min: usize, max: usize) -> Result<(), InvalidField> {
    if (min..=max).contains(&text.len()) {
        return Ok(());
    }
    let bound = format!("it has {} bytes; it must have {min} to {max}", text.len());
    Err(invalid(field, quoted(text), bound))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

fn invalid(field: &'static str, value: String, bound: String) -> InvalidField {
    InvalidField { field, value, bound }
}
