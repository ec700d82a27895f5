//! Order in which unfinished handshakes are evicted, in logarithmic time: under attack, each new connection asks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// The unfinished handshakes by source. The next one to go is of the source that has most of them: one that has sent
/// nothing, otherwise the oldest.
pub(super) struct EvictionOrder<S, T> {
    sources: HashMap<S, OfSource<T>, foldhash::fast::RandomState>,
    order: BTreeSet<SourceRank<S>>,
    len: usize,
}

/// The handshakes of one source, by age. Never empty.
struct OfSource<T> {
    silent: BTreeMap<u64, T>,
    spoken: BTreeMap<u64, T>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SourceRank<S> {
    count: Reverse<usize>,
    all_have_sent: bool,
    id: u64,
    source: S,
}

impl<T> OfSource<T> {
    fn len(&self) -> usize {
        self.silent.len() + self.spoken.len()
    }

    fn rank<S>(&self, source: S) -> Option<SourceRank<S>> {
        let silent = self.silent.keys().next();
        let id = *silent.or_else(|| self.spoken.keys().next())?;
        Some(SourceRank { count: Reverse(self.len()), all_have_sent: silent.is_none(), id, source })
    }
}

impl<S: Copy + Ord + Hash, T> EvictionOrder<S, T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a handshake that has sent nothing. Its id is higher than all before. Returns how many its source has.
    pub(super) fn insert(&mut self, source: S, id: u64, handshake: T) -> usize {
        self.change(source, |of_source| {
            of_source.silent.insert(id, handshake);
            of_source.len()
        })
    }

    pub(super) fn remove(&mut self, source: S, id: u64) -> Option<T> {
        self.change(source, |of_source| of_source.silent.remove(&id).or_else(|| of_source.spoken.remove(&id)))
    }

    /// Removes the one that goes next. That a handshake `has_sent` is asked when its turn comes: senders change nothing here.
    pub(super) fn pop(&mut self, has_sent: impl Fn(&T) -> bool) -> Option<T> {
        loop {
            let SourceRank { source, id, all_have_sent, .. } = *self.order.first()?;
            let is_next = all_have_sent
                || self.change(source, |of_source| match of_source.silent.get(&id) {
                    Some(handshake) if has_sent(handshake) => {
                        let moved = of_source.silent.remove(&id);
                        of_source.spoken.extend(moved.map(|handshake| (id, handshake)));
                        false
                    }
                    _ => true,
                });
            if is_next {
                return self.remove(source, id);
            }
        }
    }

    /// Changes the handshakes of a source, and then its rank.
    fn change<R>(&mut self, source: S, change: impl FnOnce(&mut OfSource<T>) -> R) -> R {
        let empty = || OfSource { silent: BTreeMap::new(), spoken: BTreeMap::new() };
        let of_source = self.sources.entry(source).or_insert_with(empty);
        let (before, len) = (of_source.rank(source), of_source.len());
        let result = change(of_source);
        let after = of_source.rank(source);
        self.len = self.len + of_source.len() - len;
        if before != after {
            before.map(|rank| self.order.remove(&rank));
            self.order.extend(after);
        }
        if after.is_none() {
            self.sources.remove(&source);
        }
        result
    }
}

impl<S, T> Default for EvictionOrder<S, T> {
    fn default() -> Self {
        Self { sources: HashMap::default(), order: BTreeSet::new(), len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// The rule itself, by a walk of all.
    fn next(all: &[(u64, u8, &Cell<bool>)]) -> Option<u64> {
        let of_source = |source| all.iter().filter(|(_, own, _)| *own == source).count();
        let rank =
            |(id, source, sent): &&(u64, u8, &Cell<bool>)| (Reverse(of_source(*source)), sent.get(), *id);
        all.iter().min_by_key(rank).map(|(id, ..)| *id)
    }

    proptest! {
        #[test]
        fn the_next_one_is_that_of_a_walk(steps in prop::collection::vec((0..5_u8, 0..4_u8, any::<prop::sample::Index>()), 1..200)) {
            let sent: Vec<Cell<bool>> = steps.iter().map(|_| Cell::new(false)).collect();
            let mut order = EvictionOrder::default();
            let mut all: Vec<(u64, u8, &Cell<bool>)> = Vec::new();
            for (id, (step, source, index)) in steps.iter().enumerate() {
                match step {
                    0 | 1 => {
                        let handshake = (id as u64, *source, &sent[id]);
                        let count = order.insert(*source, id as u64, handshake);
                        all.push(handshake);
                        prop_assert_eq!(count, all.iter().filter(|(_, own, _)| own == source).count());
                    }
                    2 if !all.is_empty() => all[index.index(all.len())].2.set(true),
                    3 if !all.is_empty() => {
                        let (id, source, _) = all.swap_remove(index.index(all.len()));
                        prop_assert_eq!(order.remove(source, id).map(|(id, ..)| id), Some(id));
                        prop_assert!(order.remove(source, id).is_none());
                    }
                    _ => {
                        let gone = order.pop(|(_, _, sent)| sent.get()).map(|(id, ..)| id);
                        prop_assert_eq!(gone, next(&all));
                        all.retain(|(id, ..)| Some(*id) != gone);
                    }
                }
                prop_assert_eq!(order.len(), all.len());
                prop_assert_eq!(order.sources.len(), order.order.len());
            }
        }
    }
}
