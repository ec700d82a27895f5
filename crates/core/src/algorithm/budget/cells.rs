//! The states of one decision: those of limits, the parts of holds, and the records of its id.

use super::{CallRecord, HeldParts, HoldRecord};
use crate::algorithm::Cells;

/// Access to what a decision with holds reads and writes.
pub trait BudgetCells: Cells {
    /// The parts of limit `index`.
    fn parts(&self, index: usize) -> Option<&HeldParts>;

    /// Stores the parts of limit `index`; without any, removes them. They last until their last end.
    fn put_parts(&mut self, index: usize, parts: HeldParts);

    /// A digest of the key of limit `index`, of 52 bits.
    fn key(&self, index: usize) -> u64;

    /// A random number of 52 bits.
    fn mark(&mut self) -> u64;

    /// The record of the hold of this id.
    fn hold(&self) -> Option<&HoldRecord>;

    /// Stores the record of a hold. It must not be evicted before its time.
    fn put_hold(&mut self, record: HoldRecord) -> Result<(), Self::Full>;

    /// The record of the call of this id.
    fn call(&self) -> Option<&CallRecord>;

    /// Stores the record of a call. It must not be evicted before its time.
    fn put_call(&mut self, record: CallRecord) -> Result<(), Self::Full>;
}
