//! The callers of one key that wait for the store. Its calls about a key are made one after the other, each for the callers
//! that came meanwhile and ask the same.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::oneshot;
use weir_core::approximate::CountOp;
use weir_time::clock::monotonic;

use super::verdict::CountVerdict;
use crate::StoreError;

/// A question about a key: what is charged, and the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CountQuestion {
    pub(super) op: CountOp,
    pub(super) cost: u64,
    pub(super) limit: u64,
}

/// A caller that waits for the store's answer.
pub(super) struct CountWaiter {
    pub(super) question: CountQuestion,
    deadline: Instant,
    reply: oneshot::Sender<Result<CountVerdict, StoreError>>,
}

pub(super) type WaitingVerdict = oneshot::Receiver<Result<CountVerdict, StoreError>>;

/// The callers that wait while a call about their key is on its way.
#[derive(Default)]
pub(super) struct KeyLine {
    pub(super) is_in_flight: bool,
    waiting: VecDeque<CountWaiter>,
}

impl CountWaiter {
    /// A caller that waits until `deadline`, and what it waits for.
    pub(super) fn new(question: CountQuestion, deadline: Instant) -> (Self, WaitingVerdict) {
        let (reply, waiting) = oneshot::channel();
        (Self { question, deadline, reply }, waiting)
    }

    /// Answers the caller, if it still waits.
    pub(super) fn answer(self, answer: Result<CountVerdict, StoreError>) {
        let _ = self.reply.send(answer);
    }

    fn is_gone(&self, now: Instant) -> bool {
        self.reply.is_closed() || self.deadline <= now
    }
}

impl KeyLine {
    /// Lets a caller wait, unless `most` callers do.
    pub(super) fn join(&mut self, waiter: CountWaiter, most: usize) -> Result<(), StoreError> {
        if self.waiting.len() >= most {
            return Err(StoreError::Overloaded(most));
        }
        self.waiting.push_back(waiter);
        Ok(())
    }

    /// Ends the calls. Those who wait would wait for the same failure.
    pub(super) fn fail(&mut self, error: &StoreError) {
        self.is_in_flight = false;
        self.waiting.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
    }

    /// Takes the callers of the next call: the first that `decide` cannot answer, and those that ask for the same charge. Those
    /// before it are answered, in their order, and counted. Without such a caller the calls end.
    pub(super) fn next(
        &mut self,
        mut decide: impl FnMut(CountQuestion) -> Option<CountVerdict>,
    ) -> (Vec<CountWaiter>, u64) {
        let (mut callers, mut decided, now) = (Vec::<CountWaiter>::new(), 0, monotonic());
        for waiter in std::mem::take(&mut self.waiting) {
            if waiter.is_gone(now) {
                continue;
            }
            match callers.first() {
                Some(first) if first.question == waiter.question && waiter.question.op == CountOp::Charge => {
                    callers.push(waiter);
                }
                Some(_) => self.waiting.push_back(waiter),
                None => match decide(waiter.question) {
                    Some(verdict) => {
                        decided += 1;
                        waiter.answer(Ok(verdict));
                    }
                    None => callers.push(waiter),
                },
            }
        }
        self.is_in_flight = !callers.is_empty();
        (callers, decided)
    }
}
