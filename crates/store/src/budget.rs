//! Questions over limits with costs of their own.

use std::sync::Arc;
use std::time::Instant;

use weir_core::algorithm::budget::{Ask, CostedLimits, SettledCosts};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;

use super::LimitSet;

/// An operation on limits with costs of their own.
#[derive(Debug, Clone, Copy)]
pub enum BudgetOp<'a> {
    /// A charge, a peek or a hold.
    Ask(&'a Ask),
    /// A settlement.
    Settle(&'a SettledCosts),
    /// A debit.
    Debit(&'a SettledCosts),
    /// Gives units back to these limits.
    Refund(u64, LimitSet),
    /// Empties these limits.
    Reset(LimitSet),
}

/// One operation on the limits of one strategy for one subject.
#[derive(Debug, Clone, Copy)]
pub struct BudgetDecision<'a> {
    /// The strategy.
    pub strategy: &'a Arc<Strategy>,
    /// Limits with their costs.
    pub costed: &'a Arc<CostedLimits>,
    /// The subject whose state is used.
    pub subject: Subject<'a>,
    /// The operation.
    pub op: BudgetOp<'a>,
    /// The id under which it happens once; empty: it happens each time. A hold and a settlement have one.
    pub id: &'a str,
    /// Deadline of the answer.
    pub deadline: Option<Instant>,
    /// A number of the caller.
    pub caller: u32,
}
