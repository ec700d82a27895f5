//! The leases of one key, for operators: page by page, by their ends. Twin: lua/leases/list.lua.

use std::ops::Bound;
use std::sync::Arc;

use super::held::LeaseSet;
use super::listed::{HeldLease, LeaseCursor, LeasePage, MAX_LEASE_PAGE};
use weir_units::Micros;

impl LeaseSet {
    /// Returns the leases after `after` that have not ended, at most [`MAX_LEASE_PAGE`]. It changes nothing.
    #[must_use]
    pub fn page(&self, now: Micros, after: Option<LeaseCursor<'_>>) -> LeasePage {
        let held = self.held_after(now);
        let from = match after {
            Some(LeaseCursor { ends, id }) if ends > now => Bound::Excluded((ends, Arc::<str>::from(id))),
            _ => Bound::Unbounded,
        };
        let mut leases: Vec<HeldLease> =
            self.by_end(from).filter(|lease| lease.ends > now).take(MAX_LEASE_PAGE + 1).collect();
        let more = leases.len() > MAX_LEASE_PAGE;
        leases.truncate(MAX_LEASE_PAGE);
        LeasePage { now, count: held, leases, more }
    }
}
