//! Errors of stores.

use std::sync::Arc;

use weir_core::algorithm::budget::MAX_ENDS;

/// Reason that a store could not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No answer within the deadline.
    #[error("the store did not answer in time")]
    Timeout,
    /// No connection to the node that holds the keys.
    #[error("the store cannot be reached: {0}")]
    Unavailable(Arc<str>),
    /// No answer could come within the deadline, so the store was not asked.
    #[error("the store was not asked: it has too much to do to answer in time")]
    Congested,
    /// Too many decisions are waiting.
    #[error("{0} decisions wait for the store already")]
    Overloaded(usize),
    /// The memory budget is exhausted and nothing may be evicted.
    #[error("the memory store is full: its budget of {0} bytes is used by keys that still count")]
    Full(usize),
    /// The node decides by itself, and has no memory for another key.
    #[error(
        "the node decides by itself and has no memory for another key: store.redis.local_budget is used up, {0} bytes"
    )]
    LocalFull(usize),
    /// The ids of earlier calls use all of their share of the memory store. Nothing is charged.
    #[error(
        "the memory store has no room for another id: the ids that still count use all of store.memory.id_share, {0} bytes"
    )]
    IdsFull(usize),
    /// The key holds something that is not this limit's state.
    #[error("the stored state cannot be read: {0}")]
    Unreadable(Arc<str>),
    /// The store answered with an error.
    #[error("the store refused: {0}")]
    Refused(Arc<str>),
    /// The operation is not defined for these limits.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The id belongs to a decision with another cost. Nothing is charged.
    #[error("the id is known with another cost: {0}")]
    OtherCost(u64),
    /// The id belongs to a call with other costs, or its hold was settled or has ended. Nothing is charged.
    #[error("the id is known with other costs, or its hold was settled or has ended")]
    OtherContents,
    /// The open holds of one limit end at too many different times. Nothing is held.
    #[error("the open holds of one limit end at {MAX_ENDS} different times already")]
    TooManyEnds,
}

impl StoreError {
    /// True if the store is healthy and the request is refused for what it asks: no failure policy answers it.
    pub const fn is_callers(&self) -> bool {
        matches!(
            self,
            Self::Unsupported(_)
                | Self::OtherCost(_)
                | Self::OtherContents
                | Self::TooManyEnds
                | Self::IdsFull(_)
        )
    }

    /// The kind of error, as a metric label.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unavailable(_) => "unavailable",
            Self::Congested => "congested",
            Self::Overloaded(_) => "overloaded",
            Self::Full(_) => "full",
            Self::Unreadable(_) => "unreadable",
            Self::Refused(_) => "refused",
            Self::Unsupported(_) => "unsupported",
            Self::OtherCost(_) => "other_cost",
            Self::OtherContents => "other_contents",
            Self::TooManyEnds => "too_many_ends",
            Self::IdsFull(_) => "ids_full",
            Self::LocalFull(_) => "local_full",
        }
    }

    /// All kinds.
    pub const KINDS: [&'static str; 13] = [
        "timeout",
        "unavailable",
        "congested",
        "overloaded",
        "full",
        "unreadable",
        "refused",
        "unsupported",
        "other_cost",
        "other_contents",
        "too_many_ends",
        "ids_full",
        "local_full",
    ];
}

/// The error for an answer without a verdict.
pub fn no_verdict() -> StoreError {
    StoreError::Refused("it answered without a verdict".into())
}
