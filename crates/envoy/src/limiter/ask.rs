//! The question of a request, and its answer.

use std::ops::Range;
use std::time::Instant;

use smallvec::SmallVec;
use weir_node::access::Rights;

use super::{DescriptorStatus, Overall};

/// One request.
#[derive(Debug, Clone)]
pub struct RateLimitAsk<'a> {
    /// The rights of its caller.
    pub rights: Rights<'a>,
    /// Domain whose rules apply.
    pub domain: &'a str,
    /// Descriptors to count.
    pub descriptors: SmallVec<[DescriptorAsk; 2]>,
    /// Keys and values of all descriptors, one descriptor after the other.
    pub entries: SmallVec<[(&'a str, &'a str); 4]>,
    /// Hits of descriptors that have no number of their own; 0 counts as 1.
    pub hits_addend: u32,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
}

/// One descriptor of a request.
#[derive(Debug, Clone, Default)]
pub struct DescriptorAsk {
    /// Place of the descriptor's entries in [`RateLimitAsk::entries`].
    pub entries: Range<usize>,
    /// Limit that overrides the configured one: requests per unit, and the unit's number on the wire.
    pub limit: Option<(u32, i32)>,
    /// Hits of this descriptor alone. They are work already done, so they are charged even above the limit.
    pub hits: Option<u64>,
    /// True if the hits are given back.
    pub refund: bool,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct RateLimitAnswer<'a> {
    /// Over all descriptors.
    pub overall: Overall,
    /// One per descriptor.
    pub statuses: SmallVec<[DescriptorStatus<'a>; 2]>,
}

impl<'a> RateLimitAsk<'a> {
    /// A request that says nothing yet.
    #[inline]
    #[must_use]
    pub fn new(rights: Rights<'a>, deadline: Option<Instant>) -> Self {
        let (descriptors, entries) = (SmallVec::new(), SmallVec::new());
        Self { rights, domain: "", descriptors, entries, hits_addend: 0, deadline }
    }

    /// Keys and values of one of its descriptors.
    #[inline]
    #[must_use]
    pub fn entries_of(&self, descriptor: &DescriptorAsk) -> &[(&'a str, &'a str)] {
        self.entries.get(descriptor.entries.clone()).unwrap_or_default()
    }
}
