//! Bans in the task of live control: sends due bans to the store, follows the store, lifts bans, and keeps totals for
//! the audit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weir_time::clock::monotonic;

use super::banned::BannedCaller;
use super::guard::BanGuard;
use crate::model::{Ban, BanSet, BanState, ControlPosition};
use crate::store::ControlLink;
use crate::store::ControlStore;

/// Least time between two changes of the bans.
pub(crate) const APPLY_EVERY: Duration = Duration::from_millis(100);

/// Interval between totals in the audit.
const TOTALS_EVERY: Duration = Duration::from_secs(60);

/// Bans of this node since the last totals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BanTotals {
    /// Bans that this node made, by strategy and limit.
    pub(crate) banned: BTreeMap<String, u64>,
    /// Bans that callers of this node lifted.
    pub(crate) lifted: u64,
}

/// The bans, as the task of live control keeps them.
pub(crate) struct BanKeeper {
    pub(crate) guard: Arc<BanGuard>,
    /// Bans of the memory store.
    own: BanState,
    /// Bans in Redis, as far as this node knows.
    known: BanSet,
    position: ControlPosition,
    totals: BanTotals,
    since: Instant,
}

impl BanKeeper {
    pub(crate) fn new(guard: Arc<BanGuard>) -> Self {
        Self {
            guard,
            own: BanState::default(),
            known: BanSet::default(),
            position: ControlPosition::default(),
            totals: BanTotals::default(),
            since: monotonic(),
        }
    }

    /// Gives the store what is due.
    pub(crate) async fn apply_due(&mut self, store: &mut ControlStore, change: u64) -> Result<(), String> {
        let due = self.guard.take_due();
        if due.is_empty() {
            return Ok(());
        }
        let bans: Vec<Ban> =
            due.iter().map(|(member, until)| Ban { member: member.clone(), until: *until }).collect();
        match store {
            ControlStore::Memory(_) => {
                self.own.add(self.guard.now(), change, &bans);
                self.guard.enforce(self.own.bans().clone());
            }
            ControlStore::Redis(link) => {
                if let Err(error) = link.add_bans(change, &bans).await {
                    self.guard.give_back(due);
                    return Err(error);
                }
                self.follow(link).await?;
            }
        }
        for member in due.keys() {
            let Some(BannedCaller { strategy, limit, .. }) = BannedCaller::read(member) else { continue };
            *self.totals.banned.entry(format!("{strategy}/{limit}")).or_default() += 1;
        }
        self.guard.made.fetch_add(due.len() as u64, Relaxed);
        Ok(())
    }

    /// Brings this node's bans and those of Redis together.
    pub(crate) async fn follow(&mut self, link: &mut ControlLink) -> Result<(), String> {
        let changed = link.sync_bans(&mut self.known, &mut self.position).await;
        if let Some(time) = link.store_time() {
            self.guard.store_is_at(time);
        }
        // A round that failed may have read some before that.
        if changed != Ok(false) {
            self.guard.enforce(self.known.clone());
        }
        changed.map(drop)
    }

    /// Lifts the ban of a member. Returns whether there was one.
    pub(crate) async fn lift(
        &mut self,
        store: &mut ControlStore,
        change: u64,
        member: &str,
    ) -> Result<bool, String> {
        let lifted = match store {
            ControlStore::Memory(_) => {
                let lifted = self.own.lift(self.guard.now(), change, member);
                self.guard.enforce(self.own.bans().clone());
                lifted
            }
            ControlStore::Redis(link) => {
                let lifted = link.lift_ban(change, member).await?;
                self.follow(link).await?;
                lifted
            }
        };
        if lifted {
            self.totals.lifted += 1;
            self.guard.lifted.fetch_add(1, Relaxed);
        }
        Ok(lifted)
    }

    /// Forgets bans that have ended.
    pub(crate) fn drop_ended(&mut self) {
        let now = self.guard.now();
        if self.own.drop_ended(now) {
            self.guard.enforce(self.own.bans().clone());
        }
        if self.known.drop_ended(now) {
            self.guard.enforce(self.known.clone());
        }
    }

    /// True if this node knows of bans.
    pub(crate) fn has_bans(&self) -> bool {
        !self.known.is_empty()
    }

    /// The totals, once a minute, or at the end; `None` if there is nothing to say.
    pub(crate) fn take_totals(&mut self, is_last: bool) -> Option<BanTotals> {
        let now = monotonic();
        if !is_last && now.saturating_duration_since(self.since) < TOTALS_EVERY {
            return None;
        }
        self.since = now;
        let totals = std::mem::take(&mut self.totals);
        (totals != BanTotals::default()).then_some(totals)
    }

    /// Keeps totals that could not be written.
    pub(crate) fn keep_totals(&mut self, totals: BanTotals) {
        for (limit, count) in totals.banned {
            *self.totals.banned.entry(limit).or_default() += count;
        }
        self.totals.lifted += totals.lifted;
    }
}
