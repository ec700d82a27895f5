//! Detects key evictions by Redis. A limit whose key was evicted starts full again.

use std::time::Duration;

use redis::Value;

use super::ask::{AskError, ask};
use crate::backend::Since;
use crate::redis::connect::Connection;

/// Interval of the `INFO` queries.
pub(super) const EVERY: Duration = Duration::from_secs(5);

/// Evictions are reported until this long after the last one.
const REPORTED: Duration = Duration::from_secs(60);

/// The only policy under which no key is evicted.
const NO_EVICTION: &str = "noeviction";

/// The relevant fields of `INFO`. Some managed services omit them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MemoryInfo {
    pub(super) evicted_keys: Option<u64>,
    pub(super) policy: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// The server's own counter, at the last query.
    seen: Option<u64>,
    /// Number of keys evicted since this process first checked.
    total: u64,
    rising: Option<Rising>,
    /// The policy, if it evicts, and since when it is known.
    policy: Option<(Since, String)>,
}

#[derive(Debug)]
struct Rising {
    since: Since,
    last: Since,
    keys: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Evicts,
    /// No key was evicted for longer than [`REPORTED`].
    Stopped,
    MayEvict,
    /// The policy no longer evicts keys.
    Keeps,
}

impl Evictions {
    /// Records the reply, and returns the changes.
    pub(super) fn looked(&mut self, info: MemoryInfo, now: Since) -> Vec<Event> {
        let mut events = Vec::new();
        events.extend(self.counted(info.evicted_keys, now));
        events.extend(self.configured(info.policy, now));
        events
    }

    fn counted(&mut self, evicted_keys: Option<u64>, now: Since) -> Option<Event> {
        // A restarted server counts from 0.
        let seen = std::mem::replace(&mut self.seen, evicted_keys).unwrap_or(u64::MAX);
        let keys = evicted_keys.unwrap_or_default().saturating_sub(seen);
        self.total += keys;
        match &mut self.rising {
            None if keys > 0 => {
                self.rising = Some(Rising { since: now, last: now, keys });
                Some(Event::Evicts)
            }
            Some(rising) if keys > 0 => {
                (rising.last, rising.keys) = (now, rising.keys + keys);
                None
            }
            Some(rising) if now.instant.saturating_duration_since(rising.last.instant) > REPORTED => {
                self.rising = None;
                Some(Event::Stopped)
            }
            _ => None,
        }
    }

    fn configured(&mut self, policy: Option<String>, now: Since) -> Option<Event> {
        match (policy.filter(|policy| policy != NO_EVICTION), &mut self.policy) {
            (Some(policy), Some((_, known))) => {
                *known = policy;
                None
            }
            (Some(policy), None) => {
                self.policy = Some((now, policy));
                Some(Event::MayEvict)
            }
            (None, known) => known.take().map(|_| Event::Keeps),
        }
    }

    /// Number of keys evicted since this process first checked.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns since when keys are being evicted, and their number since then.
    pub(super) fn rising(&self) -> Option<(Since, u64)> {
        self.rising.as_ref().map(|rising| (rising.since, rising.keys))
    }

    /// Returns the policy if it evicts keys, and since when it is known.
    pub(super) fn policy(&self) -> Option<(Since, &str)> {
        self.policy.as_ref().map(|(since, policy)| (*since, policy.as_str()))
    }
}

/// Queries both sections, one per call: `INFO` takes several only since Redis 7.
pub(super) async fn poll(connection: &mut Connection) -> Result<MemoryInfo, AskError> {
    let mut found = MemoryInfo::default();
    for section in ["memory", "stats"] {
        found.read(&ask(connection, redis::cmd("INFO").arg(section)).await?);
    }
    Ok(found)
}

impl MemoryInfo {
    fn read(&mut self, reply: &Value) {
        let Value::BulkString(text) = reply else { return };
        for line in String::from_utf8_lossy(text).lines() {
            match line.split_once(':') {
                Some(("evicted_keys", count)) => self.evicted_keys = count.trim().parse().ok(),
                Some(("maxmemory_policy", policy)) => self.policy = Some(policy.trim().to_owned()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Micros;

    fn info(evicted_keys: u64, policy: &str) -> MemoryInfo {
        MemoryInfo { evicted_keys: Some(evicted_keys), policy: Some(policy.to_owned()) }
    }

    #[test]
    fn evictions_are_reported_while_they_rise_and_for_a_minute_after() {
        let (mut known, start) = (Evictions::default(), Since::now());
        let at = |second: u64| {
            let instant = start.instant + Duration::from_secs(second);
            Since { wall: Micros(start.wall.0 + second * 1_000_000), instant }
        };
        let mut looked = |evicted_keys, second| {
            let events = known.looked(info(evicted_keys, NO_EVICTION), at(second));
            (events, known.total(), known.rising())
        };
        assert_eq!(looked(100, 0), (vec![], 0, None), "those before the first look are over");
        assert_eq!(looked(100, 5), (vec![], 0, None));
        assert_eq!(looked(103, 10), (vec![Event::Evicts], 3, Some((at(10), 3))));
        assert_eq!(looked(104, 15), (vec![], 4, Some((at(10), 4))));
        assert_eq!(looked(2, 20), (vec![], 4, Some((at(10), 4))), "the server was started again");
        assert_eq!(looked(3, 25), (vec![], 5, Some((at(10), 5))));
        assert_eq!(looked(3, 85), (vec![], 5, Some((at(10), 5))));
        assert_eq!(looked(3, 86), (vec![Event::Stopped], 5, None));
        assert_eq!(looked(4, 90), (vec![Event::Evicts], 6, Some((at(90), 1))));
    }

    #[test]
    fn a_policy_that_evicts_is_reported_until_it_is_changed() {
        let (mut known, now) = (Evictions::default(), Since::now());
        assert_eq!(known.looked(info(0, "allkeys-lru"), now), [Event::MayEvict]);
        assert_eq!(known.looked(info(0, "volatile-ttl"), now), []);
        assert_eq!(known.policy(), Some((now, "volatile-ttl")));
        assert_eq!(known.looked(info(0, NO_EVICTION), now), [Event::Keeps]);
        assert_eq!(known.looked(info(0, NO_EVICTION), now), []);
        assert_eq!(known.policy(), None);
        assert_eq!(known.looked(MemoryInfo::default(), now), [], "a service that does not say");
    }

    #[test]
    fn both_lines_are_found() {
        let mut found = MemoryInfo::default();
        let text = b"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:volatile-lru\r\nevicted_keys:17\r\n";
        found.read(&Value::BulkString(text.to_vec()));
        assert_eq!(found, info(17, "volatile-lru"));
    }
}
