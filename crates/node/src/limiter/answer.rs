//! Answers to questions.

use weir_core::strategy::Strategy;

use super::advice::Advice;
use super::decided::LimitsDecision;
use crate::settle::Outcome;

/// An answer and its strategy. The verdicts of its limits are borrowed.
#[derive(Debug, Clone)]
pub struct Answer<'a, 'l> {
    /// The strategy that applied.
    pub strategy: &'a Strategy,
    /// The outcome: decided by the store, a policy or a list.
    pub outcome: Outcome<LimitsDecision<'l>>,
    /// Advice on the binding limit; `None` unless the question asks for it and limits were asked.
    pub advice: Option<Advice>,
}
