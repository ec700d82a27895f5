//! The questions that a store decides.

mod once;
mod supported;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

pub use self::once::Once;
pub use self::supported::check_supported;
use super::{LimitSet, Part};
use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::{self, Subject};
use weir_core::strategy::{Attributes, Limit, Strategy};

/// A resolved question: one operation on the limits of one strategy for one subject.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// The limits.
    pub strategy: &'a Arc<Strategy>,
    /// The subject whose state is used.
    pub subject: Subject<'a>,
    /// Operation on each cost.
    pub op: Op,
    /// The costs, which are decided in this order. Several of them are callers of the same keys; each has an answer
    /// of its own.
    pub costs: &'a [u64],
    /// The limits to decide, if not all of them.
    pub part: Option<&'a Part<'a>>,
    /// Deadline of the answer. A store that waits answers by then, or by its own deadline if that is earlier.
    pub deadline: Option<&'a Instant>,
    /// A number of the caller: a store that has more to do than it can takes turns between callers.
    pub caller: u32,
}

// A larger one is copied by `memcpy` at every step.
const _: () = assert!(size_of::<Decision<'static>>() <= 128);

/// For each limit of a decision its key's phase, 0 where its windows are not spread; empty where none is.
pub(crate) type Phases = SmallVec<[u64; 1]>;

impl<'a> Decision<'a> {
    /// A decision over all limits, for a caller without a deadline.
    pub fn new(strategy: &'a Arc<Strategy>, subject: Subject<'a>, op: Op, costs: &'a [u64]) -> Self {
        Self { strategy, subject, op, costs, part: None, deadline: None, caller: 0 }
    }

    /// True for one charge, peek or debit over all limits, as nearly all decisions are.
    pub(crate) fn is_simple(&self) -> bool {
        self.costs.len() == 1
            && self.part.is_none()
            && match self.op {
                Op::Charge | Op::Peek => true,
                Op::Force => check_supported(self).is_ok(),
                _ => false,
            }
    }

    pub(crate) fn limit_set(&self) -> LimitSet {
        self.part.map_or(LimitSet::ALL, |part| part.limits)
    }

    /// The limits that it is about, in the order of the strategy.
    pub fn limits(&self) -> impl Iterator<Item = &'a Limit> + use<'a> {
        let part = self.limit_set();
        let all = self.strategy.limits().iter().enumerate();
        all.filter(move |(index, _)| part.has(*index)).map(|(_, limit)| limit)
    }

    #[inline]
    pub(crate) fn algorithms(&self) -> Cow<'a, [Algorithm]> {
        if self.limit_set() == LimitSet::ALL {
            return Cow::Borrowed(self.strategy.algorithms());
        }
        Cow::Owned(self.limits().map(|limit| limit.algorithm).collect())
    }

    /// The phases of the keys; a name is built only where a limit is spread.
    #[inline(always)]
    pub(crate) fn phases(&self) -> Phases {
        if self.limits().any(|limit| limit.algorithm.is_spread()) {
            self.spread_phases()
        } else {
            Phases::new()
        }
    }

    // Out of line, so that the common path stays small enough to be inlined.
    #[inline(never)]
    fn spread_phases(&self) -> Phases {
        let phase = |limit: &Limit| {
            if !limit.algorithm.is_spread() {
                return 0;
            }
            let mut name = Vec::new();
            key::write_name(&mut name, self.strategy, limit, &self.subject);
            key::phase(&name)
        };
        self.limits().map(phase).collect()
    }
}

/// A subject that borrows from no caller, for work that may outlive it.
#[derive(Debug, Clone)]
pub struct OwnedSubject {
    resource: String,
    consumer: String,
    group: Option<String>,
    attributes: HashMap<String, String>,
}

impl OwnedSubject {
    /// A copy of `subject`.
    pub fn new(subject: &Subject<'_>) -> Self {
        let Subject { resource, consumer, group, attributes } = *subject;
        Self {
            resource: resource.to_owned(),
            consumer: consumer.to_owned(),
            group: group.map(str::to_owned),
            attributes: attributes.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// The subject.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            resource: &self.resource,
            consumer: &self.consumer,
            group: self.group.as_deref(),
            attributes: Attributes::new(&self.attributes),
        }
    }
}
