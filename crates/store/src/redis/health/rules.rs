//! Detects nodes of Weir that have other limits under the name of the same strategy: each of them judges the same states by its
//! own numbers.
//!
//! Each node keeps a hash under a key of its own: the version of its format, the total of all its strategies, and a number for
//! each of them. Nodes find one another by one sorted set. The strategies are read only where the totals differ.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use weir_core::checksum::Fnv1a;
use weir_core::key::{Namespace, fingerprint_slot};

use super::ask::{AskError, ask};
use crate::backend::{RulesDigest, Since};
use crate::redis::connect::Connection;
use crate::scripts::ScriptSpec;

pub(super) static COMPARISON: ScriptSpec = ScriptSpec {
    name: "comparison of limits",
    does: "compare limits between nodes",
    scripts: &[],
    rights: &[
        ("hset", "HSET @ f x"),
        ("hmget", "HMGET @ f"),
        ("hgetall", "HGETALL @"),
        ("expire", "EXPIRE @ 60"),
        ("zadd", "ZADD @ XX 0 x"),
        ("zrange", "ZRANGE @ 0 0"),
        ("zremrangebyscore", "ZREMRANGEBYSCORE @ 0 0"),
    ],
    slot: Some(fingerprint_slot),
    probe: None,
};

/// Version of the hash. Those of other versions are not compared.
const FORMAT: &[u8] = b"1";

/// TTL of a node's rules.
const LASTS: Duration = Duration::from_secs(60);

/// A difference is a warning after so long: a rolling update is quiet.
const WARN_AFTER: Duration = Duration::from_secs(120);

/// Other nodes that are compared at each exchange.
const MOST_NODES: usize = 100;

const NAMED: usize = 3;

const FIELDS_AT_ONCE: usize = 1_000;

/// Another node that has other rules, and strategies that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OtherRules {
    pub(super) node: String,
    pub(super) strategies: Vec<String>,
}

/// Rules of other nodes, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct RulesWatch {
    own: Arc<RulesDigest>,
    other: Option<(Since, OtherRules)>,
    warned: bool,
    /// Since when Redis refuses the comparison, and why.
    refusal: Option<(Since, Arc<str>)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RulesChange {
    /// Another node has had other rules for longer than a rolling update takes.
    Differs,
    Agrees,
}

impl RulesDigest {
    fn total(&self) -> [u8; 8] {
        let mut total = Fnv1a::default();
        for (name, hash) in &self.strategies {
            total.text(name);
            total.bytes(&hash.to_le_bytes());
        }
        total.sum().to_le_bytes()
    }
}

impl RulesWatch {
    pub(super) fn publish(&mut self, own: RulesDigest) {
        self.own = Arc::new(own);
    }

    pub(super) fn own(&self) -> Arc<RulesDigest> {
        Arc::clone(&self.own)
    }

    /// Records the first node that has other rules, if any.
    pub(super) fn found(&mut self, other: Option<OtherRules>, now: Since) -> Option<RulesChange> {
        self.refusal = None;
        let Some(other) = other else {
            self.other = None;
            return std::mem::take(&mut self.warned).then_some(RulesChange::Agrees);
        };
        let since = self.other.as_ref().map_or(now, |(since, _)| *since);
        self.other = Some((since, other));
        let is_long = now.instant.saturating_duration_since(since.instant) >= WARN_AFTER;
        let is_news = is_long && !self.warned;
        self.warned |= is_long;
        is_news.then_some(RulesChange::Differs)
    }

    /// Records a refusal. Returns true for the first one in a row, which is logged.
    pub(super) fn refused(&mut self, reason: &str, now: Since) -> bool {
        let since = self.refusal.as_ref().map_or(now, |(since, _)| *since);
        self.refusal.replace((since, reason.into())).is_none()
    }

    /// Returns since when nothing is compared, and why.
    pub(super) fn refusal(&self) -> Option<(Since, &Arc<str>)> {
        self.refusal.as_ref().map(|(since, reason)| (*since, reason))
    }

    /// Returns the other node and what differs, and since when it is seen.
    pub(super) fn other(&self) -> Option<(Since, &OtherRules)> {
        self.other.as_ref().map(|(since, other)| (*since, other))
    }
}

impl OtherRules {
    pub(super) fn text(&self) -> String {
        let named: Vec<String> = self.strategies.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
        match self.strategies.len().saturating_sub(NAMED) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }
}

/// Writes what this node has, and looks for a node that has something else. What other nodes say is data of theirs: it is
/// compared, bounded, and shown as text.
pub(super) async fn exchange(
    connection: &mut Connection,
    namespace: &Namespace,
    (own, written): (&RulesDigest, &mut Option<RulesDigest>),
) -> Result<Option<OtherRules>, AskError> {
    let (key, nodes) = (namespace.rules_key(&own.node), namespace.rules_key(""));
    let mut expire = redis::cmd("EXPIRE");
    expire.arg(&key).arg(LASTS.as_secs());
    let is_there = ask(connection, &expire).await? == Value::Int(1);
    if !is_there || written.as_ref() != Some(own) {
        write(connection, &key, own).await?;
        ask(connection, &expire).await?;
        *written = Some(own.clone());
    }
    let now = seconds(connection).await?;
    ask(connection, redis::cmd("ZADD").arg(&nodes).arg(now).arg(&own.node)).await?;
    let ended = now.saturating_sub(LASTS.as_secs());
    ask(connection, redis::cmd("ZREMRANGEBYSCORE").arg(&nodes).arg("-inf").arg(ended)).await?;
    ask(connection, redis::cmd("EXPIRE").arg(&nodes).arg(LASTS.as_secs())).await?;
    for node in texts(&ask(connection, redis::cmd("ZRANGE").arg(&nodes).arg(0).arg(MOST_NODES)).await?) {
        if node == own.node {
            continue;
        }
        let key = namespace.rules_key(&node);
        if !is_same(connection, &key, own).await?
            && let Some(strategies) = differing(connection, &key, own).await?
        {
            return Ok(Some(OtherRules { node: node.chars().take(NODE_SHOWN).collect(), strategies }));
        }
    }
    Ok(None)
}

