//! What is counted by domain: answers by their gRPC code, and hits on limits that requests brought along.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::envoy::Domains;

use super::lines::Lines;
use super::rules::RuleCounts;

/// The label of every domain that no file has.
pub(super) const UNKNOWN: &str = "unknown";

/// How a request of Envoy's ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerCode {
    /// With an answer, whatever it says.
    Ok,
    /// A field broke its bound.
    InvalidArgument,
    /// There are no files, or hits cannot be given back.
    FailedPrecondition,
    /// The store could not decide, and the policy is to say so.
    Unavailable,
    /// The message could not be read.
    Internal,
    /// The caller's deadline passed.
    DeadlineExceeded,
    /// The caller went away.
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

    /// As gRPC spells it.
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
    /// Limits that requests brought along.
    pub(super) given: Arc<RuleCounts>,
}

impl DomainCounts {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { answers: Lines::new(workers), given: RuleCounts::new(workers) })
    }
}

/// Those of every domain of `domains`, by name; those of `before` go on. `unknown` is always there.
pub(super) fn renewed(
    before: &BTreeMap<Box<str>, Arc<DomainCounts>>,
    domains: &Domains,
    workers: usize,
) -> BTreeMap<Box<str>, Arc<DomainCounts>> {
    let names = domains.iter().map(|domain| domain.name()).chain([UNKNOWN]);
    let counts = |name: &str| before.get(name).cloned().unwrap_or_else(|| DomainCounts::new(workers));
    names.map(|name| (name.into(), counts(name))).collect()
}
