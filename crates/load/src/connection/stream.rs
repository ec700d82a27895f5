//! The stream of a connection on which questions are answered in order.

use std::collections::VecDeque;

use super::{CallOutcome, Failure, LoadCall};
use crate::answer::{CountedAnswer, streamed};
use weir_grpc::frames::FrameFault;

const PREFIX: usize = 5;
const LONGEST_MESSAGE: usize = 4 << 20;

/// A stream whose requests are calls. A call ends when all its questions have answers, however the server splits these
/// into messages.
#[derive(Debug, Default)]
pub(super) struct LoadStream {
    /// `None` while none is open.
    pub(super) id: Option<u32>,
    row: VecDeque<LoadCall>,
    /// The answer so far to the first call in the row.
    answer: CountedAnswer,
    answered: usize,
    /// An incomplete message.
    begun: Vec<u8>,
}

impl LoadStream {
    pub(super) fn unanswered(&self) -> usize {
        self.row.len()
    }

    pub(super) fn push(&mut self, call: LoadCall) {
        self.row.push_back(call);
    }

    /// True if the oldest pending call was made before this time.
    pub(super) fn is_older(&self, before_ns: u64) -> bool {
        self.row.front().is_some_and(|call| call.sent_ns < before_ns)
    }

    /// Processes a piece of the server's messages.
    pub(super) fn receive(
        &mut self,
        content: &[u8],
        questions: usize,
        sink: &mut dyn FnMut(CallOutcome),
    ) -> Result<(), FrameFault> {
        if self.begun.is_empty() {
            let taken = self.messages(content, questions, sink)?;
            self.begun.extend_from_slice(&content[taken..]);
        } else {
            let mut joined = std::mem::take(&mut self.begun);
            joined.extend_from_slice(content);
            let taken = self.messages(&joined, questions, sink)?;
            joined.drain(..taken);
            self.begun = joined;
        }
        Ok(())
    }

    /// Processes all complete messages. Returns their length.
    fn messages(
        &mut self,
        bytes: &[u8],
        questions: usize,
        sink: &mut dyn FnMut(CallOutcome),
    ) -> Result<usize, FrameFault> {
        let mut taken = 0;
        while let Some(prefix) = bytes[taken..].first_chunk::<PREFIX>() {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            if length > LONGEST_MESSAGE {
                return Err("it sent a message that is too large");
            }
            let Some(message) = bytes.get(taken + PREFIX..taken + PREFIX + length) else { break };
            self.message(message, questions, sink)?;
            taken += PREFIX + length;
        }
        Ok(taken)
    }

    fn message(
        &mut self,
        message: &[u8],
        questions: usize,
        sink: &mut dyn FnMut(CallOutcome),
    ) -> Result<(), FrameFault> {
        for result in streamed(message) {
            let expected = self.answered as u64;
            if self.row.is_empty() || result.add_to(&mut self.answer) != Some(expected) {
                return Err("it answered a question that was not next");
            }
            self.answered += 1;
            if self.answered == questions
                && let Some(call) = self.row.pop_front()
            {
                self.answered = 0;
                sink(CallOutcome { call, result: Ok(std::mem::take(&mut self.answer)) });
            }
        }
        Ok(())
    }

    /// Fails all pending calls, because the stream ended.
    pub(super) fn end(&mut self, failure: &Failure, sink: &mut dyn FnMut(CallOutcome)) {
        for call in std::mem::take(self).row {
            sink(CallOutcome { call, result: Err(failure.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use weir_proto::v1::streamed_result::Result as Either;
    use weir_proto::v1::{Error, ShouldAllowResponse, ShouldAllowStreamResponse, StreamedResult};

    fn allowed(id: u64) -> StreamedResult {
        let response = ShouldAllowResponse { allowed: true, ..ShouldAllowResponse::default() };
        StreamedResult { id, result: Some(Either::Response(response)) }
    }

    fn message(results: Vec<StreamedResult>) -> Vec<u8> {
        let message = ShouldAllowStreamResponse { results }.encode_to_vec();
        [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
    }

    fn stream(calls: u64) -> LoadStream {
        let mut stream = LoadStream { id: Some(1), ..LoadStream::default() };
        for number in 0..calls {
            stream.push(LoadCall { due_ns: number, ..LoadCall::default() });
        }
        stream
    }

    fn receive(stream: &mut LoadStream, bytes: &[u8]) -> Result<Vec<(u64, u32)>, FrameFault> {
        let mut ended = Vec::new();
        let mut sink = |it: CallOutcome| ended.push((it.call.due_ns, it.result.unwrap().allowed));
        stream.receive(bytes, 3, &mut sink)?;
        Ok(ended)
    }

    #[test]
    fn answers_are_told_apart_wherever_they_are_cut() {
        let error = Either::Error(Error { code: 5, message: "no".to_owned() });
        let failed = StreamedResult { id: 2, result: Some(error) };
        let bytes = [
            message(vec![allowed(0)]),
            message(vec![allowed(1), failed, allowed(0)]),
            message(vec![allowed(1), allowed(2)]),
        ]
        .concat();
        for at in 0..=bytes.len() {
            let mut stream = stream(3);
            let mut ended = receive(&mut stream, &bytes[..at]).unwrap();
            ended.extend(receive(&mut stream, &bytes[at..]).unwrap());
            assert_eq!((ended, stream.unanswered()), (vec![(0, 2), (1, 3)], 1));
        }
    }

    #[test]
    fn answers_to_no_question_are_refused() {
        assert!(receive(&mut stream(1), &message(vec![allowed(1)])).is_err());
        assert!(receive(&mut stream(0), &message(vec![allowed(0)])).is_err());
        assert!(receive(&mut stream(1), &[0, 0xff, 0, 0, 0]).is_err());
    }

    #[test]
    fn with_the_stream_all_answers_are_gone() {
        let (mut stream, mut count) = (stream(2), 0);
        receive(&mut stream, &message(vec![allowed(0)])).unwrap();
        stream.end(&Failure::Lost, &mut |it| {
            assert_eq!(it.result, Err(Failure::Lost));
            count += 1;
        });
        assert_eq!((count, stream.unanswered(), stream.id), (2, 0, None));
    }
}
