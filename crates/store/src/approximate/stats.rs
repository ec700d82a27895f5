//! Statistics of strategies that nodes count on their own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weir_units::Micros;

use super::ApproximateShared;

/// Statistics, for the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApproximateStats {
    /// By strategy.
    pub strategies: BTreeMap<Arc<str>, StrategyCounting>,
    /// Decisions that this node made.
    pub by_node: u64,
    /// Decisions of the store.
    pub by_store: u64,
    /// Keys that this node counts.
    pub keys: usize,
}

/// Counts of a strategy on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyCounting {
    /// The bound: the most units above the limit, in a window; of Envoy's rules the largest one.
    pub max_over: u64,
    /// The most that this node has heard of, of one key in one window.
    pub over_admitted: u64,
    /// True if it holds a place for each length of window.
    pub has_place: bool,
    /// Answered pushes.
    pub pushed: u64,
}

/// A strategy for which this node has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceNote {
    /// The strategy.
    pub strategy: Arc<str>,
    /// The number of places.
    pub nodes: u64,
    /// Since when.
    pub since: Instant,
    /// Time for which the place of a node that crashed stays blocked: two windows.
    pub blocked_for: Micros,
}

impl StrategyCounting {
    /// Adds what was counted at another bound.
    fn add(&mut self, other: Self) {
        self.max_over = self.max_over.max(other.max_over);
        self.over_admitted = self.over_admitted.max(other.over_admitted);
        self.has_place &= other.has_place;
        self.pushed += other.pushed;
    }
}

impl ApproximateShared {
    /// Current statistics.
    pub fn stats(&self) -> ApproximateStats {
        let node = &self.0;
        let mut strategies = BTreeMap::<Arc<str>, StrategyCounting>::new();
        for set in node.sets.all() {
            let own = StrategyCounting {
                max_over: set.bound.max_over(),
                over_admitted: set.over.load(Relaxed),
                has_place: set.held().is_some(),
                pushed: set.pushed.load(Relaxed),
            };
            match strategies.entry(Arc::clone(&set.strategy)) {
                Entry::Vacant(new) => {
                    new.insert(own);
                }
                Entry::Occupied(mut all) => all.get_mut().add(own),
            }
        }
        let (by_node, by_store) = (node.table.decided(), node.table.central.load(Relaxed));
        ApproximateStats { strategies, by_node, by_store, keys: node.table.len() }
    }

    /// The strategies for which this node has no place, as the store said: all are taken.
    pub fn notes(&self) -> Vec<PlaceNote> {
        let note = |set: &Arc<super::PlaceSet>| {
            let (strategy, nodes) = (Arc::clone(&set.strategy), set.bound.nodes());
            let blocked_for = Micros(set.bound.window().0.saturating_mul(2));
            set.without_since().map(|since| PlaceNote { strategy, nodes, since, blocked_for })
        };
        self.0.sets.all().iter().filter_map(note).collect()
    }
}
