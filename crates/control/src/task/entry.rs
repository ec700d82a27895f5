//! Entries of live control: their keys and bytes in the store, and the messages that callers see.

use std::sync::Arc;

use prost::Message as _;
use weir_core::strategy::Listed;
use weir_node::audit::change_id;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{
    AccessList, ControlAccess, ControlEntry, ControlOverride, ControlStrategy, EntryVersion,
};

use crate::model::{ControlPosition, ControlRecord, GENERATION_PREFIX};
use crate::timestamp::timestamp;

/// An entry as this node uses it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LiveEntry {
    /// Key in the store.
    pub(super) key: Arc<str>,
    pub(super) version: ControlPosition,
    /// End of the entry in microseconds since 1970; 0 is never.
    pub(super) expires_at: u64,
    /// The message, without `waiting`.
    pub(super) message: ControlEntry,
}

/// The bytes of an entry cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the entry `{key}` at version {version} cannot be read: {reason}")]
pub(super) struct UnreadableEntry {
    key: String,
    version: u64,
    reason: String,
}

impl LiveEntry {
    /// Reads a record. `None`: it is a generation, and no entry.
    pub(super) fn read(record: &ControlRecord) -> Result<Option<Self>, UnreadableEntry> {
        if record.key.starts_with(GENERATION_PREFIX) {
            return Ok(None);
        }
        let failed = |reason: &str| UnreadableEntry {
            key: record.key.escape_debug().take(80).collect(),
            version: record.version,
            reason: reason.to_owned(),
        };
        let mut message = match record.deleted {
            true => deletion(record),
            false => {
                ControlEntry::decode(&*record.body).map_err(|_| failed("it is no message of this version"))?
            }
        };
        if message.entry.as_ref().map(key_of).as_deref() != Some(&record.key) {
            return Err(failed("its content has another key"));
        }
        message.version = Some(version_message(record.position()));
        message.expires_at = (record.expires_at > 0).then(|| timestamp(record.expires_at));
        Ok(Some(Self {
            key: (&*record.key).into(),
            version: record.position(),
            expires_at: record.expires_at,
            message,
        }))
    }

    /// True if it is neither deleted nor over.
    pub(super) fn lives(&self, now: u64) -> bool {
        !self.message.deleted && (self.expires_at == 0 || now < self.expires_at)
    }
}

/// A deletion: what its key names, who made it, and why.
fn deletion(record: &ControlRecord) -> ControlEntry {
    let made = ControlEntry::decode(&*record.body).unwrap_or_default();
    ControlEntry {
        deleted: true,
        entry: target_of(&record.key),
        // A version is the time of its change, or shortly after it.
        changed_at: Some(made.changed_at.unwrap_or_else(|| timestamp(record.version))),
        by: made.by,
        reason: made.reason,
        node: made.node,
        ..ControlEntry::default()
    }
}

/// Encodes the tombstone of a deletion, whose key names the deleted entry.
pub(super) fn tombstone_of(deletion: &ControlEntry) -> Box<[u8]> {
    body_of(&ControlEntry { entry: None, ..deletion.clone() })
}

/// A version as callers see it.
pub(crate) fn version_message(position: ControlPosition) -> EntryVersion {
    let change = if position == ControlPosition::NONE { String::new() } else { change_id(position.change) };
    EntryVersion { version: position.version, change }
}

/// Reads a version of a caller. An empty change is none.
pub(crate) fn version_of(message: &EntryVersion) -> Option<ControlPosition> {
    let EntryVersion { version, change } = message;
    Some(ControlPosition { version: *version, change: change_of(change)? })
}

/// Reads the id of a change. An empty one is 0.
pub(crate) fn change_of(change: &str) -> Option<u64> {
    let is_digits = change.len() <= 16 && change.bytes().all(|byte| byte.is_ascii_hexdigit());
    match change {
        "" => Some(0),
        digits if is_digits => u64::from_str_radix(digits, 16).ok(),
        _ => None,
    }
}

/// The bytes of an entry in the store.
pub(super) fn body_of(entry: &ControlEntry) -> Box<[u8]> {
    let own = ControlEntry {
        version: None,
        expires_at: None,
        waiting: String::new(),
        deleted: false,
        ..entry.clone()
    };
    own.encode_to_vec().into()
}

/// The key of an entry. No two entries have one: names of strategies have no `:`, and lengths stand before what may
/// have one.
pub(super) fn key_of(entry: &Entry) -> String {
    match entry {
        Entry::Override(ControlOverride { consumer, resource, strategy, .. }) => {
            format!("o{strategy}:{}:{resource}:{consumer}", resource.len())
        }
        Entry::Access(ControlAccess { list, consumer, strategy }) => format!("a{list}{strategy}:{consumer}"),
        Entry::Strategy(ControlStrategy { strategy, .. }) => format!("s{strategy}"),
    }
}

