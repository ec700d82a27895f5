//! Operations on leases, and their answers.

use weir_units::Micros;

/// Operation on a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseOp {
    /// Takes `weight` permits for `ttl`.
    Acquire {
        /// How many.
        weight: u64,
        /// For how long.
        ttl: Micros,
    },
    /// Lets the lease end `ttl` from now.
    Renew {
        /// For how long.
        ttl: Micros,
    },
    /// Gives the permits back.
    Release {
        /// How the work went.
        outcome: WorkOutcome,
        /// How long it took; `None` is the time since the lease was acquired.
        rtt: Option<Micros>,
    },
    /// Shows a sample to the controller, without a lease: for tests of the controllers.
    Sample {
        /// How long the work took.
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
    /// It was done; its time is a sample.
    #[default]
    Success,
    /// Its time says nothing, and is not used.
    Ignored,
    /// It failed for want of capacity: a timeout, a refusal.
    Dropped,
}

/// Answer to an operation on a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeaseAnswer {
    /// The store's time.
    pub now: Micros,
    /// Outcome of the operation.
    pub outcome: LeaseOutcome,
    /// How many permits there are now.
    pub limit: u64,
    /// How many are held, after this call.
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
        /// Until its end, if nobody renews or releases it.
        expires_after: Micros,
        /// True if this call acquired it; false if it was held before.
        is_new: bool,
    },
    /// The lease was held, and its permits are given back.
    Released,
    /// There is no such lease: it was never acquired, was released, or has ended.
    NotHeld,
    /// The id is that of a lease of another weight.
    OtherWeight(u64),
    /// The permits are not granted.
    Refused {
        /// Why.
        refusal: LeaseRefusal,
        /// The time until leases that end by themselves would let the call pass, if nobody renews or acquires.
        bound: Option<Micros>,
    },
    /// The controller has seen the sample.
    Sampled,
}

/// Why permits are not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseRefusal {
    /// Too many are held. How long to wait depends on their holders, and is not known.
    Limited,
    /// The weight is above every limit that there may be.
    Never,
    /// The key has as many leases as it may have, however few permits they hold.
    Full,
    /// The store has no memory for another lease.
    NoMemory,
}
