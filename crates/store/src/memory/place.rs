//! Location of a decision's states: shard and digests.

use std::cell::RefCell;
use std::sync::Arc;

use smallvec::SmallVec;
use weir_core::algorithm::MAX_LIMITS;
use weir_core::key::{self, Digester, KeySecret, Subject};
use weir_core::strategy::Strategy;

use super::index::Slot;
use super::table::ShardTable;
use super::{SHARDS, SharedMemory};
use crate::{Decision, Phases};

thread_local! {
    /// Scratch buffer for key text, which is hashed.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Location of one decision's states.
#[derive(Default)]
pub(super) struct StatePlace {
    pub(super) shard: usize,
    pub(super) digests: SmallVec<[u128; 2]>,
    /// Phases of the keys of spread windows.
    pub(super) phases: Phases,
}

/// Locates decisions, one after the other.
pub(crate) struct Locator<'s, 'd> {
    secret: &'s KeySecret,
    text: &'s mut Vec<u8>,
    begun: Option<BegunDigest<'d>>,
    /// True if it locates one decision, so that nothing is kept for the next.
    is_for_one: bool,
}

/// Cached digest of a limit's and a resource's fields: consecutive decisions mostly share them.
struct BegunDigest<'d> {
    strategy: &'d Arc<Strategy>,
    resource: &'d str,
    digester: Digester,
    fields: usize,
}

impl StatePlace {
    /// The slots of its keys in the table of its shard; `None` for absent keys.
    #[inline(always)]
    pub(super) fn slots(&self, table: &ShardTable) -> [Option<Slot>; MAX_LIMITS] {
        let mut slots = [None; MAX_LIMITS];
        for (slot, &digest) in slots.iter_mut().zip(&self.digests) {
            *slot = table.find(digest);
        }
        slots
    }
}

/// The shard of a digest: other bits than those that choose a key's place in the table.
#[inline]
pub(super) const fn shard_of(digest: u128) -> usize {
    (digest >> 64) as usize % SHARDS
}

impl SharedMemory {
    pub(super) fn locate<'d, T>(&self, find: impl FnOnce(&mut Locator<'_, 'd>) -> T) -> T {
        let secret = &self.secret;
        SCRATCH.with_borrow_mut(|text| find(&mut Locator { secret, text, begun: None, is_for_one: false }))
    }

    #[inline]
    pub(super) fn locate_one(&self, decision: &Decision<'_>) -> StatePlace {
        let mut place = StatePlace::default();
        let secret = &self.secret;
        SCRATCH.with_borrow_mut(|text| {
            Locator { secret, text, begun: None, is_for_one: true }.locate(decision, &mut place);
        });
        place
    }
}

impl<'d> Locator<'_, 'd> {
    /// Sets `place` to the location of `decision`, in place. The tag chooses the shard of several limits, so that one
    /// lock holds them all. A single limit uses its own digest, which saves a hash.
    #[inline]
    pub(super) fn locate(&mut self, decision: &Decision<'d>, place: &mut StatePlace) {
        let Decision { strategy, ref subject, .. } = *decision;
        let limits_meant = decision.limit_set();
        let digests = &mut place.digests;
        digests.clear();
        let tag = match strategy.limits() {
            [_] => {
                let name = self.only_name(strategy, subject);
                if limits_meant.has(0) {
                    digests.push(name);
                }
                name
            }
            limits => {
                let mut name =
                    |index| self.digest(|text| key::write_identity(text, strategy, index, subject));
                digests.extend((0..limits.len()).filter(|&index| limits_meant.has(index)).map(&mut name));
                self.digest(|text| key::write_tag(text, strategy, subject))
            }
        };
        place.shard = shard_of(tag);
        place.phases = decision.phases();
    }

    pub(super) fn digest(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u128 {
        self.text.clear();
        write(self.text);
        self.secret.digest(self.text)
    }

    /// The digest of the identity of a strategy's only limit.
    #[inline]
    fn only_name(&mut self, strategy: &'d Arc<Strategy>, subject: &Subject<'d>) -> u128 {
        if self.is_for_one {
            return self.digest(|text| key::write_identity(text, strategy, 0, subject));
        }
        let is_by = |begun: &BegunDigest<'_>| {
            Arc::ptr_eq(begun.strategy, strategy) && std::ptr::eq(begun.resource, subject.resource)
        };
        let (digester, fields) = match &self.begun {
            Some(begun) if is_by(begun) => (begun.digester, begun.fields),
            _ => self.begin(strategy, subject.resource),
        };
        self.text.clear();
        key::end_identity(self.text, strategy, 0, subject, fields);
        digester.and(self.text).finish()
    }

    fn begin(&mut self, strategy: &'d Arc<Strategy>, resource: &'d str) -> (Digester, usize) {
        self.text.clear();
        let fields = key::begin_identity(self.text, strategy, 0, resource);
        let digester = self.secret.digester().and(self.text);
        self.begun = Some(BegunDigest { strategy, resource, digester, fields });
        (digester, fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use weir_config::MemoryConfig;
    use weir_core::algorithm::{Algorithm, Op};
    use weir_core::strategy::{FailurePolicy, Field, Limit, Scope};
    use weir_time::clock::Clock;
    use weir_units::Micros;

    /// Whatever was located before, and whether its texts lie at the same place.
    #[test]
    fn a_place_depends_on_nothing_before_it() {
        let scopes: [&[Field]; 4] =
            [&[Field::Resource, Field::Consumer], &[Field::Resource], &[Field::Consumer], &[]];
        let strategies: Vec<_> = scopes.iter().map(|scope| strategy("one", scope)).collect();
        let other = strategy("other", scopes[0]);
        let store = MemoryStore::new(&MemoryConfig::default(), Clock::System);
        let (text, copy) = ("ab".to_owned(), "ab".to_owned());
        let resources = [&text[..], &text[..1], &text[1..], &text[..], &copy[..], &copy[..], ""];
        let mut decisions = Vec::new();
        for strategy in strategies.iter().chain([&other]) {
            for resource in resources {
                for consumer in ["a", "b"] {
                    let subject = Subject { resource, consumer, ..Subject::default() };
                    decisions.push(Decision::new(strategy, subject, Op::Charge, &[1]));
                }
            }
        }
        for step in [1, 3, 5, 11] {
            let order = (0..decisions.len()).map(|index| &decisions[index * step % decisions.len()]);
            let alone = order.clone().map(|decision| store.0.locate(|locator| found(locator, decision)));
            let alone: Vec<_> = alone.collect();
            let one = order.clone().map(|decision| store.0.locate_one(decision));
            let one: Vec<_> = one.map(|place| (place.shard, place.digests.to_vec())).collect();
            assert_eq!(one, alone);
            let together: Vec<_> =
                store.0.locate(|locator| order.map(|decision| found(locator, decision)).collect());
            assert_eq!(together, alone, "every {step}th");
        }
    }

    fn found<'d>(locator: &mut Locator<'_, 'd>, decision: &Decision<'d>) -> (usize, Vec<u128>) {
        let mut place = StatePlace::default();
        locator.locate(decision, &mut place);
        (place.shard, place.digests.to_vec())
    }

    fn strategy(name: &str, scope: &[Field]) -> Arc<Strategy> {
        let algorithm = Algorithm::uniform(Micros::from_secs(1)).unwrap();
        let limits = vec![Limit { name: "each".into(), scope: Scope::new(scope), algorithm }];
        Arc::new(Strategy::new(name, limits, false, FailurePolicy::Error).unwrap())
    }
}
