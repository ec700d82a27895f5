//! The callers that wait for one script call, and how the call ended for its connection.

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::fault::Fault;
use crate::StoreError;

/// Receives the answer to one request, or why there is none.
pub(super) type WaitingCaller<T> = oneshot::Sender<Result<T, Fault>>;

/// A node's answers to the requests of one call, in their order: to each its own, or why it alone failed.
pub(super) type Replies<T> = SmallVec<[Result<T, StoreError>; 1]>;

/// The callers of one script call, in the order of its requests. A single one needs no allocation.
pub(super) struct Callers<T>(SmallVec<[WaitingCaller<T>; 1]>);

/// How a call ended, as far as its connection is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The node answered.
    Answered,
    /// No answer in time.
    Silent,
    /// The connection is of no use any more.
    Broken,
}

impl<T> Callers<T> {
    pub(super) fn of(caller: WaitingCaller<T>) -> Self {
        Self(SmallVec::from_buf([caller]))
    }

    pub(super) fn append(&mut self, others: &mut Self) {
        append(&mut self.0, &mut others.0);
    }

    /// Whether all of them have given up.
    pub(super) fn are_gone(&self) -> bool {
        self.0.iter().all(oneshot::Sender::is_closed)
    }

    /// Gives every caller its answer; if nothing of the node's reply can be used, the reason. `spans`: the call had
    /// keys of several slots.
    pub(super) fn answer(self, replies: Result<Replies<T>, StoreError>, spans: bool) -> Fate {
        let replies = match replies {
            Ok(replies) => replies,
            Err(error) => {
                self.fail(&Fault::Failed(error));
                return Fate::Broken;
            }
        };
        let mut fate = Fate::Answered;
        for (caller, reply) in self.0.into_iter().zip(replies) {
            if reply.as_ref().is_err_and(is_read_only) {
                fate = Fate::Broken;
            }
            let fault = if spans { Fault::within } else { Fault::Failed };
            let _ = caller.send(reply.map_err(fault));
        }
        fate
    }

    /// Gives every caller the same fault.
    pub(super) fn fail(self, fault: &Fault) -> Fate {
        for caller in self.0 {
            let _ = caller.send(Err(fault.clone()));
        }
        if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered }
    }
}

/// Moves all of `others` behind `all`. Mostly that is one, which costs less to push.
pub(super) fn append<T>(all: &mut SmallVec<[T; 1]>, others: &mut SmallVec<[T; 1]>) {
    if others.len() > 1 {
        all.append(others);
    } else if let Some(one) = others.pop() {
        all.push(one);
    }
}

/// Whether the node is no master any more.
fn is_read_only(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(why) if why.starts_with("READONLY"))
}
