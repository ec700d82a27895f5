//! Leases as operators see them, and pages of them.

use weir_units::Micros;

/// The most leases of a page.
pub const MAX_LEASE_PAGE: usize = 100;

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// Id that the holder chose.
    pub id: Box<str>,
    /// Number of permits that the lease holds.
    pub weight: u64,
    /// Time at which the lease was acquired.
    pub acquired: Micros,
    /// Time at which the lease ends unless it is renewed.
    pub ends: Micros,
    /// Partition of the lease, if the limit has any.
    pub partition: Option<Box<str>>,
}

/// Cursor of a page, which begins after the lease with this end and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseCursor<'a> {
    /// The end of the last lease of the page before.
    pub ends: Micros,
    /// Id of the lease.
    pub id: &'a str,
}

/// A page of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasePage {
    /// The store's time.
    pub now: Micros,
    /// Number of leases of the key, on all pages.
    pub count: u64,
    /// The leases of the page, by end and id.
    pub leases: Vec<HeldLease>,
    /// True if more leases follow.
    pub more: bool,
}
