//! Bounds of the fields that only calls about leases have. Every error names the field, the value and the bound.

use weir_core::strategy::ConcurrencyRule;
use weir_node::limiter::{InvalidField, shown};
use weir_units::{LONGEST_SPAN, Micros};

use crate::model::MAX_LEASE_ID;

/// The most leases that one call of an operator releases.
pub const MAX_RELEASED: usize = 1_000;

/// Longest reported duration of work.
pub const MAX_RTT: Micros = LONGEST_SPAN;

pub(super) fn check_id(id: &str) -> Result<(), InvalidField> {
    if (1..=MAX_LEASE_ID).contains(&id.len()) {
        return Ok(());
    }
    let bound = format!("it has {} bytes; it must have 1 to {MAX_LEASE_ID}", id.len());
    Err(InvalidField { field: "id", value: format!("\"{}\"", shown(id)), bound })
}

pub(super) fn check_ids(ids: &[String]) -> Result<(), InvalidField> {
    if ids.len() > MAX_RELEASED {
        let bound = format!("a call releases at most {MAX_RELEASED} leases");
        return Err(InvalidField { field: "ids", value: format!("{} ids", ids.len()), bound });
    }
    ids.iter().try_for_each(|id| check_id(id))
}

pub(super) fn check_weight(weight: u64, rule: &ConcurrencyRule) -> Result<(), InvalidField> {
    let most = rule.max_weight();
    if (1..=most).contains(&weight) {
        return Ok(());
    }
    Err(InvalidField { field: "weight", value: weight.to_string(), bound: format!("it must be 1 to {most}") })
}

pub(super) fn check_ttl(ttl: Micros, rule: &ConcurrencyRule) -> Result<(), InvalidField> {
    let longest = rule.numbers().max_ttl;
    if (Micros(1)..=longest).contains(&ttl) {
        return Ok(());
    }
    let bound = format!("it must be 1us to {longest}, which is the strategy's `max_ttl`");
    Err(InvalidField { field: "ttl", value: ttl.to_string(), bound })
}

pub(super) fn check_rtt(rtt: Micros) -> Result<(), InvalidField> {
    if (Micros(1)..=MAX_RTT).contains(&rtt) {
        return Ok(());
    }
    Err(InvalidField { field: "rtt", value: rtt.to_string(), bound: format!("it must be 1us to {MAX_RTT}") })
}
