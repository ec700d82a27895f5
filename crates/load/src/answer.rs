//! Reads the counted fields of answers.

use std::collections::BTreeMap;

use super::fields::{AnswerFields, AnswerValue};
use super::plan::CallMode;

/// The decisions in one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CountedAnswer {
    pub(super) allowed: u32,
    pub(super) denied: u32,
    /// Decisions by a failure policy, allowed or denied.
    pub(super) degraded: u32,
    /// Failed requests of a batch, by gRPC status code. Rarely any.
    pub(super) failed: Option<Box<Failed>>,
}

/// Requests that failed within an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) by_code: BTreeMap<i32, u32>,
    /// Message of the first of them.
    pub(super) message: String,
}

/// `None` if the message is of another kind.
pub(super) fn read(mode: CallMode, message: &[u8]) -> Option<CountedAnswer> {
    let mut answer = CountedAnswer::default();
    let whole = match mode {
        CallMode::Unary => decision(message, &mut answer),
        CallMode::Batch(_) => batch(message, &mut answer),
        // Messages of a stream are no answers to one call, and HTTP has its own.
        CallMode::Stream(_) | CallMode::OtherGet(_) => return None,
        CallMode::Envoy | CallMode::Other(_) => envoy(message, &mut answer),
    };
    whole.then_some(answer)
}

/// A `ShouldAllowResponse`.
fn decision(message: &[u8], answer: &mut CountedAnswer) -> bool {
    const ALLOWED: u64 = 1;
    const DEGRADED: u64 = 10;
    let (mut allowed, mut degraded) = (false, false);
    let mut fields = AnswerFields::new(message);
    for (number, value) in fields.by_ref() {
        match (number, value) {
            (ALLOWED, AnswerValue::Number(value)) => allowed = value != 0,
            (DEGRADED, AnswerValue::Number(value)) => degraded = value != 0,
            _ => {}
        }
    }
    answer.count(allowed);
    answer.degraded += u32::from(degraded);
    fields.is_whole()
}

/// A `ShouldAllowBatchResponse`: results, each a decision or an error.
fn batch(message: &[u8], answer: &mut CountedAnswer) -> bool {
    let mut results = AnswerFields::new(message);
    for (number, value) in results.by_ref() {
        let (1, AnswerValue::Bytes(result)) = (number, value) else { continue };
        let whole = match AnswerFields::new(result).next() {
            Some((1, AnswerValue::Bytes(response))) => decision(response, answer),
            Some((2, AnswerValue::Bytes(error))) => failure(error, answer),
            _ => false,
        };
        if !whole {
            return false;
        }
    }
    results.is_whole()
}

/// The results in a `ShouldAllowStreamResponse`.
pub(super) fn streamed(message: &[u8]) -> impl Iterator<Item = StreamedResult<'_>> {
    AnswerFields::new(message).filter_map(|(number, value)| match (number, value) {
        (1, AnswerValue::Bytes(result)) => Some(StreamedResult(result)),
        _ => None,
    })
}

/// A result of a stream's answer message.
pub(super) struct StreamedResult<'a>(&'a [u8]);

impl StreamedResult<'_> {
    /// Counts it. Returns the id of its question, if it can be read.
    pub(super) fn add_to(&self, answer: &mut CountedAnswer) -> Option<u64> {
        let (mut id, mut whole) = (0, false);
        let mut fields = AnswerFields::new(self.0);
        for (number, value) in fields.by_ref() {
            match (number, value) {
                (1, AnswerValue::Number(number)) => id = number,
                (2, AnswerValue::Bytes(response)) => whole = decision(response, answer),
                (3, AnswerValue::Bytes(error)) => whole = failure(error, answer),
                _ => {}
            }
        }
        (whole && fields.is_whole()).then_some(id)
    }
}

/// An `Error`.
fn failure(error: &[u8], answer: &mut CountedAnswer) -> bool {
    let (mut code, mut message) = (0, String::new());
    let mut fields = AnswerFields::new(error);
    for (number, value) in fields.by_ref() {
        match (number, value) {
            (1, AnswerValue::Number(value)) => code = i32::try_from(value).unwrap_or_default(),
            (2, AnswerValue::Bytes(text)) => message = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    answer.fail(code, message);
    fields.is_whole()
}

/// Envoy's `RateLimitResponse`, and similar messages.
fn envoy(message: &[u8], answer: &mut CountedAnswer) -> bool {
    const OVERALL_CODE: u64 = 1;
    const OK: u64 = 1;
    let mut fields = AnswerFields::new(message);
    let mut allowed = false;
    for (number, value) in fields.by_ref() {
        if number == OVERALL_CODE {
            allowed = value == AnswerValue::Number(OK);
        }
    }
    answer.count(allowed);
    fields.is_whole()
}

impl CountedAnswer {
    /// Counts a request that failed.
    pub(super) fn fail(&mut self, code: i32, message: String) {
        let failed = self.failed.get_or_insert_default();
        *failed.by_code.entry(code).or_default() += 1;
        if failed.message.is_empty() {
            failed.message = message;
        }
    }

    pub(super) fn count(&mut self, allowed: bool) {
        if allowed {
            self.allowed += 1;
        } else {
            self.denied += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use weir_proto::v1::should_allow_result::Result as Either;
    use weir_proto::v1::{Error, ShouldAllowBatchResponse, ShouldAllowResponse, ShouldAllowResult};

    fn response(allowed: bool, degraded: bool) -> ShouldAllowResponse {
        ShouldAllowResponse {
            allowed,
            degraded,
            message: "text".to_owned(),
            ..ShouldAllowResponse::default()
        }
    }

    #[test]
    fn decisions_are_counted() {
        let read =
            |allowed, degraded| read(CallMode::Unary, &response(allowed, degraded).encode_to_vec()).unwrap();
        assert_eq!(read(true, false), CountedAnswer { allowed: 1, ..CountedAnswer::default() });
        assert_eq!(read(false, true), CountedAnswer { denied: 1, degraded: 1, ..CountedAnswer::default() });
    }

    #[test]
    fn so_are_those_of_a_batch_and_what_failed() {
        let error = |message: &str| Either::Error(Error { code: 5, message: message.to_owned() });
        let results = [
            Either::Response(response(true, false)),
            error("no strategy"),
            error("again"),
            Either::Response(response(false, false)),
        ];
        let results = results.map(|result| ShouldAllowResult { result: Some(result) }).to_vec();
        let answer = read(CallMode::Batch(4), &ShouldAllowBatchResponse { results }.encode_to_vec()).unwrap();
        assert_eq!((answer.allowed, answer.denied), (1, 1));
        let failed = answer.failed.unwrap();
        assert_eq!(failed.by_code, BTreeMap::from([(5, 2)]));
        assert_eq!(failed.message, "no strategy");
    }

    #[test]
    fn envoys_codes_are_known() {
        assert_eq!(read(CallMode::Envoy, &[8, 1]).unwrap().allowed, 1);
        assert_eq!(read(CallMode::Envoy, &[8, 2]).unwrap().denied, 1);
        assert_eq!(read(CallMode::Envoy, &[8]), None);
        assert_eq!(read(CallMode::Batch(1), &[0x0a, 1, 0x0a]), None);
    }
}
