//! Texts of other commands about queues.

use std::collections::BTreeMap;

use weir_config::Config;
use weir_queues::configured_queues;
use weir_queues::model::QueueRule;

/// Says how many queues there are.
pub(in crate::cli) fn summary(config: &Config) -> Option<String> {
    match configured_queues(config).all().len() {
        0 => None,
        1 => Some("1 queue".to_owned()),
        count => Some(format!("{count} queues")),
    }
}

/// Says which queues differ.
pub(in crate::cli) fn changes(old: &Config, new: &Config) -> Vec<String> {
    let named = |config: &Config| -> BTreeMap<String, QueueRule> {
        let queues = configured_queues(config);
        queues.all().iter().map(|rule| (rule.name().to_owned(), rule.clone())).collect()
    };
    let (old, mut new) = (named(old), named(new));
    let mut lines = Vec::new();
    for (name, rule) in old {
        match new.remove(&name) {
            None => lines.push(format!("queues.{name}: removed; its items stay in the store")),
            Some(other) if other != rule => lines.push(format!("queues.{name}: changed; its items stay")),
            Some(_) => {}
        }
    }
    lines.extend(new.keys().map(|name| format!("queues.{name}: added")));
    lines
}

/// Returns the arguments of a command for the first queue.
pub(in crate::cli) fn example(config: &Config) -> Option<String> {
    Some(format!("queue put {} hello", configured_queues(config).all().first()?.name()))
}
