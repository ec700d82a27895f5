//! The callers that wait for one script call, and the effect of its result on the connection.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::fault::{Fault, READ_ONLY, speaks_of_node};
use crate::StoreError;

/// The channel for the answer to one request, or for its fault.
pub(super) type WaitingCaller<T> = oneshot::Sender<Result<T, Fault>>;

/// A node's answers to the requests of one call, in their order. Each may have an error of its own.
pub(super) type Replies<T> = SmallVec<[Result<T, StoreError>; 1]>;

/// The callers of one script call, in the order of its requests. A single one needs no allocation.
pub(super) struct Callers<T>(SmallVec<[WaitingCaller<T>; 1]>);

/// Evidence of a call about its node and its connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// The failure, if it speaks of the node.
    pub(super) failure: Option<Arc<str>>,
    /// True if this process did not run when the call fell due: nothing is known of the node.
    pub(super) is_stalled: bool,
    pub(super) closes: bool,
}

impl<T> Callers<T> {
    pub(super) fn new(caller: WaitingCaller<T>) -> Self {
        Self(SmallVec::from_buf([caller]))
    }

    pub(super) fn append(&mut self, others: &mut Self) {
        append(&mut self.0, &mut others.0);
    }

    pub(super) fn are_gone(&self) -> bool {
        self.0.iter().all(oneshot::Sender::is_closed)
    }

    /// Sends every caller its answer, or the error if the whole reply is unusable. `spans`: the call had keys of
    /// several slots.
    pub(super) fn answer(self, replies: Result<Replies<T>, StoreError>, spans: bool) -> Fate {
        let replies = match replies {
            Ok(replies) => replies,
            Err(error) => {
                self.fail(&Fault::Failed(error));
                return Fate { closes: true, ..Fate::default() };
            }
        };
        let mut fate = Fate::default();
        for (caller, reply) in self.0.into_iter().zip(replies) {
            if let Err(StoreError::Refused(why)) = &reply
                && speaks_of_node(why)
            {
                let (closes, failure) = (why.starts_with(READ_ONLY), Some(why.as_ref().into()));
                fate = Fate { closes, failure, is_stalled: false };
            }
            let fault = if spans { Fault::within } else { Fault::Failed };
            let _ = caller.send(reply.map_err(fault));
        }
        fate
    }

    /// Sends every caller the same fault.
    pub(super) fn fail(self, fault: &Fault) {
        for caller in self.0 {
            let _ = caller.send(Err(fault.clone()));
        }
    }
}

/// Appends all of `others` to `all`. Usually that is one element, and a push is cheaper.
pub(super) fn append<T>(all: &mut SmallVec<[T; 1]>, others: &mut SmallVec<[T; 1]>) {
    if others.len() > 1 {
        all.append(others);
    } else if let Some(one) = others.pop() {
        all.push(one);
    }
}
