//! Held and used units of a token budget, by the answers that callers got.

use std::collections::BTreeMap;

use weir_core::algorithm::budget::SettleOutcome;

use super::CheckedRun;
use crate::log::{LoggedEvent, SimulationEvent};
use crate::setup::BUDGET_LIMIT;

/// A call as its holder knows it. Between the two it counts on nothing.
#[derive(Debug, Clone, Copy)]
enum KnownCall {
    /// Holds these units until this time.
    Held(u64, u64),
    Settling,
    /// A settlement of the open hold has charged these units.
    Used(u64),
}

/// Returns the units held and used above the limit, and calls that were held or settled twice. Nothing is promised
/// where a server loses writes or its clock steps; what settles late may be above the limit.
pub(super) fn excess(events: &[LoggedEvent], run: &CheckedRun) -> Option<String> {
    if run.exceptions > 0 {
        return None;
    }
    let mut keys = BTreeMap::<&str, BTreeMap<&str, KnownCall>>::new();
    let mut applied = BTreeMap::<(&str, bool), u64>::new();
    for event in events {
        let (key, id, known, is_applied) = match &event.event {
            SimulationEvent::Held { key, id, units, sent, held_for, is_new } => {
                (key, id, KnownCall::Held(*units, sent + held_for), Some((false, *is_new)))
            }
            SimulationEvent::Settling { key, id } => (key, id, KnownCall::Settling, None),
            SimulationEvent::Settled { key, id, used, outcome, is_new } => {
                let is_charged = *outcome == SettleOutcome::Settled;
                let known = if is_charged { KnownCall::Used(*used) } else { KnownCall::Settling };
                (key, id, known, Some((true, *is_new)))
            }
            _ => continue,
        };
        if let Some((is_settlement, true)) = is_applied {
            let times = applied.entry((id, is_settlement)).or_default();
            *times += 1;
            if *times > 1 {
                let what = if is_settlement { "settled" } else { "held" };
                return Some(format!("{key}: {id} was {what} {times} times"));
            }
        }
        let calls = keys.entry(key).or_default();
        calls.insert(id, known);
        let units = |call: &KnownCall| match *call {
            KnownCall::Held(units, until) if event.at < until => units,
            KnownCall::Used(units) => units,
            KnownCall::Held(..) | KnownCall::Settling => 0,
        };
        let sum: u64 = calls.values().map(units).sum();
        if sum > BUDGET_LIMIT {
            return Some(format!("{key}: {sum} tokens are held or used, at most {BUDGET_LIMIT} may be"));
        }
    }
    None
}
