//! Bans that nodes share. On the memory store they live in the process; on Redis the scripts `lua/control/bans_*.lua` are
//! the twin of [`BanState`].
//!
//! Bans are apart from records: they change no position of records, and what a failure of Redis loses of them is lost.

mod sketch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

pub use self::sketch::{BanRule, DenialSketch, MAX_COUNTED};
use super::changes::{ChangesSince, since};
use super::record::ControlPosition;
use super::{MAX_CONTROL_CHANGES, MAX_CONTROL_VERSION};

/// The most bans. The one that ends soonest leaves.
pub const MAX_BANS: usize = 10_000;

/// The longest name of a banned caller, in bytes.
pub const MAX_BAN_MEMBER: usize = 2 << 10;

/// A ban, or that one was lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// Name of the caller, as the nodes write it: 1 to [`MAX_BAN_MEMBER`] bytes.
    pub member: Box<str>,
    /// End of the ban in µs since 1970; 0 if it was lifted.
    pub until: u64,
}

impl Ban {
    /// True if its lengths and numbers are within bounds.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        (1..=MAX_BAN_MEMBER).contains(&self.member.len()) && self.until <= MAX_CONTROL_VERSION
    }
}

/// Bans by member, at most [`MAX_BANS`]: what a store has, or what a node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BanSet {
    ends: BTreeMap<Box<str>, u64>,
    by_end: BTreeSet<(u64, Box<str>)>,
}

/// State of a store: all bans, and the last changes.
#[derive(Debug, Clone, Default)]
pub struct BanState {
    set: BanSet,
    position: ControlPosition,
    changes: VecDeque<(ControlPosition, Vec<Ban>)>,
}

/// Changes of bans.
pub type BanChanges = ChangesSince<Ban>;

impl BanSet {
    /// The ban of a member that has not ended: when it ends.
    #[must_use]
    pub fn until(&self, member: &str, now: u64) -> Option<u64> {
        self.ends.get(member).copied().filter(|until| *until > now)
    }

    /// Bans, those that end soonest first. Some may have ended.
    pub fn iter(&self) -> impl Iterator<Item = Ban> {
        self.by_end.iter().map(|(until, member)| Ban { member: member.clone(), until: *until })
    }

    /// The bans of members that come after this one, in their order: member and end. Some may have ended.
    pub fn after(&self, member: &str) -> impl Iterator<Item = (&str, u64)> {
        let beyond = (Bound::Excluded(member), Bound::Unbounded);
        self.ends.range::<str, _>(beyond).map(|(member, until)| (&**member, *until))
    }

    /// Number of bans. Some may have ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Applies a change.
    pub fn apply(&mut self, ban: Ban) {
        self.replace(ban);
        self.trim(MAX_BANS);
    }

    fn replace(&mut self, ban: Ban) {
        if let Some(before) = self.ends.remove(&ban.member) {
            self.by_end.remove(&(before, ban.member.clone()));
        }
        if ban.until == 0 || !ban.is_valid() {
            return;
        }
        self.by_end.insert((ban.until, ban.member.clone()));
        self.ends.insert(ban.member, ban.until);
    }

    /// Drops those that have ended. Returns whether there were any.
    pub fn drop_ended(&mut self, now: u64) -> bool {
        let before = self.by_end.len();
        while self.by_end.first().is_some_and(|(until, _)| *until <= now) {
            self.trim(self.by_end.len() - 1);
        }
        self.by_end.len() < before
    }

    fn trim(&mut self, most: usize) {
        while self.by_end.len() > most {
            if let Some((_, member)) = self.by_end.pop_first() {
                self.ends.remove(&member);
            }
        }
    }
}

impl FromIterator<Ban> for BanSet {
    fn from_iter<I: IntoIterator<Item = Ban>>(bans: I) -> Self {
        let mut set = Self::default();
        bans.into_iter().for_each(|ban| set.apply(ban));
        set
    }
}

impl BanState {
    /// All bans.
    #[must_use]
    pub fn bans(&self) -> &BanSet {
        &self.set
    }

    /// The last change.
    #[must_use]
    pub fn position(&self) -> ControlPosition {
        self.position
    }

    /// Adds bans at `now`, in µs. Of two bans of a member the later end stays. Returns how many were new or longer.
    pub fn add(&mut self, now: u64, change: u64, bans: &[Ban]) -> usize {
        self.set.drop_ended(now);
        let mut changed = Vec::new();
        for ban in bans.iter().filter(|ban| ban.is_valid() && ban.until > now) {
            if self.set.ends.get(&ban.member).is_none_or(|known| *known < ban.until) {
                self.set.replace(ban.clone());
                changed.push(ban.clone());
            }
        }
        self.set.trim(MAX_BANS);
        self.announce(now, change, changed)
    }

    /// Lifts the ban of a member. Returns whether there was one.
    pub fn lift(&mut self, now: u64, change: u64, member: &str) -> bool {
        if self.set.until(member, now).is_none() {
            return false;
        }
        let lifted = Ban { member: member.into(), until: 0 };
        self.set.apply(lifted.clone());
        self.announce(now, change, vec![lifted]) > 0
    }

    /// Drops bans that have ended. Returns whether there were any.
    pub fn drop_ended(&mut self, now: u64) -> bool {
        self.set.drop_ended(now)
    }

    /// Changes after a position.
    #[must_use]
    pub fn bans_since(&self, position: ControlPosition) -> BanChanges {
        // The end of a ban is sent as text.
        let size = |ban: &Ban| ban.member.len() + ban.until.to_string().len();
        since(&self.changes, (position, self.position), size)
    }

    fn announce(&mut self, now: u64, change: u64, changed: Vec<Ban>) -> usize {
        let count = changed.len();
        if count > 0 {
            let version = (self.position.version + 1).max(now).min((1 << 53) - 1);
            self.position = ControlPosition { version, change };
            self.changes.push_back((self.position, changed));
            if self.changes.len() > MAX_CONTROL_CHANGES {
                self.changes.pop_front();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests;