/// Longest name of a node that is shown.
const NODE_SHOWN: usize = 100;

async fn write(connection: &mut Connection, key: &str, own: &RulesDigest) -> Result<(), AskError> {
    ask(connection, redis::cmd("DEL").arg(key)).await?;
    let strategies: Vec<_> = own.strategies.iter().collect();
    for part in strategies.chunks(FIELDS_AT_ONCE) {
        let mut set = redis::cmd("HSET");
        set.arg(key);
        for (name, hash) in part {
            set.arg(format!("s:{name}")).arg(&hash.to_le_bytes()[..]);
        }
        ask(connection, &set).await?;
    }
    // They make it complete, so they come last.
    ask(connection, redis::cmd("HSET").arg(key).arg("version").arg(FORMAT).arg("total").arg(&own.total()[..]))
        .await
        .map(drop)
}

/// True if the node under `key` has the same rules, or some that cannot be compared.
async fn is_same(connection: &mut Connection, key: &str, own: &RulesDigest) -> Result<bool, AskError> {
    let Value::Array(said) =
        ask(connection, redis::cmd("HMGET").arg(key).arg("version").arg("total")).await?
    else {
        return Ok(true);
    };
    Ok(match &said[..] {
        [Value::BulkString(version), Value::BulkString(total)] => {
            version != FORMAT || total[..] == own.total()
        }
        _ => true,
    })
}

/// Strategies that the node under `key` has otherwise; `None` if there is none.
async fn differing(
    connection: &mut Connection,
    key: &str,
    own: &RulesDigest,
) -> Result<Option<Vec<String>>, AskError> {
    let reply = ask(connection, redis::cmd("HGETALL").arg(key)).await?;
    let (mut theirs, mut before) = (BTreeMap::new(), None);
    let mut entry = |value: &Value| {
        let Value::BulkString(bytes) = value else { return };
        match before.take() {
            None => before = Some(String::from_utf8_lossy(bytes).into_owned()),
            Some(field) => {
                if let Some(name) = field.strip_prefix("s:") {
                    theirs.insert(name.to_owned(), bytes.clone());
                }
            }
        }
    };
    match &reply {
        Value::Array(values) => values.iter().for_each(&mut entry),
        Value::Map(pairs) => pairs.iter().for_each(|(field, value)| {
            entry(field);
            entry(value);
        }),
        _ => {}
    }
    let differs = |name: &&String| {
        own.strategies.get(*name).map(|hash| hash.to_le_bytes().to_vec()) != theirs.get(*name).cloned()
    };
    let mut names: Vec<&String> = own.strategies.keys().chain(theirs.keys()).filter(differs).collect();
    names.sort_unstable();
    names.dedup();
    Ok((!names.is_empty()).then(|| names.into_iter().cloned().collect()))
}

/// The time of Redis, so that clocks of nodes need not agree.
async fn seconds(connection: &mut Connection) -> Result<u64, AskError> {
    let reply = ask(connection, &redis::cmd("TIME")).await?;
    texts(&reply).first().and_then(|text| text.parse().ok()).ok_or(AskError::Failed)
}

fn texts(reply: &Value) -> Vec<String> {
    let Value::Array(values) = reply else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    values.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Micros;

    #[test]
    fn a_difference_is_a_warning_after_two_minutes() {
        let mut watch = RulesWatch::default();
        let start = Since::now();
        let at = |second: u64| {
            let instant = start.instant + Duration::from_secs(second);
            Since { wall: Micros(start.wall.0 + second * 1_000_000), instant }
        };
        let other = || Some(OtherRules { node: "b".to_owned(), strategies: vec!["login".to_owned()] });
        assert_eq!(watch.found(None, at(0)), None);
        assert_eq!(watch.found(other(), at(20)), None);
        assert_eq!(watch.other(), Some((at(20), &other().unwrap())), "it is shown at once");
        assert_eq!(watch.found(other(), at(139)), None);
        assert_eq!(watch.found(other(), at(140)), Some(RulesChange::Differs));
        assert_eq!(watch.found(other(), at(160)), None, "it is said once");
        assert_eq!(watch.found(None, at(180)), Some(RulesChange::Agrees));
        assert_eq!(watch.found(other(), at(200)), None);
        assert_eq!(watch.found(None, at(220)), None, "a rolling update is quiet");
    }

    #[test]
    fn a_total_is_of_names_and_numbers() {
        let digest = |strategies: &[(&str, u64)]| {
            let strategies = strategies.iter().map(|(name, hash)| ((*name).to_owned(), *hash)).collect();
            RulesDigest { node: "a".to_owned(), strategies }.total()
        };
        assert_eq!(digest(&[("a", 1), ("b", 2)]), digest(&[("b", 2), ("a", 1)]));
        assert_ne!(digest(&[("a", 1), ("b", 2)]), digest(&[("a", 2), ("b", 1)]));
        assert_ne!(digest(&[("a", 1)]), digest(&[("ab", 1)]));
    }

    #[test]
    fn many_strategies_are_not_all_named() {
        let strategies = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let other = OtherRules { node: "b".to_owned(), strategies };
        assert_eq!(other.text(), "`a`, `b`, `c` and 2 more");
    }
}
