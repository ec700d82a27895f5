//! The callers of one key that wait for the store. Its calls about a key are made one after the other, each for the callers
//! that came meanwhile and ask the same.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::oneshot;
use weir_time::clock::monotonic;

use crate::StoreError;

/// A question about a key: what is charged, and the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeyQuestion<O, L> {
    pub(super) op: O,
    pub(super) cost: u64,
    pub(super) limit: L,
}

/// A caller that waits for the store's answer.
pub(super) struct KeyWaiter<O, L, V> {
    pub(super) question: KeyQuestion<O, L>,
    deadline: Instant,
    reply: oneshot::Sender<Result<V, StoreError>>,
}

pub(super) type WaitingVerdict<V> = oneshot::Receiver<Result<V, StoreError>>;

/// The callers that wait while a call about their key is on its way.
pub(super) struct KeyLine<O, L, V> {
    is_in_flight: bool,
    waiting: VecDeque<KeyWaiter<O, L, V>>,
}

impl<O, L, V> KeyWaiter<O, L, V> {
    /// A caller that waits until `deadline`, and what it waits for.
    pub(super) fn new(question: KeyQuestion<O, L>, deadline: Instant) -> (Self, WaitingVerdict<V>) {
        let (reply, waiting) = oneshot::channel();
        (Self { question, deadline, reply }, waiting)
    }

    /// Answers the caller, if it still waits.
    pub(super) fn answer(self, answer: Result<V, StoreError>) {
        let _ = self.reply.send(answer);
    }

    fn is_gone(&self, now: Instant) -> bool {
        self.reply.is_closed() || self.deadline <= now
    }
}

impl<O, L, V> Default for KeyLine<O, L, V> {
    fn default() -> Self {
        Self { is_in_flight: false, waiting: VecDeque::new() }
    }
}

impl<O, L, V> KeyLine<O, L, V> {
    /// True while a call is on its way to the store.
    pub(super) fn is_in_flight(&self) -> bool {
        self.is_in_flight
    }

    pub(super) fn depart(&mut self) {
        self.is_in_flight = true;
    }

    /// Lets a caller wait, unless `most` callers do.
    pub(super) fn join(&mut self, waiter: KeyWaiter<O, L, V>, most: usize) -> Result<(), StoreError> {
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

    /// Ends the calls without answers.
    pub(super) fn abandon(&mut self) {
        self.is_in_flight = false;
        self.waiting.clear();
    }
}

impl<O: PartialEq, L: PartialEq, V> KeyLine<O, L, V> {
    /// Takes the callers of the next call: the first that `decide` cannot answer, and those that ask the same `charge`. Those
    /// before it are answered, in their order, and counted. Without such a caller the calls end.
    pub(super) fn next(
        &mut self,
        charge: &O,
        mut decide: impl FnMut(&KeyQuestion<O, L>) -> Option<V>,
    ) -> (Vec<KeyWaiter<O, L, V>>, u64) {
        let (mut callers, mut decided, now) = (Vec::<KeyWaiter<O, L, V>>::new(), 0, monotonic());
        for waiter in std::mem::take(&mut self.waiting) {
            if waiter.is_gone(now) {
                continue;
            }
            match callers.first() {
                Some(first) if first.question == waiter.question && waiter.question.op == *charge => {
                    callers.push(waiter);
                }
                Some(_) => self.waiting.push_back(waiter),
                None => match decide(&waiter.question) {
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
