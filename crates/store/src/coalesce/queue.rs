//! The callers that wait for the next call for the same keys, in the order of their arrival.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::cost::{self, CALL_COST};
use crate::{OwnedSubject, StoreError, Verdicts, no_verdict};
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_core::strategy::Strategy;

/// Costs per call. Their cost for the store is bounded, too.
const MAX_COSTS: u64 = 512;

pub(super) struct Waiter {
    /// The strategy or an override of it, which has other numbers for the same keys.
    pub(super) strategy: Arc<Strategy>,
    pub(super) op: Op,
    pub(super) cost: u64,
    pub(super) deadline: Instant,
    pub(super) caller: u32,
    pub(super) reply: oneshot::Sender<Result<Verdicts, StoreError>>,
}

impl Waiter {
    fn most_of_a_call(&self) -> u64 {
        let each = cost::of(self.strategy.algorithms().iter(), self.op);
        (CALL_COST / each.max(1)).clamp(1, MAX_COSTS)
    }

    /// True if the operation and the strategy are the same.
    fn is_like(&self, other: &Self) -> bool {
        self.op == other.op && Arc::ptr_eq(&self.strategy, &other.strategy)
    }
}

/// The callers that wait for the same keys.
#[derive(Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    /// Subject of the keys. Set by the first caller that waits, because most calls have none.
    subject: Option<OwnedSubject>,
}

/// The first waiting callers, decided together; at least one.
pub(super) struct Together {
    strategy: Arc<Strategy>,
    op: Op,
    waiters: Vec<Waiter>,
}

impl Queue {
    pub(super) fn push(&mut self, waiter: Waiter, subject: &Subject<'_>) {
        self.waiters.push_back(waiter);
        self.subject.get_or_insert_with(|| OwnedSubject::new(subject));
    }

    /// Takes the subject of the keys, if anybody waits.
    pub(super) fn take_subject(&mut self) -> Option<OwnedSubject> {
        self.subject.take()
    }

    /// Takes the next callers that share an operation and a strategy. Callers that gave up or are out of time are
    /// dropped.
    pub(super) fn next(&mut self, now: Instant) -> Option<Together> {
        let mut together: Vec<Waiter> = Vec::new();
        let mut most = 1;
        while (together.len() as u64) < most
            && let Some(waiter) = self.waiters.pop_front()
        {
            if together.first().is_some_and(|first| !first.is_like(&waiter)) {
                self.waiters.push_front(waiter);
                break;
            }
            if waiter.deadline <= now {
                let _ = waiter.reply.send(Err(StoreError::Timeout));
            } else if !waiter.reply.is_closed() {
                if together.is_empty() {
                    most = waiter.most_of_a_call();
                }
                together.push(waiter);
            }
        }
        let first = together.first()?;
        let (strategy, op) = (Arc::clone(&first.strategy), first.op);
        Some(Together { strategy, op, waiters: together })
    }
}

impl Together {
    pub(super) fn strategy(&self) -> &Arc<Strategy> {
        &self.strategy
    }

    pub(super) fn caller(&self) -> u32 {
        self.waiters.first().map_or(0, |first| first.caller)
    }

    pub(super) fn op(&self) -> Op {
        self.op
    }

    pub(super) fn costs(&self) -> SmallVec<[u64; 8]> {
        self.waiters.iter().map(|waiter| waiter.cost).collect()
    }

    /// The latest of their deadlines. Each caller also keeps its own.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.deadline).max()
    }

    /// Sends each caller its own answer.
    pub(super) fn answer(self, result: Result<Verdicts, StoreError>) {
        for (index, waiter) in self.waiters.into_iter().enumerate() {
            let own = result.as_ref().map_err(Clone::clone).and_then(|all| {
                let (verdict, limits) = all.get(index).ok_or_else(no_verdict)?;
                Ok(Verdicts { decisions: [*verdict].into(), limits: limits.into(), ..Verdicts::default() })
            });
            let _ = waiter.reply.send(own);
        }
    }
}

/// Keys are hashes already.
pub(super) type ByKey = BuildHasherDefault<Hashed>;

#[derive(Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.0 = chunk.iter().fold(self.0, |all, &byte| all.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
