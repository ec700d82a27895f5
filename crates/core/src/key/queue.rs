//! Names of queues.

use super::name::{SEPARATOR, write_escaped};
use super::tag::write_queue;
use super::{KeyPrefix, KeySecret, kind};

/// Hash tag of all keys of a queue, which so lie in one slot.
pub fn queue_tag(secret: &KeySecret, queue: &str) -> u128 {
    let mut text = Vec::with_capacity(64);
    write_queue(&mut text, queue);
    secret.hash(&text)
}

/// The keys of a queue in one text, and where each ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueKeys {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl QueueKeys {
    /// The keys of `queue` with these kinds, in order: `NAMESPACE:{TAG}QQUEUE:KIND`. A queue's name has no
    /// colon.
    pub fn new(prefix: KeyPrefix<'_>, queue: &str, kinds: &[&str]) -> Self {
        let mut keys = Self { text: Vec::with_capacity(512), ends: Vec::with_capacity(kinds.len()) };
        for kind in kinds {
            keys.push(|text| write_queue_key(text, prefix, queue, kind));
        }
        keys
    }

    /// The keys of a queue, or of its dead letters, in the order of `lua/queues/start.lua`: items, due times, numbers and
    /// outcomes, and then the items and the numbers of the dead letters.
    pub fn of_part(prefix: KeyPrefix<'_>, queue: &str, is_list: bool, is_dead: bool) -> Self {
        let [items, due, meta, outcomes] = if is_dead {
            ["dead", "dead_due", "dead_meta", "dead_outcomes"]
        } else {
            [if is_list { "list" } else { "stream" }, "due", "meta", "outcomes"]
        };
        Self::new(prefix, queue, &[items, due, meta, outcomes, "dead", "dead_meta"])
    }

    /// Adds the key of the due times of dead letters.
    pub fn push_dead_due(&mut self, prefix: KeyPrefix<'_>, queue: &str) {
        self.push(|text| write_queue_key(text, prefix, queue, "dead_due"));
    }

    /// Adds a key written by `write`.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    /// Number of keys.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, &end)| self.text.get(start..end))
    }
}

/// Appends the key that remembers the id under which an item was enqueued.
pub fn write_put_id_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, queue: &str, id: &str) {
    write_queue_key(out, prefix, queue, "id");
    out.push(SEPARATOR);
    write_escaped(out, id);
}

/// Appends the key of the digest of the payload that was enqueued under an id.
pub fn write_put_digest_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, queue: &str, id: &str) {
    write_queue_key(out, prefix, queue, "digest");
    out.push(SEPARATOR);
    write_escaped(out, id);
}

fn write_queue_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, queue: &str, kind: &str) {
    prefix.write(out);
    out.push(kind::QUEUE);
    out.extend_from_slice(queue.as_bytes());
    out.push(b':');
    out.extend_from_slice(kind.as_bytes());
}
