//! Detects that a node has lost its data: a FLUSHALL, a restart without persistence, an eviction.
//!
//! A key of this process, in a slot of the node, is written at each look. If it is gone at the next one, so may be the
//! states of limits. Keys move with their slot, and a replica that was promoted may lack the last writes, so neither is
//! reported.

use std::time::{Duration, Instant};

use redis::Value;
use weir_core::key::Namespace;

use super::ask::{AskError, ask};
use crate::redis::connect::Connection;

/// TTL of the key. A poll later than half of it says nothing.
const LASTS: Duration = Duration::from_secs(60);

/// The key of one node, as it was written last.
#[derive(Debug, Default)]
pub(super) struct DataMarker {
    written: Option<WrittenMarker>,
    /// True once the node has refused to write it. It is not asked again.
    is_refused: bool,
}

#[derive(Debug)]
struct WrittenMarker {
    tag: u128,
    at: Instant,
    history: Option<ReplicationHistory>,
}

/// The ids of a server's data: that of today, and that of the master that it has followed before.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct ReplicationHistory {
    id: String,
    former: String,
}

impl DataMarker {
    /// Writes the key under `tag`, which is in one of the node's slots. Returns true if it was lost since the last poll.
    pub(super) async fn poll(
        &mut self,
        connection: &mut Connection,
        namespace: &Namespace,
        tag: u128,
        (now, may_ask_info): (Instant, bool),
    ) -> Result<bool, AskError> {
        if self.is_refused {
            return Ok(false);
        }
        let mut key = Vec::with_capacity(48);
        namespace.prefix(tag).write(&mut key);
        key.extend_from_slice(b"probe:marker");
        let mut write = redis::cmd("SET");
        write.arg(key).arg(1).arg("PX").arg(LASTS.as_millis() as u64).arg("GET");
        let is_missing = match ask(connection, &write).await {
            Ok(before) => before == Value::Nil,
            Err(error) => {
                self.is_refused = matches!(error, AskError::Refused(_));
                self.written = None;
                // A refusal shows in the probe as well, and a redirect means that the slot has moved.
                return Ok(false);
            }
        };
        let history = if may_ask_info { history(connection).await? } else { None };
        let written = WrittenMarker { tag, at: now, history };
        let is_lost = is_missing && self.written.as_ref().is_some_and(|before| before.has_lost(&written));
        self.written = Some(written);
        Ok(is_lost)
    }
}

impl WrittenMarker {
    /// True if the key, missing `now`, should have been there.
    fn has_lost(&self, now: &Self) -> bool {
        let has_failed_over = match (&self.history, &now.history) {
            (Some(before), Some(now)) => before.id != now.id && now.former == before.id,
            _ => false,
        };
        self.tag == now.tag && now.at.saturating_duration_since(self.at) < LASTS / 2 && !has_failed_over
    }
}

/// Returns the server's ids. `None` if it does not say them, or refuses.
async fn history(connection: &mut Connection) -> Result<Option<ReplicationHistory>, AskError> {
    match ask(connection, redis::cmd("INFO").arg("replication")).await {
        Ok(reply) => Ok(ReplicationHistory::read(&reply)),
        Err(AskError::Refused(_)) => Ok(None),
        Err(AskError::Failed) => Err(AskError::Failed),
    }
}

impl ReplicationHistory {
    fn read(reply: &Value) -> Option<Self> {
        let Value::BulkString(text) = reply else { return None };
        let text = String::from_utf8_lossy(text);
        let of =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(|id| id.trim().to_owned());
        Some(Self { id: of("master_replid:")?, former: of("master_replid2:").unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_time::clock::monotonic;

    #[test]
    fn only_what_should_have_been_there_is_lost() {
        let start = monotonic();
        let history = |id: &str, former: &str| {
            Some(ReplicationHistory { id: id.to_owned(), former: former.to_owned() })
        };
        let at =
            |seconds, history| WrittenMarker { tag: 1, at: start + Duration::from_secs(seconds), history };
        let before = at(0, history("a", "0"));
        assert!(before.has_lost(&at(5, history("a", "0"))), "flushed");
        assert!(before.has_lost(&at(5, history("b", "0"))), "started again");
        assert!(!before.has_lost(&at(5, history("b", "a"))), "a failover");
        assert!(!before.has_lost(&at(30, history("a", "0"))), "too long ago");
        assert!(!before.has_lost(&WrittenMarker { tag: 2, ..at(5, None) }), "another slot");
        assert!(at(0, None).has_lost(&at(5, None)), "a server that does not say");
    }

    #[test]
    fn both_ids_are_read() {
        let text = "# Replication\r\nrole:master\r\nmaster_replid:ab12\r\nmaster_replid2:0000\r\n";
        let read = ReplicationHistory::read(&Value::BulkString(text.as_bytes().to_vec()));
        assert_eq!(read, Some(ReplicationHistory { id: "ab12".to_owned(), former: "0000".to_owned() }));
        assert_eq!(ReplicationHistory::read(&Value::BulkString(b"role:master\r\n".to_vec())), None);
    }
}
