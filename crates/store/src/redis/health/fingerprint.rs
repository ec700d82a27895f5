//! Detects nodes of Weir with another `key_secret`. Such a node has other keys, so every limit is admitted once per
//! secret.
//!
//! Each node reads the last written fingerprint of a secret, and then writes its own under the same well-known key.

use std::time::Duration;

use redis::Value;
use weir_core::key::{KeySecret, Namespace};

use super::ask::{AskError, ask};
use crate::backend::Since;
use crate::redis::connect::Connection;

pub(super) const EVERY: Duration = Duration::from_secs(20);

/// The TTL of a written fingerprint, and how long another node's fingerprint is reported after it was last seen.
const LASTS: Duration = Duration::from_secs(60);

/// Fingerprint of this node, and the last other one that it has seen.
#[derive(Debug)]
pub(super) struct Fingerprint {
    own: String,
    other: Option<Other>,
    refusal_logged: bool,
}

#[derive(Debug)]
struct Other {
    fingerprint: String,
    since: Since,
    last: Since,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Another node has another secret.
    Differs,
    /// No other fingerprint was seen for longer than [`LASTS`].
    Agrees,
}

impl Fingerprint {
    pub(super) fn new(secret: &KeySecret) -> Self {
        Self { own: secret.fingerprint(), other: None, refusal_logged: false }
    }

    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Records the fingerprint under the key; `None` if there was none.
    pub(super) fn found(&mut self, fingerprint: Option<&str>, now: Since) -> Option<Change> {
        match (fingerprint.filter(|found| *found != self.own), &mut self.other) {
            (Some(found), Some(other)) => {
                found.clone_into(&mut other.fingerprint);
                other.last = now;
                None
            }
            (Some(found), None) => {
                self.other = Some(Other { fingerprint: found.to_owned(), since: now, last: now });
                Some(Change::Differs)
            }
            (None, Some(other)) if now.instant.saturating_duration_since(other.last.instant) > LASTS => {
                self.other = None;
                Some(Change::Agrees)
            }
            (None, _) => None,
        }
    }

    /// Records a refusal. Returns true for the first one, which is logged.
    pub(super) fn refused(&mut self) -> bool {
        !std::mem::replace(&mut self.refusal_logged, true)
    }

    pub(super) fn other(&self) -> Option<(Since, &str)> {
        self.other.as_ref().map(|other| (other.since, other.fingerprint.as_str()))
    }
}

/// Reads the last written fingerprint, and overwrites it with this node's own.
pub(super) async fn exchange(
    connection: &mut Connection,
    namespace: &Namespace,
    own: &str,
) -> Result<Option<String>, AskError> {
    let (key, lasts) = (namespace.fingerprint_key(), LASTS.as_millis() as u64);
    let found = ask(connection, redis::cmd("GET").arg(&key)).await?;
    ask(connection, redis::cmd("SET").arg(&key).arg(own).arg("PX").arg(lasts)).await?;
    Ok(match found {
        Value::BulkString(found) => Some(String::from_utf8_lossy(&found).chars().take(own.len()).collect()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Micros;

    #[test]
    fn another_fingerprint_is_reported_until_it_has_not_been_seen_for_a_minute() {
        let mut watched = Fingerprint::new(&KeySecret::from_text("one"));
        let own = watched.own().to_owned();
        let start = Since::now();
        let at = |second: u64| {
            let instant = start.instant + Duration::from_secs(second);
            Since { wall: Micros(start.wall.0 + second * 1_000_000), instant }
        };
        assert_eq!(watched.found(None, at(0)), None);
        assert_eq!(watched.found(Some(&own), at(20)), None);
        assert_eq!(watched.found(Some("another"), at(40)), Some(Change::Differs));
        assert_eq!(watched.other(), Some((at(40), "another")));
        assert_eq!(watched.found(Some("a third"), at(60)), None);
        for second in [80, 100, 120] {
            assert_eq!(watched.found(Some(&own), at(second)), None, "it may be the next one's turn again");
        }
        assert_eq!(watched.other(), Some((at(40), "a third")));
        assert_eq!(watched.found(Some(&own), at(140)), Some(Change::Agrees));
        assert_eq!(watched.other(), None);
    }

    #[test]
    fn a_fingerprint_is_of_its_secret_alone() {
        let of = |secret: &str| KeySecret::from_text(secret).fingerprint();
        assert_eq!(of("one"), of("one"));
        assert_ne!(of("one"), of("two"));
        assert_eq!(of("one").len(), 16);
        assert_ne!(of("one"), KeySecret::BUILT_IN.fingerprint());
    }

    #[test]
    fn a_refusal_is_logged_once() {
        let mut watched = Fingerprint::new(&KeySecret::BUILT_IN);
        assert_eq!([watched.refused(), watched.refused(), watched.refused()], [true, false, false]);
    }
}
