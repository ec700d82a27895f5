//! Counters by domain: answers by their gRPC code, and hits on overrides.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rules::Domains;

use super::lines::Lines;
use super::rules::RuleCounts;

/// Label of all unknown domains.
pub(super) const UNKNOWN: &str = "unknown";

/// Status code of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerCode {
    /// Answered, over the limit or not.
    Ok,
    /// A field was out of bounds.
    InvalidArgument,
    /// There are no files, or hits cannot be given back.
    FailedPrecondition,
    /// The store failed, and the policy is to return the error.
    Unavailable,
    /// The message could not be decoded.
    Internal,
    /// The deadline passed.
    DeadlineExceeded,
    /// The caller cancelled.
    Cancelled,
}

impl AnswerCode {
    pub(super) const ALL: [Self; 7] = [
        Self::Ok,
        Self::InvalidArgument,
        Self::FailedPrecondition,
        Self::Unavailable,
        Self::Internal,
        Self::DeadlineExceeded,
        Self::Cancelled,
    ];

    /// Name in gRPC.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unavailable => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// The counters of one domain.
#[derive(Debug)]
pub struct DomainCounts {
    pub(super) answers: Lines,
    /// Hits on overrides in requests.
    pub(super) given: Arc<RuleCounts>,
}

impl DomainCounts {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { answers: Lines::new(workers), given: RuleCounts::new(workers) })
    }
}

/// Counters of every domain in `domains`, by name; those in `before` are kept. `unknown` is always included.
pub(super) fn renewed(
    before: &BTreeMap<Box<str>, Arc<DomainCounts>>,
    domains: &Domains,
    workers: usize,
) -> BTreeMap<Box<str>, Arc<DomainCounts>> {
    let names = domains.iter().map(|domain| domain.name()).chain([UNKNOWN]);
    let counts = |name: &str| before.get(name).cloned().unwrap_or_else(|| DomainCounts::new(workers));
    names.map(|name| (name.into(), counts(name))).collect()
}
