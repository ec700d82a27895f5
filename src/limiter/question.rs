//! A question, as the limiter takes it. Its texts stay where they arrived.

use std::time::Instant;

use smallvec::SmallVec;

use crate::algorithm::Op;
use crate::key::Subject;
use crate::strategy::Attributes;

/// What a call takes when it does not say.
const DEFAULT_COST: u64 = 1;

/// May this consumer use this resource now?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// What is used.
    pub resource: &'a str,
    /// Who uses it; may be empty where no limit is scoped to the consumer.
    pub consumer: &'a str,
    /// A configured strategy; empty means the resource's own.
    pub strategy: &'a str,
    /// How much the call takes; 0 looks.
    pub cost: u64,
    /// Answer as if charged, and charge nothing.
    pub peek: bool,
    /// Further facts, by name, each name once; scopes may count by them.
    pub attributes: SmallVec<[(&'a str, &'a str); 2]>,
    /// Whether the answer says what an HTTP client is advised.
    pub headers: bool,
    /// When the store must have answered, see [`Limiter::store_deadline`](super::Limiter::store_deadline).
    pub deadline: Option<Instant>,
}

impl Question<'_> {
    /// A question about nothing yet, of the cost that calls have by default.
    #[inline]
    #[must_use]
    pub fn until(deadline: Option<Instant>) -> Self {
        Question {
            resource: "",
            consumer: "",
            strategy: "",
            cost: DEFAULT_COST,
            peek: false,
            attributes: SmallVec::new(),
            headers: false,
            deadline,
        }
    }

    /// Its subject, where the resource is of this routing group.
    #[inline]
    pub(super) fn subject<'q>(&'q self, group: Option<&'q str>) -> Subject<'q> {
        let attributes = Attributes::of_pairs(&self.attributes);
        Subject { resource: self.resource, consumer: self.consumer, group, attributes }
    }

    /// What is done with its cost.
    pub(super) const fn op(&self) -> Op {
        if self.peek { Op::Peek } else { Op::Charge }
    }
}
