//! Calls of one question each that have arrived together, and are answered together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::session::Session;
use super::work::Works;
use crate::server::dispatch::Dispatch;
use crate::service::Posed;
use crate::store::{Store, TOGETHER};

/// Questions that may be answered at once, and the streams of their answers. Empty between two turns of the
/// connection.
#[derive(Default)]
pub(super) struct Questions {
    posed: Vec<Posed>,
    /// Of each question; those that are answered are gone.
    streams: Vec<Option<u32>>,
}

impl Questions {
    pub(super) fn push(&mut self, posed: Posed, stream: u32) {
        self.posed.push(posed);
        self.streams.push(Some(stream));
    }

    /// Answers all of them, so many at a time as are worth it. Those that must be waited for go to `works`.
    pub(super) fn answer<S: Store>(&mut self, services: &Dispatch<S>, session: &mut Session, works: &Works) {
        for (posed, streams) in self.posed.chunks_mut(TOGETHER).zip(self.streams.chunks_mut(TOGETHER)) {
            let answer = || {
                services.answer_each(posed, |number, answer| {
                    let Some(stream) = streams.get_mut(number).and_then(Option::take) else { return };
                    match answer {
                        Ok(message) => session.answer_message(stream, message),
                        Err(status) => session.answer(stream, Err(status)),
                    }
                })
            };
            match catch_unwind(AssertUnwindSafe(answer)) {
                Ok(unanswered) => {
                    for number in unanswered {
                        if let (Some(posed), Some(Some(stream))) =
                            (posed.get_mut(number), streams.get(number))
                        {
                            works.call(*stream, services.wait(posed));
                        }
                    }
                }
                // A panic is the end of those that have no answer yet, and a log line that the hook has written.
                Err(_) => streams.iter_mut().flatten().for_each(|stream| session.failed(*stream)),
            }
        }
        self.posed.clear();
        self.streams.clear();
    }
}
