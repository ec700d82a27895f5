//! The table's section `store.memory`: bounds of the memory store.

use super::super::quantities::{size, written_size};
use super::super::stores::WhenFull;
use super::kinds::{Optional, Words, kinds};
use super::numbers::ByteSizeFrom;
use super::section;
use super::value_kind::ValueKind;

/// Minimum memory budget.
const MIN_BUDGET: usize = 1 << 20;

/// Minimum share of a strategy: about a thousand keys.
pub(crate) const MIN_SHARE: usize = 64 << 10;

kinds! {
    /// A number of bytes whose upper bound is the budget; the section's reader checks it.
    BudgetPart: usize {
        name: "SIZE",
        read: size,
        write: size_text,
        values: ValueKind::Size(MIN_SHARE, usize::MAX),
        bounds: "64KiB to `budget`".to_owned(),
    }
    /// A number of bytes whose upper bound is half of the budget; the section's reader checks it.
    BudgetHalf: usize {
        name: "SIZE",
        read: size,
        write: size_text,
        values: ValueKind::Size(MIN_SHARE, usize::MAX),
        bounds: "64KiB to half of `budget`".to_owned(),
    }
}

fn size_text(bytes: &usize) -> Option<String> {
    Some(written_size(*bytes as u64))
}

section! {
    /// Bounds of the memory store.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MemoryConfig {
        before: [],

        /// Bytes that keys may use in the memory store.
        pub budget: usize = 512 << 20 => {
            kind: ByteSizeFrom(MIN_BUDGET),
            flag: "budget",
        }
        /// Treatment of a new key when the budget is used up and no key has expired.
        pub when_full: WhenFull = WhenFull::Evict => {
            kind: Words(&[("evict", WhenFull::Evict), ("refuse", WhenFull::Refuse)]),
            flag: "when_full",
            more: "`evict`: of the next 64 keys, the one that would be full again soonest is evicted, of a strategy above \
                   its share if there is one; exhausted keys are never evicted. `refuse`: no key is evicted, and the \
                   strategy's `on_store_failure` answers for new keys.",
        }
        /// Bytes that a strategy and its overrides may hold when the budget is nearly used up.
        pub share: Option<usize> = None => {
            kind: Optional(BudgetPart, "the budget divided by the number of strategies, at least a tenth of it"),
            more: "Rules of Envoy's files are counted by domain.",
        }
        /// Bytes that the ids of calls may hold, until they expire.
        pub id_share: Option<usize> = None => {
            kind: Optional(BudgetHalf, "a quarter of the budget"),
            more: "When they are used up, calls with a new `id` get RESOURCE_EXHAUSTED; all others are decided.",
        }

        after: [],
        others: {}
    }
}
