//! A question as the limiter takes it. Its strings are borrowed from the request.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_core::strategy::{Attributes, Strategy};
use weir_store::{LimitSet, Part};
use weir_units::Micros;

use crate::access::{NamedFields, Rights};

/// Cost of a call that names none.
pub const DEFAULT_COST: u64 = 1;

/// May this consumer use this resource now?
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The rights of its caller.
    pub rights: Rights<'a>,
    /// The resource that is used.
    pub resource: &'a str,
    /// The consumer; may be empty where no limit is scoped to the consumer.
    pub consumer: &'a str,
    /// A configured strategy; empty means the resource's own.
    pub strategy: &'a str,
    /// Cost of the call; 0 only reads the state.
    pub cost: u64,
    /// Answer as if charged, and charge nothing.
    pub peek: bool,
    /// Rarely used fields; boxed, because questions are moved by value.
    pub shaping: Option<Box<Shaping<'a>>>,
    /// Further facts, by name, each name once; scopes may count by them.
    pub attributes: SmallVec<[(&'a str, &'a str); 2]>,
    /// True if the answer includes advice for an HTTP client.
    pub headers: bool,
    /// A number of the caller, for turns in the store.
    pub caller: u32,
    /// Deadline of the store, see [`Limiter::store_deadline`](super::Limiter::store_deadline).
    pub deadline: Option<Instant>,
}

/// Fields of a question on which the fields of its answer depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedFields {
    /// The cost.
    pub cost: u64,
    /// True if the answer has `granted`: if part of the cost may be granted, and if it has `applied`.
    pub granted: bool,
    /// True if the answer tells whether this call was charged.
    pub applied: bool,
    /// True if the answer has headers.
    pub headers: bool,
    /// True if nothing is charged.
    pub peek: bool,
}

impl AskedFields {
    /// Fields of a plain question.
    pub const fn plain(cost: u64) -> Self {
        Self { cost, granted: false, applied: false, headers: false, peek: false }
    }
}

/// Rarely used fields of a question.
#[derive(Debug, Clone, Default)]
pub struct Shaping<'a> {
    /// Takes as much of the cost as there is room for.
    pub at_most: bool,
    /// Reservations only: the longest wait until the call starts.
    pub max_wait: Option<Micros>,
    /// The idempotency id, and the limits to charge under it.
    pub once: Option<Part<'a>>,
    /// An inline limit, instead of a configured strategy.
    pub inline: Option<InlineLimit<'a>>,
    /// Costs by their names, each name once.
    pub costs: Vec<NamedCost<'a>>,
    /// Time for which to hold what is granted, in seconds and nanoseconds as they were sent.
    pub hold_for: Option<(i64, i32)>,
}

/// A cost by its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCost<'a> {
    /// The name.
    pub name: &'a str,
    /// The units to charge.
    pub cost: u64,
    /// The least that may be granted instead of all.
    pub at_least: Option<u64>,
}

/// A limit inside a request.
#[derive(Debug, Clone)]
pub enum InlineLimit<'a> {
    /// The encoded `weir.v1.InlineLimit`, as it arrived.
    Encoded(Cow<'a, [u8]>),
    /// A strategy of one limit.
    Built(Arc<Strategy>),
}

impl<'a> Shaping<'a> {
    /// Shaping under `id`; an empty id is none.
    pub fn under(id: &'a str) -> Self {
        let once = (!id.is_empty()).then_some(Part { limits: LimitSet::ALL, id });
        Self { once, ..Self::default() }
    }
}

impl<'a> Question<'a> {
    /// An empty question with the default cost, from a caller with these rights.
    #[inline(always)] // so that it is made in its place
    pub fn until(deadline: Option<Instant>, rights: Rights<'a>) -> Self {
        Question {
            rights,
            resource: "",
            consumer: "",
            strategy: "",
            cost: DEFAULT_COST,
            peek: false,
            shaping: None,
            attributes: SmallVec::new(),
            headers: false,
            caller: rights.caller(),
            deadline,
        }
    }

    pub(crate) fn named(&self) -> NamedFields<'_> {
        let inline = self.inline().is_some();
        NamedFields { resource: self.resource, consumer: self.consumer, strategy: self.strategy, inline }
    }

    /// The subject, with the routing group of its resource.
    #[inline]
    pub fn subject<'q>(&'q self, group: Option<&'q str>) -> Subject<'q> {
        let attributes = Attributes::of_pairs(&self.attributes);
        Subject { resource: self.resource, consumer: self.consumer, group, attributes }
    }

    /// True for a charge or peek under a configured strategy without an id, as nearly all questions are.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.shaping.is_none()
    }

    #[inline]
    pub(super) fn op(&self) -> Op {
        match self.shaping.as_deref() {
            Some(Shaping { max_wait: Some(max_wait), .. }) => Op::Reserve { max_wait: *max_wait },
            Some(Shaping { at_most: true, .. }) => Op::AtMost,
            _ if self.peek => Op::Peek,
            _ => Op::Charge,
        }
    }

    /// True if it leaves the strategy to the configuration.
    pub(super) fn is_for_default(&self) -> bool {
        self.strategy.is_empty() && self.inline().is_none()
    }

    pub(crate) fn inline(&self) -> Option<&InlineLimit<'_>> {
        self.shaping.as_deref().and_then(|shaping| shaping.inline.as_ref())
    }

    pub(super) fn id(&self) -> &str {
        self.part().map_or("", |part| part.id)
    }

    /// The part under which its charge is remembered.
    #[inline]
    pub(super) fn part(&self) -> Option<&Part<'_>> {
        self.shaping.as_deref().and_then(|shaping| shaping.once.as_ref())
    }

    /// The fields on which its answer depends.
    #[inline]
    pub fn asked(&self) -> AskedFields {
        if self.is_plain() {
            return AskedFields { headers: self.headers, peek: self.peek, ..AskedFields::plain(self.cost) };
        }
        let applied = self.part().is_some();
        let granted = applied || matches!(self.op(), Op::AtMost);
        AskedFields { cost: self.cost, granted, applied, headers: self.headers, peek: self.peek }
    }
}
