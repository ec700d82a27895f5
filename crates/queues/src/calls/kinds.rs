//! Detects nodes that run a queue of the same name as another `kind`. Items of the two kinds lie under different keys, so
//! such nodes split the queue: workers of the one never get what the other accepts.
//!
//! Each node looks for items of the other kind. So it also finds those that were left when the kind was changed.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{QueueKind, QueueOp, QueuePart, QueueRule};

use super::CurrentQueues;
use crate::store::{QueueAsk, QueueHandle, QueueStore as _};

/// Interval of the looks.
const EVERY: Duration = Duration::from_secs(20);

/// A queue as other nodes may have it.
struct OtherKind {
    /// The queue with the other kind.
    rule: QueueRule,
    /// True while items of this kind are there.
    is_split: bool,
}

/// Looks for split queues until the process ends. `store` opens connections on the runtime that runs this.
pub(crate) async fn watch(store: QueueHandle, current: CurrentQueues) {
    let mut queues = current.load_full();
    let mut others: Vec<OtherKind> = queues.rules.all().iter().filter_map(OtherKind::from_rule).collect();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = current.load_full();
        if !Arc::ptr_eq(&queues, &now) {
            queues = now;
            let known =
                |rule: &QueueRule| others.iter().any(|it| it.is_split && it.rule.name() == rule.name());
            let with_state = |mut other: OtherKind| {
                other.is_split = known(&other.rule);
                other
            };
            others = queues.rules.all().iter().filter_map(OtherKind::from_rule).map(with_state).collect();
        }
        for other in &mut others {
            other.poll(&store).await;
        }
    }
}

impl OtherKind {
    fn from_rule(rule: &QueueRule) -> Option<Self> {
        let mut numbers = rule.numbers().clone();
        numbers.kind = match numbers.kind {
            QueueKind::Stream => QueueKind::List,
            QueueKind::List => QueueKind::Stream,
        };
        let rule = QueueRule::new(rule.name(), numbers).ok()?;
        Some(Self { rule, is_split: false })
    }

    async fn poll(&mut self, store: &QueueHandle) {
        let op = QueueOp::Stats { outcomes: 0 };
        let ask = QueueAsk { rule: &self.rule, part: QueuePart::Main, op, deadline: None };
        // A store that is away, or a right that only the other kind needs, is no news of this queue.
        let Ok(answer) = store.queue(&ask).await else { return };
        let is_split = answer.depth > 0;
        let (queue, items, kind) = (self.rule.name(), answer.depth, self.rule.numbers().kind.name());
        match (std::mem::replace(&mut self.is_split, is_split), is_split) {
            (false, true) => tracing::warn!(
                queue,
                items,
                kind,
                what_to_do = "set the same `kind` on all nodes; a node with the other one takes the items that are left",
                "queue is split; it has items of another kind, which this node does not deliver"
            ),
            (true, false) => tracing::info!(queue, "queue recovered; all items are of this node's kind"),
            _ => {}
        }
    }
}
