//! Shares of the budget: how much each strategy holds, and how much it may hold when the budget is scarce.
//!
//! An owner is a strategy with its overrides, or a domain of Envoy's. The store gives each owner a number, which is
//! kept with each of its keys, and counts what the keys of that number hold. The number is looked up by name once and
//! then noted in the owner itself. Only making and dropping keys touches the counts.
//!
//! What the ids of an owner's calls take (the markers and records of `once.rs`) counts under a number of its own, the owner's
//! with [`IDS`] set, and together with the ids of all others. They are never evicted, so they have a bound of their own:
//! callers who make up ids must not take the room of new consumers.
//!
//! There are at most 32,767 numbers. Owners beyond that share number 0, and with it one share. After a changed
//! configuration an owner of the same name has the same number. An owner that is gone keeps its number until its keys
//! are gone too: they count, expire and are evicted like all others.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use weir_core::strategy::Owner;

pub(super) type OwnerId = u16;

/// Set in the number under which the ids of an owner's calls count.
const IDS: OwnerId = 1 << (OwnerId::BITS - 1);

/// Shared by all owners without a number of their own.
const OTHERS: OwnerId = 0;

/// Bytes counted for a key, beside those that its state holds elsewhere: its slot, and its part of the index.
pub(super) const KEY_BYTES: usize = 64;

/// Number of owners per page of counts.
const PAGE: usize = 256;

type Page = [AtomicUsize; PAGE];

/// The owners of one store's keys.
#[derive(Debug)]
pub(super) struct Owners {
    /// Bytes that owners share: the budget without what ids may take.
    budget: usize,
    /// Upper bound of the bytes of all ids.
    ids_limit: usize,
    ids: AtomicUsize,
    /// The configured share; `None` is an equal part for each.
    configured: Option<usize>,
    /// Most bytes per owner when the budget is scarce.
    share: AtomicUsize,
    /// The owner that held most when a key was last added.
    largest: AtomicUsize,
    /// Upper part of this store's marks, above the number. A new stamp invalidates all older marks.
    stamp: AtomicU64,
    names: Mutex<Names>,
    /// Bytes held by each owner. Pages are allocated with their first number.
    held: Box<[OnceLock<Box<Page>>]>,
}

#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<str>, OwnerId>,
    free: Vec<OwnerId>,
    /// Number of ids that were given, without [`OTHERS`].
    given: OwnerId,
    configured: Option<usize>,
}

impl Owners {
    /// Owners that share `budget` bytes, of which their ids may take `ids_limit`.
    pub(super) fn new(budget: usize, ids_limit: usize, configured: Option<usize>) -> Self {
        let pages = (usize::from(OwnerId::MAX) + 1) / PAGE;
        let owners = Self {
            budget: budget.saturating_sub(ids_limit),
            ids_limit,
            ids: AtomicUsize::new(0),
            configured,
            share: AtomicUsize::new(usize::MAX),
            largest: AtomicUsize::new(0),
            stamp: AtomicU64::new(next_stamp()),
            names: Mutex::default(),
            held: (0..pages).map(|_| OnceLock::new()).collect(),
        };
        owners.page(OTHERS);
        owners.share.store(owners.share_of_each(0), Relaxed);
        owners
    }

    /// Sets the configured owners, which share the budget from now on. Removed ones that hold nothing lose their
    /// numbers.
    pub(super) fn share_among<'n>(&self, owners: impl Iterator<Item = &'n str>) {
        let mut names = self.names.lock();
        let names = &mut *names;
        let mut kept = HashMap::new();
        for name in owners {
            if let Some(number) = names.numbers.remove(name).or_else(|| names.next()) {
                self.page(number);
                kept.insert(name.into(), number);
            }
        }
        names.configured = Some(kept.len());
        for (name, number) in std::mem::take(&mut names.numbers) {
            if self.held(number) > 0 || self.held(number | IDS) > 0 {
                kept.insert(name, number);
            } else {
                names.free.push(number);
            }
        }
        names.numbers = kept;
        self.stamp.store(next_stamp(), Relaxed);
        self.share.store(self.share_of_each(names.count()), Relaxed);
    }

    #[inline]
    pub(super) fn number(&self, owner: &Owner) -> OwnerId {
        let (mark, stamp) = (owner.mark(), self.stamp.load(Relaxed));
        // The number is in the lower bits.
        if mark >> OwnerId::BITS == stamp { mark as OwnerId } else { self.look_up(owner) }
    }

    /// The number under which the ids of an owner's calls count.
    pub(super) fn number_of_ids(&self, owner: &Owner) -> OwnerId {
        self.number(owner) | IDS
    }

    /// Upper bound of the bytes of all ids.
    pub(super) const fn ids_limit(&self) -> usize {
        self.ids_limit
    }

    /// True if ids may take `more` bytes.
    pub(super) fn ids_have_room(&self, more: usize) -> bool {
        self.ids.load(Relaxed).saturating_add(more) <= self.ids_limit
    }

    #[cold]
    fn look_up(&self, owner: &Owner) -> OwnerId {
        let mut names = self.names.lock();
        let known = names.numbers.get(owner.name()).copied();
        let number = known.or_else(|| {
            let number = names.next()?;
            self.page(number);
            names.numbers.insert(owner.name().into(), number);
            self.share.store(self.share_of_each(names.count()), Relaxed);
            Some(number)
        });
        let number = number.unwrap_or(OTHERS);
        owner.set_mark(self.stamp.load(Relaxed) << OwnerId::BITS | u64::from(number));
        number
    }

    /// Adds bytes to an owner's count.
    pub(super) fn took(&self, owner: OwnerId, bytes: usize) {
        let held = self.count(owner).fetch_add(bytes, Relaxed) + bytes;
        if owner & IDS != 0 {
            self.ids.fetch_add(bytes, Relaxed);
        } else if held > self.held_by_largest() {
            self.largest.store(owner.into(), Relaxed);
        }
    }

    /// Subtracts bytes from an owner's count.
    pub(super) fn gave(&self, owner: OwnerId, bytes: usize) {
        self.count(owner).fetch_sub(bytes, Relaxed);
        if owner & IDS != 0 {
            self.ids.fetch_sub(bytes, Relaxed);
        }
    }

    pub(super) fn held(&self, owner: OwnerId) -> usize {
        self.count(owner).load(Relaxed)
    }

    /// True if an owner holds more than its share, with `more` bytes added.
    pub(super) fn is_above_share(&self, owner: OwnerId, more: usize) -> bool {
        self.held(owner).saturating_add(more) > self.share.load(Relaxed)
    }

    /// True if some owner may hold more than its share. An estimate: the largest one may have lost keys since.
    pub(super) fn some_is_above_share(&self) -> bool {
        self.held_by_largest() > self.share.load(Relaxed)
    }

    fn held_by_largest(&self) -> usize {
        // It holds an owner's number.
        self.held(self.largest.load(Relaxed) as OwnerId)
    }

    /// A single owner may use the whole budget.
    fn share_of_each(&self, owners: usize) -> usize {
        let share = match self.configured {
            Some(share) => share,
            None => (self.budget / owners.max(1)).max(self.budget / 10),
        };
        if share >= self.budget { usize::MAX } else { share }
    }

    fn count(&self, owner: OwnerId) -> &AtomicUsize {
        &self.page(owner)[usize::from(owner) % PAGE]
    }

    fn page(&self, owner: OwnerId) -> &Page {
        let page = &self.held[usize::from(owner) / PAGE];
        page.get_or_init(|| Box::new(std::array::from_fn(|_| AtomicUsize::new(0))))
    }
}

