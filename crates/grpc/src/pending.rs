//! Batches: unary calls that have arrived together and are answered together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::in_flight::InFlightCalls;
use crate::service::{BATCH, HotService, PendingCall};
use crate::session::Session;

/// The calls of a batch, and their streams. Empty between two turns of the connection.
#[derive(Default)]
pub(crate) struct PendingBatch {
    calls: Vec<PendingCall>,
    /// The stream of each call; `None` once it is answered.
    streams: Vec<Option<u32>>,
}

impl PendingBatch {
    #[inline]
    pub(crate) fn push(&mut self, call: PendingCall, stream: u32) {
        self.calls.push(call);
        self.streams.push(Some(stream));
    }

    /// Answers the calls, [`BATCH`] at a time. Those whose answers are not ready go to `in_flight`.
    pub(crate) fn answer<H: HotService>(
        &mut self,
        service: &H,
        session: &mut Session,
        in_flight: &InFlightCalls,
    ) {
        for (calls, streams) in self.calls.chunks(BATCH).zip(self.streams.chunks_mut(BATCH)) {
            let answer = || {
                service.answer_each(calls, |place, answer| {
                    let Some(stream) = streams.get_mut(place).and_then(Option::take) else { return };
                    match answer {
                        Ok(message) => session.answer_message(stream, message),
                        Err(status) => session.answer(stream, Err(status)),
                    }
                })
            };
            match catch_unwind(AssertUnwindSafe(answer)) {
                Ok(unanswered) => {
                    for (place, call) in unanswered {
                        if let Some(Some(stream)) = streams.get(place) {
                            in_flight.call(*stream, call);
                        }
                    }
                }
                // A panic ends the calls that have no answer yet; the panic hook has written a log line.
                Err(_) => streams.iter_mut().flatten().for_each(|stream| session.failed(*stream)),
            }
        }
        self.calls.clear();
        self.streams.clear();
    }
}
