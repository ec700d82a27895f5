//! The explanation of a queue: its parameters and its keys, as text and as JSON.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use weir_config::Config;
use weir_core::key::{self, KeySecret, Namespace, Placements, QueueKeys};
use weir_queues::configured_queues;
use weir_queues::model::{FullQueue, NamedQueue, PayloadRule, QueueKind, QueueOrder, QueuePart};

use crate::cli::allow_output::AllowOutput;
use crate::cli::explanation::algorithm::span;
use crate::cli::explanation::place;

/// Explains a queue, or dead letters, of the configuration. Without `placements` the store is memory.
pub(in crate::cli) fn explain(
    config: &Config,
    name: &str,
    placements: Option<&Placements>,
    output: AllowOutput,
) -> Result<String> {
    let queues = configured_queues(config);
    let secret = config.key_secret.unwrap_or(KeySecret::BUILT_IN);
    let named = queues.find(name)?;
    let explained = ExplainedQueue { named, secret, placements, namespace: &config.namespace };
    match output {
        AllowOutput::Text => Ok(explained.text()),
        AllowOutput::Json => explained.json(),
    }
}

/// A queue of the configuration.
struct ExplainedQueue<'a> {
    named: NamedQueue<'a>,
    /// The secret of the hash tags.
    secret: KeySecret,
    /// The placement of keys in Redis; `None` if the store is memory.
    placements: Option<&'a Placements>,
    /// The key prefix.
    namespace: &'a Namespace,
}

impl ExplainedQueue<'_> {
    /// Formats the explanation as text.
    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let mut line = |name: &str, what: &str| {
            let _ = writeln!(out, "{name:10}{what}");
        };
        line("queue", &format!("`{}`, {}", self.named.rule.name_of(self.named.part), self.kind()));
        line("holds", &self.bounds());
        line("leaves", &self.pace());
        self.redelivery().iter().for_each(|what| line("again", what));
        if self.has_outcomes() {
            line("outcomes", &self.outcomes());
        }
        match self.placements {
            Some(placements) => {
                line(
                    "tag",
                    &format!("queue `{}`, {}", self.named.rule.name(), place(self.tag(), placements)),
                );
                self.keys().iter().for_each(|key| line("  key", key));
            }
            None => {
                line("store", "memory: its items are gone when the process ends, and each node has its own")
            }
        }
        out
    }

    /// Formats the explanation as JSON.
    fn json(&self) -> Result<String> {
        let numbers = self.named.rule.numbers();
        let pace = numbers.pace.filter(|_| !self.is_dead());
        let slot = key::slot(self.tag());
        let place = self.placements.map(|placements| {
            let part =
                placements.part(slot).map(|part| json!({ "number": part.number, "shards": part.shards }));
            json!({ "slot": slot, "part": part, "keys": self.keys() })
        });
        let value: Value = json!({
            "queue": self.named.rule.name_of(self.named.part),
            "kind": numbers.kind.name(),
            "capacity": numbers.capacity,
            "max_bytes": numbers.max_bytes,
            "rate": pace.map(|pace| json!({ "items": pace.count, "period_us": pace.period.0 })),
            "visibility_us": numbers.visibility.0,
            "max_deliveries": numbers.max_deliveries.filter(|_| !self.is_dead()),
            "max_age_us": numbers.max_age.filter(|_| !self.is_dead()).map(|age| age.0),
            "when_full": (!self.is_dead()).then(|| numbers.when_full.name()),
            "order": self.is_list().then(|| numbers.order.name()),
            "outcomes": self.has_outcomes().then(|| json!({
                "keep_us": numbers.outcomes.keep.0,
                "max": numbers.outcomes.max,
                "payload": numbers.outcomes.payload.name(),
            })),
            "redis": place,
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    fn is_dead(&self) -> bool {
        self.named.part == QueuePart::Dead
    }

    /// True for a list, whose items are neither acked nor nacked.
    fn is_list(&self) -> bool {
        self.named.rule.numbers().kind == QueueKind::List && !self.is_dead()
    }

    fn has_outcomes(&self) -> bool {
        !self.is_list() && self.named.rule.numbers().outcomes.keep.0 > 0
    }

    fn kind(&self) -> String {
        match (self.is_dead(), self.is_list()) {
            (true, _) => format!(
                "the dead letters of `{}`: items that were delivered too often",
                self.named.rule.name()
            ),
            (false, true) if self.named.rule.numbers().order == QueueOrder::Lifo => {
                "a list: delivered at most once, the newest first; a place is free when its item is taken"
                    .to_owned()
            }
            (false, true) => {
                "a list: delivered at most once; a place is free when its item is taken".to_owned()
            }
            (false, false) => {
                "a stream: delivered at least once; an item holds its place until it is acked".to_owned()
            }
        }
    }

    fn bounds(&self) -> String {
        let numbers = self.named.rule.numbers();
        let when_full = if self.is_dead() {
            "while it is full, items continue to be delivered in their queue"
        } else if numbers.when_full == FullQueue::DropOldest {
            "when it is full, the oldest items that no worker has are dropped for new ones"
        } else {
            "when it is full, all items of a call are refused"
        };
        let text = format!(
            "at most {} items and {} bytes of payload; {when_full}",
            numbers.capacity, numbers.max_bytes
        );
        match numbers.max_age.filter(|_| !self.is_dead()) {
            None => text,
            Some(age) => {
                let to =
                    if numbers.max_deliveries.is_some() { "go to the dead letters" } else { "are dropped" };
                format!("{text}; items that no worker has {to} when they are older than {}", span(age.0))
            }
        }
    }

    fn pace(&self) -> String {
        match self.named.rule.numbers().pace.filter(|_| !self.is_dead()) {
            Some(pace) => {
                format!("{} items in {}, evenly, whoever takes them", pace.count, span(pace.period.0))
            }
            None => "as fast as workers take it".to_owned(),
        }
    }

    fn redelivery(&self) -> Option<String> {
        let numbers = self.named.rule.numbers();
        let then = match numbers.max_deliveries.filter(|_| !self.is_dead()) {
            Some(most) => {
                format!("after {most} deliveries it goes to `{}`", self.named.rule.name_of(QueuePart::Dead))
            }
            None => "as often as it takes".to_owned(),
        };
        (!self.is_list())
            .then(|| format!("an item that is not acked within {}; {then}", span(numbers.visibility.0)))
    }

    fn outcomes(&self) -> String {
        let outcomes = self.named.rule.numbers().outcomes;
        let payload = match outcomes.payload {
            PayloadRule::None => "",
            PayloadRule::Digest => ", with the digest of the payload",
            PayloadRule::Head => ", with the first bytes of the payload",
        };
        format!("kept for {}, the newest {}{payload}", span(outcomes.keep.0), outcomes.max)
    }

    fn tag(&self) -> u128 {
        key::queue_tag(&self.secret, self.named.rule.name())
    }

    /// Returns its keys. A list has neither due times nor outcomes.
    fn keys(&self) -> Vec<String> {
        let prefix = self.namespace.prefix(self.tag());
        let keys = QueueKeys::of_part(prefix, self.named.rule.name(), self.is_list(), self.is_dead());
        let own = if self.is_list() { vec![0, 2] } else { vec![0, 1, 2, 3] };
        let keys: Vec<String> = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        own.into_iter().filter_map(|index: usize| keys.get(index).cloned()).collect()
    }
}
