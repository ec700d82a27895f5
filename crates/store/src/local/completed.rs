//! The answer of the store, after this node has learned from it or replaced it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::pending::PendingDecision;
use crate::{LaterVerdicts, StoreError, Verdicts};

/// A future of its own rather than an `async` block, which would move the answer once more.
pub(super) struct CompletedAnswer {
    pub(super) later: LaterVerdicts,
    pub(super) pending: PendingDecision,
}

impl Future for CompletedAnswer {
    type Output = Result<Verdicts, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = ready!(self.later.as_mut().poll(context));
        self.pending.after(&mut answer);
        Poll::Ready(answer)
    }
}
