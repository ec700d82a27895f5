//! Data of a server, by key. A copy of it costs little: values are shared until one of them is written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::scored_members::ScoredMembers;
use super::stored_stream::StoredStream;

/// All data of a server at a moment.
#[derive(Debug, Clone, Default)]
pub struct SimulatedData {
    pub(super) keys: BTreeMap<Vec<u8>, StoredKey>,
}

impl SimulatedData {
    /// Number of keys, with those that have expired and were not removed yet.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The names of the keys, in order.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().map(Vec::as_slice)
    }

    /// Takes out what `moves` says, as a slot that moves to another node does.
    pub fn split_off(&mut self, mut moves: impl FnMut(&[u8]) -> bool) -> Self {
        let all = std::mem::take(&mut self.keys);
        let (moved, kept) = all.into_iter().partition(|(key, _)| moves(key));
        self.keys = kept;
        Self { keys: moved }
    }

    /// Adds all keys of the other one.
    pub fn merge(&mut self, other: Self) {
        self.keys.extend(other.keys);
    }
}

/// A value and when it goes.
#[derive(Debug, Clone)]
pub(super) struct StoredKey {
    pub(super) value: Arc<StoredValue>,
    /// Expiry in milliseconds of the server's clock.
    pub(super) expires_at: Option<i64>,
}

/// A value of one of the types.
#[derive(Debug, Clone)]
pub(super) enum StoredValue {
    Text(Vec<u8>),
    Hash(FieldMap),
    List(ListItems),
    Scored(ScoredMembers),
    Stream(StoredStream),
}

/// The fields of a hash, in the order of their first writes.
pub(super) type FieldMap = indexmap::IndexMap<Vec<u8>, Vec<u8>>;

/// The items of a list.
pub(super) type ListItems = VecDeque<Vec<u8>>;

/// A type of values.
pub(super) trait StoredKind: Default {
    fn get(value: &StoredValue) -> Option<&Self>;
    fn get_mut(value: &mut StoredValue) -> Option<&mut Self>;
    fn wrapped(self) -> StoredValue;
    /// True if the key goes with its last part.
    fn is_gone(&self) -> bool;
}

macro_rules! stored_kind {
    ($type:ty, $variant:ident, $gone:expr) => {
        impl StoredKind for $type {
            fn get(value: &StoredValue) -> Option<&Self> {
                if let StoredValue::$variant(inner) = value { Some(inner) } else { None }
            }

            fn get_mut(value: &mut StoredValue) -> Option<&mut Self> {
                if let StoredValue::$variant(inner) = value { Some(inner) } else { None }
            }

            fn wrapped(self) -> StoredValue {
                StoredValue::$variant(self)
            }

            fn is_gone(&self) -> bool {
                let gone: fn(&Self) -> bool = $gone;
                gone(self)
            }
        }
    };
}

stored_kind!(Vec<u8>, Text, |_| false);
stored_kind!(FieldMap, Hash, FieldMap::is_empty);
stored_kind!(ListItems, List, ListItems::is_empty);
stored_kind!(ScoredMembers, Scored, |members| members.len() == 0);
stored_kind!(StoredStream, Stream, |_| false);

impl StoredValue {
    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Scored(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }
}
