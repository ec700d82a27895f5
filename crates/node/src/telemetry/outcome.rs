//! The outcomes by which decisions are counted.

use crate::label::labels;

labels! {
    /// Outcome of a decision.
    pub enum CountedOutcome {
        /// All limits allowed the call, and were charged.
        Allowed = "allowed",
        /// A limit was exhausted.
        Denied = "denied",
        /// The cost exceeds a limit.
        Never = "never",
        /// The consumer is on a deny list.
        DenyList = "deny_list",
        /// The consumer is on an allow list.
        AllowList = "allow_list",
        /// The store failed; the policy allowed the call.
        DegradedAllowed = "degraded_allowed",
        /// The store failed; the policy denied the call.
        DegradedDenied = "degraded_denied",
        /// The store failed; the caller got an error.
        Error = "error",
        /// All limits allowed the call, and none was charged: a peek, or a cost of 0.
        Peeked = "peeked",
        /// The id is known: the call was charged before.
        Repeated = "repeated",
        /// The consumer is banned.
        Banned = "banned",
    }
}

impl CountedOutcome {
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
}
