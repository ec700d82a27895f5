//! Callers of a token budget: they hold, work, and settle what they have used. Some die, and some repeat themselves.

use std::time::Duration;

use weir_node::limiter::{LimiterError, NamedCost, Shaping};

use super::calls::Caller;
use crate::log::SimulationEvent;
use crate::setup::BUDGET_COST;

/// Number of times that a caller asks until it has an answer.
const TRIES: usize = 4;

impl Caller {
    /// One call, from its estimate to its settlement.
    pub(super) async fn call_model(mut self, consumer: &str) {
        let id = format!("call-{}", self.call);
        let (estimate, hold_for) = (self.random.between(5, 20), self.random.between(500_000, 3_000_000));
        let Some(granted) = self.hold_tokens(consumer, &id, estimate, hold_for).await else { return };
        tokio::time::sleep(Duration::from_micros(self.random.between(0, hold_for / 2))).await;
        if self.random.one_in(4) {
            return;
        }
        // From now on the holder does not count on it.
        self.log.add(SimulationEvent::Settling { key: consumer.to_owned(), id: id.clone() });
        let used = self.random.below(1 + granted / 2);
        self.settle(consumer, &id, used).await;
    }

    /// Holds, until there is an answer. Returns what is granted.
    async fn hold_tokens(&mut self, consumer: &str, id: &str, estimate: u64, hold_for: u64) -> Option<u64> {
        let least = self.random.one_in(2).then_some(1);
        for _ in 0..TRIES {
            let cost = NamedCost { name: BUDGET_COST, cost: estimate, at_least: least };
            let shaping = Shaping {
                costs: vec![cost],
                hold_for: Some(((hold_for / 1_000_000) as i64, (hold_for % 1_000_000 * 1_000) as i32)),
                ..Shaping::under(id)
            };
            let sent = self.log.now();
            match self.worker.hold(consumer, shaping).await {
                Ok(None) => return None,
                Ok(Some((units, held_for, is_new))) => {
                    let (key, id) = (consumer.to_owned(), id.to_owned());
                    self.log.add(SimulationEvent::Held { key, id, units, sent, held_for, is_new });
                    return Some(units);
                }
                // It was held by an earlier try, and has ended.
                Err(LimiterError::OtherContents) => return None,
                Err(_) => tokio::time::sleep(Duration::from_millis(self.random.between(1, 60))).await,
            }
        }
        None
    }

    /// Settles until there is an answer, and now and then once more.
    async fn settle(&mut self, consumer: &str, id: &str, used: u64) {
        for _ in 0..TRIES {
            let shaping = Shaping {
                costs: vec![NamedCost { name: BUDGET_COST, cost: used, at_least: None }],
                ..Shaping::under(id)
            };
            if let Ok((outcome, is_new)) = self.worker.settle(consumer, shaping).await {
                let (key, id) = (consumer.to_owned(), id.to_owned());
                self.log.add(SimulationEvent::Settled { key, id, used, outcome, is_new });
                if !self.random.one_in(3) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(self.random.between(1, 60))).await;
        }
    }
}
