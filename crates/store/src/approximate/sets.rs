//! The places of all strategies that this node counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use weir_core::approximate::ApproximateBound;
use weir_core::strategy::Strategy;

use super::places::PlaceSet;

/// Sets that a worker remembers; each has one possible place.
const KEPT: usize = 8;

/// A strategy's name in keys, and its bound.
type SetName = (Arc<str>, ApproximateBound);

/// All sets, by the strategy's name in keys and its bound.
#[derive(Default)]
pub(super) struct PlaceSets {
    all: Mutex<HashMap<SetName, Arc<PlaceSet>>>,
    made: AtomicU64,
}

/// The sets that a worker has used, by the ids of strategies.
#[derive(Default)]
pub(super) struct WorkerSets([Option<(u64, Arc<PlaceSet>)>; KEPT]);

impl PlaceSets {
    /// Makes the sets of these strategies, and returns those that are new. Those of others are removed, and returned
    /// too.
    pub(super) fn set_strategies<'a>(
        &self,
        strategies: impl Iterator<Item = &'a Strategy>,
    ) -> (Vec<Arc<PlaceSet>>, Vec<Arc<PlaceSet>>) {
        let mut all = self.all.lock();
        let mut before = std::mem::take(&mut *all);
        let mut new = Vec::new();
        for strategy in strategies {
            let Some(rule) = strategy.approximate() else { continue };
            let key = (Arc::<str>::from(strategy.key_name()), rule.bound);
            let known = all.remove(&key).or_else(|| before.remove(&key));
            let set = known.unwrap_or_else(|| {
                let number = self.made.fetch_add(1, Relaxed);
                let set = PlaceSet::new(number, strategy.name().into(), Arc::clone(&key.0), rule.bound);
                let set = Arc::new(set);
                new.push(Arc::clone(&set));
                set
            });
            set.sync.store(rule.sync.0, Relaxed);
            all.insert(key, set);
        }
        (new, in_order(before))
    }

    pub(super) fn take_all(&self) -> Vec<Arc<PlaceSet>> {
        in_order(std::mem::take(&mut *self.all.lock()))
    }

    /// All of them, sorted by strategy and window.
    pub(super) fn all(&self) -> Vec<Arc<PlaceSet>> {
        let mut all: Vec<_> = self.all.lock().values().cloned().collect();
        all.sort_by(|one, other| {
            (&one.strategy, one.bound.window()).cmp(&(&other.strategy, other.bound.window()))
        });
        all
    }

    fn of(&self, strategy: &Strategy) -> Option<Arc<PlaceSet>> {
        let rule = strategy.approximate()?;
        self.all.lock().get(&(Arc::from(strategy.key_name()), rule.bound)).cloned()
    }
}

fn in_order(sets: HashMap<SetName, Arc<PlaceSet>>) -> Vec<Arc<PlaceSet>> {
    let mut sets: Vec<_> = sets.into_values().collect();
    sets.sort_by_key(|set| set.number);
    sets
}

impl WorkerSets {
    pub(super) fn of(&mut self, strategy: &Strategy, sets: &PlaceSets) -> Option<&Arc<PlaceSet>> {
        let id = strategy.id().number();
        let place = (id % KEPT as u64) as usize;
        let is_kept = |kept: &Option<(u64, Arc<PlaceSet>)>| {
            kept.as_ref().is_some_and(|(of, set)| *of == id && !set.is_ending())
        };
        if !is_kept(&self.0[place]) {
            let set = self.shared(strategy).or_else(|| sets.of(strategy));
            self.0[place] = set.map(|set| (id, set));
        }
        self.0[place].as_ref().map(|(_, set)| set)
    }

    /// A set that another strategy shares: many rules of Envoy have one.
    fn shared(&self, strategy: &Strategy) -> Option<Arc<PlaceSet>> {
        let rule = strategy.approximate()?;
        let is_its = |set: &PlaceSet| {
            set.bound == rule.bound && *set.key_name == *strategy.key_name() && !set.is_ending()
        };
        let mut kept = self.0.iter().flatten();
        kept.find(|(_, set)| is_its(set)).map(|(_, set)| Arc::clone(set))
    }
}
