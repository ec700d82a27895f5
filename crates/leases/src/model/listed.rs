//! Leases as operators see them, and pages of them.

use weir_units::Micros;

/// The most leases of a page.
pub const MAX_LEASE_PAGE: usize = 100;

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// As its holder chose it.
    pub id: Box<str>,
    /// How many permits it holds.
    pub weight: u64,
    /// When it was acquired.
    pub acquired: Micros,
    /// When it ends by itself.
    pub ends: Micros,
    /// Its partition, if the limit has any.
    pub partition: Option<Box<str>>,
}

/// Where a page begins: after the lease with this end and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseCursor<'a> {
    /// The end of the last lease of the page before.
    pub ends: Micros,
    /// Its id.
    pub id: &'a str,
}

/// A page of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasePage {
    /// The store's time.
    pub now: Micros,
    /// How many leases the key has, on all pages.
    pub count: u64,
    /// The leases of the page, by end and id.
    pub leases: Vec<HeldLease>,
    /// True if more leases follow.
    pub more: bool,
}
