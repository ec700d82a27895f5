//! A question, as the limiter takes it. Its texts stay where they arrived.

use std::time::Instant;

use smallvec::SmallVec;
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_core::strategy::Attributes;
use weir_store::{LimitSet, Part};
use weir_units::Micros;

use super::inline::InlineLimit;

/// What a call takes when it does not say.
pub const DEFAULT_COST: u64 = 1;

/// May this consumer use this resource now?
#[derive(Debug, Clone)]
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
    /// What few questions ask besides; boxed, because questions are moved about.
    pub shaping: Option<Box<Shaping<'a>>>,
    /// Further facts, by name, each name once; scopes may count by them.
    pub attributes: SmallVec<[(&'a str, &'a str); 2]>,
    /// Whether the answer says what an HTTP client is advised.
    pub headers: bool,
    /// When the store must have answered, see [`Limiter::store_deadline`](super::Limiter::store_deadline).
    pub deadline: Option<Instant>,
}

/// What of a question the fields of its answer depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedFields {
    /// The cost.
    pub cost: u64,
    /// Whether the answer says how much was granted: where only a part may be, and where `applied` is.
    pub granted: bool,
    /// Whether the answer says if this call was charged.
    pub applied: bool,
}

impl AskedFields {
    /// Those of a plain question.
    #[must_use]
    pub const fn plain(cost: u64) -> Self {
        Self { cost, granted: false, applied: false }
    }
}

/// What a question asks beside a charge or a peek.
#[derive(Debug, Clone, Default)]
pub struct Shaping<'a> {
    /// Take as much of the cost as there is room for.
    pub at_most: bool,
    /// Of a reservation: the longest wait until the call starts.
    pub max_wait: Option<Micros>,
    /// The id under which it happens once, if it has one.
    pub once: Option<Part<'a>>,
    /// The limit that it brings along, instead of a configured strategy.
    pub inline: Option<InlineLimit<'a>>,
}

impl<'a> Shaping<'a> {
    /// That of a question under `id`; an empty one is none.
    #[must_use]
    pub fn under(id: &'a str) -> Self {
        let once = (!id.is_empty()).then_some(Part { limits: LimitSet::ALL, id });
        Self { once, ..Self::default() }
    }
}

impl Question<'_> {
    /// A question about nothing yet, of the cost that calls have by default.
    #[inline(always)] // so that it is made in its place
    #[must_use]
    pub fn until(deadline: Option<Instant>) -> Self {
        Question {
            resource: "",
            consumer: "",
            strategy: "",
            cost: DEFAULT_COST,
            peek: false,
            shaping: None,
            attributes: SmallVec::new(),
            headers: false,
            deadline,
        }
    }

    /// Its subject, where the resource is of this routing group.
    #[inline]
    pub(crate) fn subject<'q>(&'q self, group: Option<&'q str>) -> Subject<'q> {
        let attributes = Attributes::of_pairs(&self.attributes);
        Subject { resource: self.resource, consumer: self.consumer, group, attributes }
    }

    /// Whether it is a charge or a peek under a configured strategy and without an id, as nearly all are.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.shaping.is_none()
    }

    /// What is done with its cost.
    #[inline]
    pub(super) fn op(&self) -> Op {
        match self.shaping.as_deref() {
            Some(Shaping { max_wait: Some(max_wait), .. }) => Op::Reserve { max_wait: *max_wait },
            Some(Shaping { at_most: true, .. }) => Op::AtMost,
            _ if self.peek => Op::Peek,
            _ => Op::Charge,
        }
    }

    /// Whether it leaves the strategy to the configuration.
    pub(super) fn is_for_default(&self) -> bool {
        self.strategy.is_empty() && self.inline().is_none()
    }

    /// The limit that it brings along.
    pub(super) fn inline(&self) -> Option<&InlineLimit<'_>> {
        self.shaping.as_deref().and_then(|shaping| shaping.inline.as_ref())
    }

    /// The id; empty if there is none.
    pub(super) fn id(&self) -> &str {
        self.part().map_or("", |part| part.id)
    }

    /// What remembers its charge.
    #[inline]
    pub(super) fn part(&self) -> Option<&Part<'_>> {
        self.shaping.as_deref().and_then(|shaping| shaping.once.as_ref())
    }

    /// What of the question its answer depends on.
    #[inline]
    #[must_use]
    pub fn asked(&self) -> AskedFields {
        if self.is_plain() {
            return AskedFields::plain(self.cost);
        }
        let applied = self.part().is_some();
        let granted = applied || matches!(self.op(), Op::AtMost);
        AskedFields { cost: self.cost, granted, applied }
    }
}