/// Entry that a key names, without numbers.
fn target_of(key: &str) -> Option<Entry> {
    let (kind, rest) = key.split_at_checked(1)?;
    Some(match kind {
        "o" => {
            let (strategy, rest) = rest.split_once(':')?;
            let (length, rest) = rest.split_once(':')?;
            let (resource, consumer) = rest.split_at_checked(length.parse().ok()?)?;
            Entry::Override(ControlOverride {
                consumer: consumer.strip_prefix(':')?.to_owned(),
                resource: resource.to_owned(),
                strategy: strategy.to_owned(),
                ..ControlOverride::default()
            })
        }
        "a" => {
            let (list, rest) = rest.split_at_checked(1)?;
            let (strategy, consumer) = rest.split_once(':')?;
            Entry::Access(ControlAccess {
                list: list.parse().ok()?,
                consumer: consumer.to_owned(),
                strategy: strategy.to_owned(),
            })
        }
        "s" => Entry::Strategy(ControlStrategy { strategy: rest.to_owned(), ..ControlStrategy::default() }),
        _ => return None,
    })
}

/// The key of a strategy's generation.
pub(super) fn generation_key(strategy: &str) -> Box<str> {
    format!("{GENERATION_PREFIX}{strategy}").into()
}

/// The list of an entry, if it names one.
pub(super) fn listed(access: &ControlAccess) -> Option<Listed> {
    match AccessList::try_from(access.list) {
        Ok(AccessList::Deny) => Some(Listed::Deny),
        Ok(AccessList::Allow) => Some(Listed::Allow),
        Ok(AccessList::Unspecified) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Entry> {
        let texts = ["", "a", "a:1", "1:b:c", "é*", ":"];
        let mut all = Vec::new();
        for strategy in ["s", "s/1"] {
            all.push(Entry::Strategy(ControlStrategy {
                strategy: strategy.to_owned(),
                ..ControlStrategy::default()
            }));
            for consumer in texts.map(str::to_owned) {
                for list in [1, 2] {
                    let (consumer, strategy) = (consumer.clone(), strategy.to_owned());
                    all.push(Entry::Access(ControlAccess { list, consumer, strategy }));
                }
                for resource in texts {
                    all.push(Entry::Override(ControlOverride {
                        consumer: consumer.clone(),
                        resource: resource.to_owned(),
                        strategy: strategy.to_owned(),
                        ..ControlOverride::default()
                    }));
                }
            }
        }
        all
    }

    #[test]
    fn a_key_says_what_it_is_of() {
        let mut keys = std::collections::BTreeSet::new();
        for entry in all() {
            let key = key_of(&entry);
            assert_eq!(target_of(&key), Some(entry), "{key}");
            assert!(keys.insert(key), "two entries have one key");
        }
        for key in ["", "x", "o", "os", "os:9:a:b", "os:1:ab", "a", "ax", "a1", "é"] {
            assert_eq!(target_of(key), None, "{key}");
        }
    }

    #[test]
    fn a_version_has_sixteen_digits_and_is_read_again() {
        let position = ControlPosition { version: 5, change: 0xab };
        let message = version_message(position);
        assert_eq!(message.change, "00000000000000ab");
        assert_eq!(version_of(&message), Some(position));
        assert_eq!(version_of(&EntryVersion::default()), Some(ControlPosition::NONE));
        for change in ["x", "+1", "00000000000000000", "1 "] {
            assert_eq!(version_of(&EntryVersion { version: 5, change: change.to_owned() }), None, "{change}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_strange_one_is_named() {
        let entry = all().pop().unwrap();
        let message =
            ControlEntry { entry: Some(entry.clone()), reason: "why".to_owned(), ..ControlEntry::default() };
        let record = |key: String, body: Box<[u8]>| ControlRecord {
            key: key.into(),
            version: 5,
            change: 6,
            expires_at: 7_000_000,
            deleted: false,
            body,
        };
        let read = LiveEntry::read(&record(key_of(&entry), body_of(&message))).unwrap().unwrap();
        assert_eq!(read.message.reason, "why");
        assert_eq!(read.message.expires_at, Some(timestamp(7_000_000)));
        assert!(read.lives(6_999_999) && !read.lives(7_000_000));
        let gone = ControlRecord { deleted: true, body: [].into(), ..record(key_of(&entry), [].into()) };
        assert!(!LiveEntry::read(&gone).unwrap().unwrap().lives(0));
        let by = ControlEntry { by: "token:ops".to_owned(), node: "a".to_owned(), ..message.clone() };
        let gone = ControlRecord { body: tombstone_of(&by), ..gone };
        let read = LiveEntry::read(&gone).unwrap().unwrap().message;
        assert_eq!((read.by, read.node, read.reason), (by.by, by.node, by.reason));
        assert_eq!((read.deleted, read.entry), (true, Some(entry.clone())));
        for (key, body) in [("sother".to_owned(), body_of(&message)), (key_of(&entry), [255, 1].into())] {
            assert!(LiveEntry::read(&record(key, body)).is_err());
        }
        assert!(LiveEntry::read(&record(generation_key("s").into(), [].into())).unwrap().is_none());
    }
}
