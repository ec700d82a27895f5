//! Calls of one question each that have arrived together, and are answered together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;

use super::answer;
use super::dispatch::Dispatch;
use crate::service::Posed;
use crate::store::{Store, TOGETHER};

/// Questions that are to be answered at once, and the streams of their answers. Empty between two turns of
/// the connection.
#[derive(Default)]
pub(super) struct Questions {
    posed: Vec<Posed>,
    /// Of each question; those that are answered are gone.
    streams: Vec<Option<SendResponse<Bytes>>>,
}

impl Questions {
    pub(super) fn push(&mut self, posed: Posed, respond: SendResponse<Bytes>) {
        self.posed.push(posed);
        self.streams.push(Some(respond));
    }

    /// Answers all of them, so many at a time as are worth it.
    pub(super) fn answer<S: Store>(&mut self, services: &Dispatch<S>) {
        for (posed, streams) in self.posed.chunks(TOGETHER).zip(self.streams.chunks_mut(TOGETHER)) {
            let answer = || {
                services.answer_each(posed, |number, answer| {
                    if let Some(mut respond) = streams.get_mut(number).and_then(Option::take) {
                        answer::answer_whole(&mut respond, answer);
                    }
                });
            };
            if catch_unwind(AssertUnwindSafe(answer)).is_err() {
                // A panic is the end of those that have no answer yet, and a log line that the hook has written.
                streams.iter_mut().flatten().for_each(|respond| respond.send_reset(Reason::INTERNAL_ERROR));
            }
        }
        self.posed.clear();
        self.streams.clear();
    }
}
