//! The callers that wait for one script call.

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::call::{Fate, is_read_only};
use super::fault::Fault;
use crate::StoreError;

/// Where the answers of a script call go, in the order of its requests.
pub(super) struct Replies<T>(SmallVec<[oneshot::Sender<Result<T, Fault>>; 1]>);

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> Replies<T> {
    pub(super) fn push(&mut self, reply: oneshot::Sender<Result<T, Fault>>) {
        self.0.push(reply);
    }

    /// Gives every caller its answer; where nothing of the node's reply can be used, the reason. `spans`: the call had
    /// keys of several slots.
    pub(super) fn answer(self, answers: Result<Vec<Result<T, StoreError>>, StoreError>, spans: bool) -> Fate {
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                self.fail(&Fault::Failed(error));
                return Fate::Broken;
            }
        };
        let mut fate = Fate::Answered;
        for (reply, answer) in self.0.into_iter().zip(answers) {
            if answer.as_ref().is_err_and(is_read_only) {
                fate = Fate::Broken;
            }
            let fault = if spans { Fault::within } else { Fault::Failed };
            let _ = reply.send(answer.map_err(fault));
        }
        fate
    }

    /// Gives every caller the same fault.
    pub(super) fn fail(self, fault: &Fault) {
        for reply in self.0 {
            let _ = reply.send(Err(fault.clone()));
        }
    }
}
