//! The table of rights: which methods each right allows, and which lists of a rule bound it. It is the only one
//! beside the methods of features: configuration, servers, documents and tests read it.

/// A right of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AccessRight {
    /// Decisions, peeks, counts and reservations.
    Decide,
    /// Give back what was charged.
    Refund,
    /// Charge what was used.
    Debit,
    /// Acquire, renew and release permits.
    Lease,
    /// Numbers of limits in requests.
    Inline,
    /// Put items into queues.
    Enqueue,
    /// Take items from queues.
    Take,
    /// Envoy's rate limit service.
    Envoy,
    /// Read totals of decisions, and consumers.
    Usage,
    /// Read the admin port, leases, and the items of queues.
    Inspect,
    /// Reset limits, bring dead letters back, and empty queues.
    Reset,
    /// Change the configuration while the service runs.
    Control,
}

/// A list of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleList {
    /// `resources`
    Resources,
    /// `strategies`
    Strategies,
    /// `consumers`
    Consumers,
    /// `queues`
    Queues,
    /// `envoy_domains`
    EnvoyDomains,
}

/// A row of the table.
#[derive(Debug)]
pub struct RightRow {
    /// The right.
    pub right: AccessRight,
    /// The name of the right in the configuration.
    pub name: &'static str,
    /// The description of the right, besides its methods.
    pub about: &'static str,
    /// The gRPC methods that need it, or one of several rights of which it is one. Features name those of their own.
    pub methods: &'static [&'static str],
    /// The lists that bound it.
    pub lists: &'static [RuleList],
}

use RuleList::{Consumers, EnvoyDomains, Queues, Resources, Strategies};

const DECISIONS: &[RuleList] = &[Resources, Strategies, Consumers];
const DECISIONS_AND_QUEUES: &[RuleList] = &[Resources, Strategies, Consumers, Queues];

/// All rights, in the order of [`AccessRight`].
pub const RIGHTS: [RightRow; 12] = [
    RightRow::new(AccessRight::Decide, "decide", "decisions, peeks, counts and reservations", DECISIONS)
        .methods(&[
            "/weir.v1.RateLimitService/ShouldAllow",
            "/weir.v1.RateLimitService/ShouldAllowBatch",
            "/weir.v1.RateLimitService/ShouldAllowStream",
            "/weir.v1.RateLimitService/Count",
            "/weir.v1.RateLimitService/Reserve",
            "/weir.v1.RateLimitService/CancelReservation",
        ]),
    RightRow::new(
        AccessRight::Refund,
        "refund",
        "give back what was charged; hits of Envoy that are negative need it together with `envoy`",
        DECISIONS,
    )
    .methods(&["/weir.v1.RateLimitService/Refund"]),
    RightRow::new(AccessRight::Debit, "debit", "charge what was used", DECISIONS)
        .methods(&["/weir.v1.RateLimitService/Debit", "/weir.v1.RateLimitService/Settle"]),
    RightRow::new(AccessRight::Lease, "lease", "permits, and reports of the work done under them", DECISIONS),
    RightRow::new(
        AccessRight::Inline,
        "inline",
        "limits with their numbers in the request, together with `decide`",
        &[Resources, Consumers],
    ),
    RightRow::new(AccessRight::Enqueue, "enqueue", "put items into queues", &[Queues]),
    RightRow::new(
        AccessRight::Take,
        "take",
        "take items from queues, and say what became of them",
        &[Queues],
    ),
    RightRow::new(AccessRight::Envoy, "envoy", "Envoy's rate limit service", &[EnvoyDomains]),
    RightRow::new(
        AccessRight::Usage,
        "usage",
        "totals of decisions and the names of consumers, also at `/ui/data`",
        DECISIONS,
    ),
    RightRow::new(
        AccessRight::Inspect,
        "inspect",
        "what the admin port shows, apart from usage; lists of leases, and the items of queues",
        DECISIONS_AND_QUEUES,
    ),
    RightRow::new(
        AccessRight::Reset,
        "reset",
        "reset limits, release leases for their holders, bring dead letters back, and empty queues",
        DECISIONS_AND_QUEUES,
    )
    .methods(&["/weir.v1.AdminService/Reset"]),
    RightRow::new(AccessRight::Control, "control", "change the configuration while the service runs", &[]),
];

/// The methods of these services are open to everybody.
pub const OPEN_SERVICES: [&str; 1] = ["/grpc.health.v1.Health/"];

/// The methods of these services need a caller where the server has identity, and no right.
pub const CALLER_SERVICES: [&str; 2] =
    ["/grpc.reflection.v1.ServerReflection/", "/grpc.reflection.v1alpha.ServerReflection/"];

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RightSet(u16);

impl RightRow {
    const fn new(
        right: AccessRight,
        name: &'static str,
        about: &'static str,
        lists: &'static [RuleList],
    ) -> Self {
        Self { right, name, about, methods: &[], lists }
    }

    const fn methods(self, methods: &'static [&'static str]) -> Self {
        Self { methods, ..self }
    }
}

impl AccessRight {
    /// Returns its row of the table.
    #[must_use]
    pub const fn row(self) -> &'static RightRow {
        &RIGHTS[self as usize]
    }
}

impl RuleList {
    /// All lists.
    pub const ALL: [Self; 5] = [Resources, Strategies, Consumers, Queues, EnvoyDomains];

    /// Returns the key of the list in a rule.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Resources => "resources",
            Strategies => "strategies",
            Consumers => "consumers",
            Queues => "queues",
            EnvoyDomains => "envoy_domains",
        }
    }
}

impl RightSet {
    /// The set of all rights.
    pub const ALL: Self = Self((1 << RIGHTS.len()) - 1);

    /// Returns the set with one right more.
    #[must_use]
    pub const fn with(self, right: AccessRight) -> Self {
        Self(self.0 | 1 << right as u16)
    }

    /// Returns the set without a right.
    #[must_use]
    pub const fn without(self, right: AccessRight) -> Self {
        Self(self.0 & !(1 << right as u16))
    }

    /// True if the right is in the set.
    #[must_use]
    pub const fn has(self, right: AccessRight) -> bool {
        self.0 & 1 << right as u16 != 0
    }

    /// True if a right is in both sets.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<AccessRight> for RightSet {
    fn from_iter<I: IntoIterator<Item = AccessRight>>(rights: I) -> Self {
        rights.into_iter().fold(Self::default(), Self::with)
    }
}
