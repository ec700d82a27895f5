//! Idempotent decisions.

use super::Decision;
use weir_core::algorithm::Op;
use weir_core::key::Operation;

/// Memory of a decision, and the caller's id of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once<'a> {
    /// A refund: a marker that it was made.
    Marker(&'a str),
    /// Another operation: a record of the answer.
    Record(Operation, &'a str),
}

impl<'a> Decision<'a> {
    /// Returns the memory of the decision; `None` if it may be repeated.
    #[inline]
    pub fn once(&self) -> Option<Once<'a>> {
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
