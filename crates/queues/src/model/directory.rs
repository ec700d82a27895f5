//! The queues of a configuration, by name.

use std::collections::HashMap;

use super::{QueuePart, QueueRule};
use weir_core::near::KnownNames;

/// Suffix of the names of dead-letter queues.
const DEAD: &str = ":dead";

/// Removed queues that are still served. The oldest are dropped.
const MAX_REMOVED: usize = 100;

/// The queues of a configuration, and removed ones that may still hold items. There may be none.
#[derive(Debug, Clone, Default)]
pub struct QueueRules {
    /// The configured ones, then the removed ones.
    queues: Vec<QueueRule>,
    configured: usize,
    by_name: HashMap<Box<str>, usize>,
    /// The configured names, for what looks like one.
    names: KnownNames,
}

/// A queue that a caller names.
#[derive(Debug, Clone, Copy)]
pub struct NamedQueue<'a> {
    /// Index of the queue.
    pub index: usize,
    /// The queue.
    pub rule: &'a QueueRule,
    /// The queue itself, or its dead letters.
    pub part: QueuePart,
    /// True if the configuration does not have it any more: it takes no new items.
    pub is_removed: bool,
}

/// A name that no queue has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("queue: there is no queue `{name}`{}", or_near(near))]
pub struct UnknownQueue {
    /// The requested name.
    pub name: String,
    /// Similar names, at most three.
    pub near: Vec<String>,
}

impl QueueRules {
    /// Queues with different names.
    #[must_use]
    pub fn new(queues: Vec<QueueRule>) -> Self {
        let names = queues.iter().map(QueueRule::name).collect();
        Self { configured: queues.len(), by_name: index(&queues), queues, names }
    }

    /// Adds the queues of `before` that are no longer configured and that are `kept`.
    #[must_use]
    pub fn after(mut self, before: &Self, kept: impl Fn(&QueueRule) -> bool) -> Self {
        let is_gone = |rule: &&QueueRule| self.queues.iter().all(|own| own.name() != rule.name());
        // What was removed last comes first.
        let removed = before.queues.iter().filter(is_gone).filter(|&rule| kept(rule)).take(MAX_REMOVED);
        let removed: Vec<QueueRule> = removed.cloned().collect();
        self.queues.extend(removed);
        self.by_name = index(&self.queues);
        self
    }

    /// All queues, in order: the configured ones, then those that were removed.
    #[must_use]
    pub fn all(&self) -> &[QueueRule] {
        &self.queues
    }

    /// Number of configured queues, which come first.
    #[must_use]
    pub fn configured(&self) -> usize {
        self.configured
    }

    /// The queue `NAME`, or the dead letters `NAME:dead`.
    pub fn find(&self, name: &str) -> Result<NamedQueue<'_>, UnknownQueue> {
        let (own, part) = match name.strip_suffix(DEAD) {
            Some(own) => (own, QueuePart::Dead),
            None => (name, QueuePart::Main),
        };
        let found = self.by_name.get(own).and_then(|index| Some((*index, self.queues.get(*index)?)));
        let has_part = |rule: &QueueRule| part == QueuePart::Main || rule.numbers().max_deliveries.is_some();
        match found.filter(|(_, rule)| has_part(rule)) {
            Some((index, rule)) => Ok(NamedQueue { index, rule, part, is_removed: index >= self.configured }),
            None => Err(self.unknown(name)),
        }
    }

    /// The error of a name that no queue has.
    #[must_use]
    pub fn unknown(&self, name: &str) -> UnknownQueue {
        let near = self.names.near(name.strip_suffix(DEAD).unwrap_or(name));
        UnknownQueue { name: name.to_owned(), near }
    }
}

/// The places of the queues by name; the first one counts.
fn index(queues: &[QueueRule]) -> HashMap<Box<str>, usize> {
    queues.iter().enumerate().rev().map(|(index, rule)| (rule.name().into(), index)).collect()
}

impl QueueRule {
    /// Name of the queue, or of its dead letters.
    #[must_use]
    pub fn name_of(&self, part: QueuePart) -> String {
        match part {
            QueuePart::Main => self.name().to_owned(),
            QueuePart::Dead => format!("{}{DEAD}", self.name()),
        }
    }
}

fn or_near(near: &[String]) -> String {
    let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) }
}
