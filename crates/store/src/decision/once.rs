//! Decisions that happen only once.

use super::Decision;
use weir_core::algorithm::Op;
use weir_core::key::Operation;

/// What remembers that something has happened, and the caller's id of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Once<'a> {
    /// A refund: that it has happened.
    Marker(&'a str),
    /// Another operation: what was decided.
    Record(Operation, &'a str),
}

impl<'a> Decision<'a> {
    /// What remembers that it has happened, if it may happen only once.
    #[inline]
    pub(crate) fn once(&self) -> Option<Once<'a>> {
        let id = self.part.map_or("", |part| part.id);
        if id.is_empty() {
            return None;
        }
        match self.op {
            Op::Refund => Some(Once::Marker(id)),
            Op::Charge | Op::AtMost => Some(Once::Record(Operation::Charge, id)),
            Op::Force => Some(Once::Record(Operation::Debit, id)),
            Op::Reserve { .. } | Op::Cancel => Some(Once::Record(Operation::Reserve, id)),
            Op::Peek | Op::Reset | Op::Count { .. } => None,
        }
    }
}
