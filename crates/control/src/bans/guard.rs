//! Bans as decisions see them: counts denials, and denies banned callers.
//!
//! The workers share it. Decisions of strategies without `ban` never call it, and while there are no bans, the others
//! read one flag. The task of live control takes due bans, and sets the bans in force.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use weir_core::algorithm::LimitVerdict;
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::Strategy;
use weir_node::guard::{BanHit, Guard};
use weir_time::clock::Clock;
use weir_units::Micros;

use super::banned::member_of;
use crate::metrics::BanCounts;
use crate::model::{BanRule, BanSet, DenialSketch, MAX_BANS};

/// The bans of this node.
pub struct BanGuard {
    clock: Clock,
    /// Lead of the store's clock over this node's, in µs. Ends of bans are times of the store.
    ahead: AtomicI64,
    has_bans: AtomicBool,
    bans: ArcSwap<BanSet>,
    /// Denials by callers. Its lock is taken by denials of limits with `ban` only.
    counted: Mutex<DenialSketch>,
    /// Bans that no store has yet: names, and ends.
    due: Mutex<BTreeMap<Box<str>, u64>>,
    /// Callers must not be able to choose names that are counted as another's.
    secret: KeySecret,
    pub(crate) made: AtomicU64,
    pub(crate) lifted: AtomicU64,
}

impl BanGuard {
    /// A guard that knows no bans.
    #[must_use]
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            ahead: AtomicI64::new(0),
            has_bans: AtomicBool::new(false),
            bans: ArcSwap::default(),
            counted: Mutex::default(),
            due: Mutex::default(),
            secret: KeySecret::random(),
            made: AtomicU64::new(0),
            lifted: AtomicU64::new(0),
        })
    }

    /// The time of the store, in µs since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0.saturating_add_signed(self.ahead.load(Relaxed))
    }

    /// Sets the store's time. A clock that tests move is the store's clock, too.
    pub(crate) fn store_is_at(&self, time: Micros) {
        if self.clock.explicit().is_none() {
            let ahead = i64::try_from(i128::from(time.0) - i128::from(self.clock.now().0));
            self.ahead.store(ahead.unwrap_or_default(), Relaxed);
        }
    }

    /// Takes the bans that are due.
    pub(crate) fn take_due(&self) -> BTreeMap<Box<str>, u64> {
        let mut due = self.due.lock();
        if due.is_empty() { BTreeMap::new() } else { std::mem::take(&mut *due) }
    }

    /// Gives back what the store has not taken.
    pub(crate) fn give_back(&self, mut bans: BTreeMap<Box<str>, u64>) {
        let mut due = self.due.lock();
        bans.extend(std::mem::take(&mut *due));
        *due = bans.into_iter().take(MAX_BANS).collect();
    }

    /// Puts these bans in force.
    pub(crate) fn enforce(&self, bans: BanSet) {
        let has_bans = !bans.is_empty();
        self.bans.store(Arc::new(bans));
        self.has_bans.store(has_bans, Relaxed);
    }

    /// The bans in force. Some may have ended.
    pub(crate) fn bans(&self) -> Arc<BanSet> {
        self.bans.load_full()
    }

    /// The figures of the metrics.
    #[must_use]
    pub fn counts(&self) -> BanCounts {
        BanCounts {
            active: self.bans.load().len(),
            counted: self.counted.lock().len(),
            made: self.made.load(Relaxed),
            lifted: self.lifted.load(Relaxed),
        }
    }
}

impl Guard for BanGuard {
    fn find(&self, strategy: &Strategy, subject: &Subject<'_>) -> Option<BanHit> {
        if !self.has_bans.load(Relaxed) {
            return None;
        }
        let (bans, now) = (self.bans.load(), self.now());
        let hit = |limit: usize| {
            let member = member_of(strategy, strategy.limits().get(limit)?, subject);
            let until = bans.until(&member, now)?;
            Some(BanHit { limit, wait: Micros(until - now) })
        };
        strategy.bans().iter().filter_map(|ban| hit(ban.limit)).max_by_key(|hit| hit.wait)
    }

    fn denied(&self, strategy: &Strategy, subject: &Subject<'_>, verdicts: &[LimitVerdict]) {
        for ban in strategy.bans() {
            let (Some(limit), Some(verdict)) = (strategy.limits().get(ban.limit), verdicts.get(ban.limit))
            else {
                continue;
            };
            if verdict.fits() {
                continue;
            }
            let (member, now) = (member_of(strategy, limit, subject), self.now());
            let rule = BanRule { after: ban.terms.after, within: ban.terms.within };
            let is_due = self.counted.lock().count(self.secret.digest(member.as_bytes()), rule, now);
            if is_due {
                let mut due = self.due.lock();
                // Until it is in force, more denials do not make it longer.
                if due.len() < MAX_BANS {
                    due.entry(member.into()).or_insert(now.saturating_add(ban.terms.lasts.0));
                }
            }
        }
    }
}
