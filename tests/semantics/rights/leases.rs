//! Leases of a fixed limit, and of an adaptive one with partitions.

use std::collections::HashMap;
use std::sync::Arc;

use weir_core::key::Subject;
use weir_core::strategy::{
    AimdRule, Attributes, ConcurrencyNumbers, ControllerRule, LimitSource, Partitions, Strategy,
};
use weir_leases::model::{LeaseOp, LeaseOutcome, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_testing::rights;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::Guarded;
use crate::support::leases::{START, adaptive, numbers, strategy};

const LIMIT: usize = 3;

fn strategies() -> [Arc<Strategy>; 2] {
    let controller = ControllerRule::Aimd(AimdRule { backoff: 0.9, timeout: Micros::from_secs(5) });
    let source = LimitSource::Adaptive(adaptive((LIMIT as u64, LIMIT as u64, LIMIT as u64), controller));
    let shares = vec![("gold".into(), 1), ("silver".into(), 1)];
    let partitions = Some(Partitions::new("tier", shares));
    let adaptive = ConcurrencyNumbers { source, partitions, ..numbers(LIMIT as u64) };
    [strategy("fixed", numbers(LIMIT as u64)), strategy("adaptive", adaptive)]
}

/// Calls for one resource, and the leases that were granted by what was answered: until when each is held.
struct Holder<'a> {
    store: &'a RedisStore,
    strategy: &'a Arc<Strategy>,
    resource: &'a str,
    clock: &'a ManualClock,
    held: HashMap<&'static str, Micros>,
}

impl Holder<'_> {
    async fn ask(&mut self, tier: &str, id: &'static str, op: LeaseOp) -> Result<LeaseOutcome, StoreError> {
        let tier = [("tier", tier)];
        let attributes = Attributes::of_pairs(&tier);
        let subject = Subject { resource: self.resource, attributes, ..Subject::default() };
        let answer =
            self.store.lease(&LeaseAsk { strategy: self.strategy, subject, id, op, deadline: None }).await?;
        match answer.outcome {
            LeaseOutcome::Held { expires_after, .. } => {
                self.held.insert(id, Micros(self.clock.now().0 + expires_after.0));
            }
            LeaseOutcome::Released => {
                self.held.remove(id);
            }
            _ => {}
        }
        let now = self.clock.now();
        self.held.retain(|_, until| *until > now);
        // A partition has at least one permit of its own.
        let most = LIMIT + usize::from(self.strategy.name() == "adaptive");
        assert!(self.held.len() <= most, "{}: {:?}", self.resource, self.held);
        Ok(answer.outcome)
    }

    fn pass(&self, seconds: u64) {
        self.clock.set(Micros(self.clock.now().0 + seconds * 1_000_000));
    }
}

#[tokio::test]
async fn a_missing_right_grants_and_loses_no_lease() {
    // A caller's own clock needs another command for expiry.
    let more = [&rights::of_leases()[..], &["+pexpire"]].concat();
    let guarded = Guarded::start(&more);
    let clock = ManualClock::at(Micros(START));
    let store = guarded.store(Clock::Manual(clock.clone())).await;
    let acquire = |seconds| LeaseOp::Acquire { weight: 1, ttl: Micros::from_secs(seconds) };
    let renew = LeaseOp::Renew { ttl: Micros::from_secs(60) };
    let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
    for strategy in strategies() {
        for right in [&more[..], &["+del", "+time"]].concat() {
            let resource = format!("{}{right}", strategy.name());
            let held = HashMap::new();
            let mut holder =
                Holder { store: &store, strategy: &strategy, resource: &resource, clock: &clock, held };
            for (tier, id, seconds) in [("gold", "a", 60), ("gold", "b", 60), ("silver", "c", 1)] {
                holder.ask(tier, id, acquire(seconds)).await.unwrap();
            }
            holder.pass(2);
            guarded.withdraw(right);
            for (tier, id, op) in [
                ("silver", "d", acquire(60)),
                ("gold", "d", acquire(60)),
                ("gold", "c", acquire(60)),
                ("gold", "e", acquire(60)),
                ("gold", "a", release),
                ("gold", "b", renew),
                ("silver", "f", acquire(60)),
            ] {
                if let Err(error) = holder.ask(tier, id, op).await {
                    assert!(matches!(error, StoreError::Refused(_)), "{resource} {op:?}: {error}");
                }
            }
            guarded.grant_all();
            let now = clock.now();
            holder.held.retain(|_, until| *until > now);
            let known: Vec<_> = holder.held.keys().copied().collect();
            assert!(known.contains(&"b"), "{resource}");
            for id in known {
                let renewed = holder.ask("gold", id, renew).await.unwrap();
                assert!(
                    matches!(renewed, LeaseOutcome::Held { .. }),
                    "{resource} has lost {id}: {renewed:?}"
                );
            }
            for id in ["g", "h", "i"] {
                holder.ask("gold", id, acquire(60)).await.unwrap();
            }
            // Once all have ended, the whole limit is there.
            holder.pass(3600);
            let mut granted = 0;
            for id in ["u", "v", "w", "x"] {
                let outcome = holder.ask("gold", id, acquire(60)).await.unwrap();
                granted += usize::from(matches!(outcome, LeaseOutcome::Held { .. }));
            }
            assert_eq!(granted, LIMIT, "{resource}");
        }
    }
}
