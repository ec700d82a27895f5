//! Leases of holders, by the answers that holders got.

use std::collections::BTreeMap;

use weir::leases::model::{LeaseOp, LeaseOutcome};

use super::CheckedRun;
use crate::log::{LoggedEvent, SimulationEvent};
use crate::setup::PERMITS_LIMIT;

/// A lease as its holder knows it, by the true time: a server's clock may step while the lease is held.
#[derive(Debug, Clone, Copy)]
struct KnownLease {
    weight: u64,
    from: u64,
    until: u64,
}

/// Returns the permits that were held above the limit: never more than one limit above it for each failover and step
/// of a clock.
pub(super) fn excess(events: &[LoggedEvent], run: &CheckedRun) -> Option<String> {
    let mut keys = BTreeMap::<&str, BTreeMap<&str, KnownLease>>::new();
    // When scripts ran, by the servers' times that their answers have.
    let mut ran_at = BTreeMap::new();
    for event in events {
        if let SimulationEvent::Script(script) = &event.event {
            ran_at.insert(script.now, event.at);
        }
        let SimulationEvent::Leased { key, id, op, answer, .. } = &event.event else { continue };
        let leases = keys.entry(key).or_default();
        match (op, answer) {
            // The holder gives it back: from now on it does not count on it.
            (LeaseOp::Release { .. }, None) => {
                if let Some(lease) = leases.get_mut(id.as_str()) {
                    lease.until = lease.until.min(event.at);
                }
            }
            (LeaseOp::Acquire { .. } | LeaseOp::Renew { .. }, Some(Ok(answer))) => {
                let LeaseOutcome::Held { expires_after, .. } = answer.outcome else { continue };
                let Some(&from) = ran_at.get(&answer.now) else {
                    return Some(format!("{key}: no script ran at {}, when {id} was granted", answer.now.0));
                };
                let until = from + expires_after.0;
                let weight = if let LeaseOp::Acquire { weight, .. } = op { *weight } else { 0 };
                let lease = leases.entry(id).or_insert(KnownLease { weight, from, until });
                lease.until = until;
            }
            _ => {}
        }
    }
    let most = PERMITS_LIMIT * (1 + run.exceptions);
    keys.iter().find_map(|(key, leases)| {
        leases.values().find_map(|first| {
            let held = |lease: &&KnownLease| lease.from <= first.from && first.from < lease.until;
            let held: u64 = leases.values().filter(held).map(|lease| lease.weight).sum();
            (held > most).then(|| format!("{key}: {held} permits are held, at most {most} may be"))
        })
    })
}