impl Names {
    fn next(&mut self) -> Option<OwnerId> {
        self.free.pop().or_else(|| {
            self.given = Some(self.given + 1).filter(|&next| next < IDS)?;
            Some(self.given)
        })
    }

    /// Number of owners that share the budget: the configured ones, or else all known ones.
    fn count(&self) -> usize {
        self.configured.unwrap_or(self.numbers.len())
    }
}

/// A number that no other store of this process has, or had. It is never 0.
fn next_stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_number_belongs_to_a_name_and_a_store() {
        let (one, other) = (Owners::new(MIB, 0, None), Owners::new(MIB, 0, None));
        let (login, again) = (Owner::of_domain("login"), Owner::of_domain("login"));
        let search = Owner::of_domain("search");
        assert_eq!((one.number(&search), one.number(&login)), (1, 2));
        // The mark is the first store's, and then the second one's.
        assert_eq!((other.number(&login), one.number(&login)), (1, 2));
        assert_eq!(one.number(&again), 2, "a name has one number");
    }

    #[test]
    fn the_share_is_an_equal_part_and_at_least_a_tenth() {
        let owners = Owners::new(MIB, 0, None);
        let share = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            owners.share_among(names.iter().map(String::as_str));
            owners.share.load(Relaxed)
        };
        assert_eq!((share(0), share(1)), (usize::MAX, usize::MAX), "who is alone may have all");
        assert_eq!((share(2), share(4)), (MIB / 2, MIB / 4));
        assert_eq!((share(10), share(11), share(500)), (MIB / 10, MIB / 10, MIB / 10));
        let configured = Owners::new(MIB, 0, Some(MIB / 3));
        configured.share_among(["a", "b"].into_iter());
        assert_eq!(configured.share.load(Relaxed), MIB / 3);
    }

    /// An owner that was not announced counts as soon as it has a key.
    #[test]
    fn owners_that_were_not_announced_share_too() {
        let owners = Owners::new(MIB, 0, None);
        let number = owners.number(&Owner::of_domain("a"));
        owners.took(number, MIB);
        assert!(!owners.is_above_share(number, 0) && !owners.some_is_above_share());
        owners.number(&Owner::of_domain("b"));
        assert!(owners.is_above_share(number, 0) && owners.some_is_above_share());
        owners.gave(number, MIB / 2);
        assert!(!owners.is_above_share(number, 0) && owners.is_above_share(number, 1));
    }

    /// One that is gone keeps its number while it has keys, and a new one gets the number of one without keys.
    #[test]
    fn numbers_are_given_again_when_their_keys_are_gone() {
        let owners = Owners::new(MIB, 0, None);
        let [stays, holds, empty] = ["stays", "holds", "empty"].map(Owner::of_domain);
        let numbers = [&stays, &holds, &empty].map(|owner| owners.number(owner));
        owners.took(numbers[1], KEY_BYTES);
        owners.share_among([stays.name()].into_iter());
        assert_eq!(owners.number(&stays), numbers[0]);
        assert_eq!(owners.number(&holds), numbers[1]);
        assert_eq!(owners.number(&Owner::of_domain("new")), numbers[2]);
        owners.gave(numbers[1], KEY_BYTES);
        owners.share_among([stays.name()].into_iter());
        // Its mark of the time before is void.
        assert!(owners.number(&empty) != numbers[0]);
    }

    #[test]
    fn owners_beyond_all_numbers_share_one() {
        let owners = Owners::new(MIB, 0, None);
        let names: Vec<String> = (0..70_000).map(|number| number.to_string()).collect();
        owners.share_among(names.iter().map(String::as_str));
        assert_eq!(owners.names.lock().numbers.len(), usize::from(IDS - 1));
        assert_eq!(owners.number(&Owner::of_domain("one more")), OTHERS);
        assert_eq!(owners.number(&Owner::of_domain("and another")), OTHERS);
    }
}
