//! Operations on leases, and their answers.

use weir_units::Micros;

/// Operation on a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseOp {
    /// Takes `weight` permits for `ttl`.
    Acquire {
        /// Number of permits.
        weight: u64,
        /// Time until the lease ends.
        ttl: Micros,
    },
    /// Lets the lease end `ttl` from now.
    Renew {
        /// New time until the lease ends.
        ttl: Micros,
    },
    /// Gives the permits back.
    Release {
        /// Outcome of the work.
        outcome: WorkOutcome,
        /// Duration of the work; `None` is the time since the lease was acquired.
        rtt: Option<Micros>,
    },
    /// Shows a sample to the controller, without a lease: for tests of the controllers.
    Sample {
        /// Duration of the work.
        rtt: Micros,
        /// Permits in flight when it began.
        in_flight: u64,
        /// True if it failed for lack of capacity.
        dropped: bool,
    },
}

/// Outcome of the work under a lease, for the controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The work was done; its time is a sample.
    #[default]
    Success,
    /// The time of the work is no sample.
    Ignored,
    /// The work failed for want of capacity: a timeout, a refusal.
    Dropped,
}

/// Answer to an operation on a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeaseAnswer {
    /// The store's time.
    pub now: Micros,
    /// Outcome of the operation.
    pub outcome: LeaseOutcome,
    /// Number of permits of the key now.
    pub limit: u64,
    /// Number of permits that are held after this call.
    pub in_flight: u64,
    /// The largest weight that would pass now, after this call.
    pub remaining: u64,
    /// The limit before it is rounded down.
    pub estimate: f64,
}

/// Outcome of an operation on a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// The lease is held.
    Held {
        /// Time until the lease ends, if nobody renews or releases it.
        expires_after: Micros,
        /// True if this call acquired it; false if it was held before.
        is_new: bool,
    },
    /// The lease was held, and its permits are given back.
    Released,
    /// The lease was never acquired, was released, or has ended.
    NotHeld,
    /// The id is that of a lease of another weight.
    OtherWeight(u64),
    /// The permits are not granted.
    Refused {
        /// Reason of the refusal.
        refusal: LeaseRefusal,
        /// Time until expiring leases would let the call pass, if none is renewed or acquired.
        bound: Option<Micros>,
    },
    /// The controller has seen the sample.
    Sampled,
}

/// Reason why permits are not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseRefusal {
    /// The limit of permits is reached. The wait depends on their holders, and is not known.
    Limited,
    /// The weight is above every limit that there may be.
    Never,
    /// The key has as many leases as it may have, however few permits they hold.
    Full,
    /// The store has no memory for another lease.
    NoMemory,
}
