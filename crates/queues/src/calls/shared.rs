//! The queues that all workers share: their rules, the lines of waiting takers, and the counters.

use std::sync::Arc;

use crate::model::{FullQueue, QueueKind, QueuePart, QueueRule, QueueRules};
use arc_swap::ArcSwap;

use super::line::TakeLine;
use crate::metrics::{QueueCounters, QueueMetrics};

/// The parts of each queue, in the order of the lines and counters.
const PARTS: [QueuePart; 2] = [QueuePart::Main, QueuePart::Dead];

/// State that all workers share: the queues, the lines of waiting takers, and the counters.
#[derive(Default)]
pub struct SharedQueues {
    pub(super) rules: QueueRules,
    /// Two lines of waiting takers per queue: one for its items, one for its dead letters.
    pub(super) lines: Vec<Arc<TakeLine>>,
    /// The counters, in the same order.
    pub(super) counters: Vec<Arc<QueueCounters>>,
    metrics: QueueMetrics,
}

/// The queues of the current configuration.
pub(crate) type CurrentQueues = Arc<ArcSwap<SharedQueues>>;

impl SharedQueues {
    /// The queues of a configuration.
    #[must_use]
    pub fn new(rules: QueueRules) -> Self {
        Self::default().reconfigured(rules)
    }

    /// The queues of the next configuration. Those that remain keep their lines and counters. Those that are removed
    /// stay until a later reload finds them empty.
    #[must_use]
    pub fn reconfigured(&self, rules: QueueRules) -> Self {
        let was_configured = |rule: &QueueRule| {
            let configured = self.rules.all().iter().take(self.rules.configured());
            configured.into_iter().any(|own| own.name() == rule.name())
        };
        let holds_items = |rule: &QueueRule| PARTS.iter().any(|&part| self.depth(&rule.name_of(part)) > 0);
        let rules = rules.after(&self.rules, |rule| was_configured(rule) || holds_items(rule));
        let names = || rules.all().iter().flat_map(|rule| PARTS.map(|part| rule.name_of(part)));
        let counters = self.metrics.configure(names());
        let known = |name: &String| self.place(name).and_then(|place| self.lines.get(place)).cloned();
        let lines = names().map(|name| known(&name).unwrap_or_default()).collect();
        Self { rules, lines, counters, metrics: self.metrics.clone() }
    }

    /// The place of a queue, or of its dead letters, among the lines and counters.
    fn place(&self, name: &str) -> Option<usize> {
        let mut names = self.rules.all().iter().flat_map(|rule| PARTS.map(|part| rule.name_of(part)));
        names.position(|known| known == name)
    }

    /// The depth that was seen last.
    fn depth(&self, name: &str) -> u64 {
        self.place(name).and_then(|place| self.counters.get(place)).map_or(0, |counters| counters.depth())
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.all().is_empty()
    }

    /// True if any of them drops items or lets them age, which asks the store how far it is read.
    #[must_use]
    pub fn reads_groups(&self) -> bool {
        self.rules.all().iter().any(|rule| {
            let numbers = rule.numbers();
            let drops = numbers.max_age.is_some() || numbers.when_full == FullQueue::DropOldest;
            drops && numbers.kind == QueueKind::Stream
        })
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &QueueMetrics {
        &self.metrics
    }
}
