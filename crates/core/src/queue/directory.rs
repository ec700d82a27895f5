//! The queues of a configuration, by name.

use super::{QueuePart, QueueRule};

/// Suffix of the names of dead-letter queues.
const DEAD: &str = ":dead";

/// The queues of a configuration. There may be none.
#[derive(Debug, Clone, Default)]
pub struct QueueRules(Vec<QueueRule>);

/// A queue that a caller names.
#[derive(Debug, Clone, Copy)]
pub struct NamedQueue<'a> {
    /// Index of the queue.
    pub index: usize,
    /// The queue.
    pub rule: &'a QueueRule,
    /// The queue itself, or its dead letters.
    pub part: QueuePart,
}

/// A name that no queue has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("queue: there is no queue `{name}`{}", or_near(near))]
pub struct UnknownQueue {
    /// The requested name.
    pub name: String,
    /// At most three names that look like it.
    pub near: Vec<String>,
}

impl QueueRules {
    /// Queues with different names.
    #[must_use]
    pub fn new(queues: Vec<QueueRule>) -> Self {
        Self(queues)
    }

    /// All queues, in order.
    #[must_use]
    pub fn all(&self) -> &[QueueRule] {
        &self.0
    }

    /// The queue `NAME`, or the dead letters `NAME:dead`.
    pub fn find(&self, name: &str) -> Result<NamedQueue<'_>, UnknownQueue> {
        let (own, part) = match name.strip_suffix(DEAD) {
            Some(own) => (own, QueuePart::Dead),
            None => (name, QueuePart::Main),
        };
        let found = self.0.iter().enumerate().find(|(_, rule)| rule.name() == own);
        let has_part = |rule: &QueueRule| part == QueuePart::Main || rule.numbers().max_deliveries.is_some();
        match found.filter(|(_, rule)| has_part(rule)) {
            Some((index, rule)) => Ok(NamedQueue { index, rule, part }),
            None => Err(UnknownQueue { name: name.to_owned(), near: self.near(own) }),
        }
    }

    /// At most three names that look like `name`, the likeliest first.
    fn near(&self, name: &str) -> Vec<String> {
        const ALIKE: f64 = 0.7;
        let likeness = |rule: &QueueRule| {
            let likeness = strsim::jaro_winkler(rule.name(), name);
            (likeness >= ALIKE).then(|| (likeness, rule.name().to_owned()))
        };
        let mut near: Vec<(f64, String)> = self.0.iter().filter_map(likeness).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

impl QueueRule {
    /// Its name, or that of its dead letters.
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
