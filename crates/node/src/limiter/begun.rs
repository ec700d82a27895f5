//! The result of a question's first step: an answer, or a pending one.

use super::answer::Answer;
use super::decided::LimiterError;
use super::waiting::Waiting;

/// Result of a question's first step.
pub enum Begun<'a, 'l> {
    /// Answered at once.
    Answered(Result<Answer<'a, 'l>, LimiterError>),
    /// Pending in the store.
    Waiting(Waiting),
}
