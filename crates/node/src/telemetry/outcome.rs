//! The outcomes by which decisions are counted.

/// Outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedOutcome {
    /// All limits allowed the call, and were charged.
    Allowed,
    /// A limit was exhausted.
    Denied,
    /// The cost exceeds a limit.
    Never,
    /// The consumer is on a deny list.
    DenyList,
    /// The consumer is on an allow list.
    AllowList,
    /// The store failed; the policy allowed the call.
    DegradedAllowed,
    /// The store failed; the policy denied the call.
    DegradedDenied,
    /// The store failed; the caller got an error.
    Error,
    /// All limits allowed the call, and none was charged: a peek, or a cost of 0.
    Peeked,
    /// The id is known: the call was charged before.
    Repeated,
    /// The consumer is banned.
    Banned,
}

impl CountedOutcome {
    /// Every outcome, in the order of their counters.
    pub const ALL: [Self; 11] = [
        Self::Allowed,
        Self::Denied,
        Self::Never,
        Self::DenyList,
        Self::AllowList,
        Self::DegradedAllowed,
        Self::DegradedDenied,
        Self::Error,
        Self::Peeked,
        Self::Repeated,
        Self::Banned,
    ];

    /// Outcomes of shadows, which have no failure policy. `Error`: the store failed, or the question lacks a field.
    pub const OF_SHADOWS: [Self; 8] = [
        Self::Allowed,
        Self::Peeked,
        Self::Repeated,
        Self::Denied,
        Self::Never,
        Self::DenyList,
        Self::AllowList,
        Self::Error,
    ];

    /// The outcome of an allowed call that charged nothing; `is_first` is false if its id is known.
    pub const fn uncharged(is_first: bool) -> Self {
        if is_first { Self::Peeked } else { Self::Repeated }
    }

    /// True if the call passed and nothing was charged. Such calls are no part of denial ratios.
    #[must_use]
    pub const fn is_uncharged(self) -> bool {
        matches!(self, Self::Peeked | Self::Repeated)
    }

    /// True if the call was allowed; `None` if its caller got an error.
    #[must_use]
    pub const fn is_allowed(self) -> Option<bool> {
        match self {
            Self::Allowed | Self::Peeked | Self::Repeated | Self::AllowList | Self::DegradedAllowed => {
                Some(true)
            }
            Self::Denied | Self::Never | Self::DenyList | Self::Banned | Self::DegradedDenied => Some(false),
            Self::Error => None,
        }
    }

    /// The label value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Peeked => "peeked",
            Self::Repeated => "repeated",
            Self::Denied => "denied",
            Self::Never => "never",
            Self::DenyList => "deny_list",
            Self::Banned => "banned",
            Self::AllowList => "allow_list",
            Self::DegradedAllowed => "degraded_allowed",
            Self::DegradedDenied => "degraded_denied",
            Self::Error => "error",
        }
    }
}
