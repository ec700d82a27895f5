//! The callers that wait for one script call, and the effect of its result on the connection.

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::fault::Fault;
use crate::StoreError;

/// The channel for the answer to one request, or for its fault.
pub(super) type WaitingCaller<T> = oneshot::Sender<Result<T, Fault>>;

/// A node's answers to the requests of one call, in their order. Each may have an error of its own.
pub(super) type Replies<T> = SmallVec<[Result<T, StoreError>; 1]>;

/// The callers of one script call, in the order of its requests. A single one needs no allocation.
pub(super) struct Callers<T>(SmallVec<[WaitingCaller<T>; 1]>);

/// The result of a call, for the health of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The node answered.
    Answered,
    /// The call timed out.
    Silent,
    /// The connection must be closed.
    Broken,
}

impl<T> Callers<T> {
    pub(super) fn of(caller: WaitingCaller<T>) -> Self {
        Self(SmallVec::from_buf([caller]))
    }

    pub(super) fn append(&mut self, others: &mut Self) {
        append(&mut self.0, &mut others.0);
    }

    /// True if all callers have dropped their receivers.
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

    /// Sends every caller the same fault.
    pub(super) fn fail(self, fault: &Fault) -> Fate {
        for caller in self.0 {
            let _ = caller.send(Err(fault.clone()));
        }
        if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered }
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

/// True if the node is no longer a master.
fn is_read_only(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(why) if why.starts_with("READONLY"))
}
