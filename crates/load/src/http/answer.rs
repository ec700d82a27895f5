//! Reads answers of HTTP/1.1, and the decisions in their JSON.

use serde::Deserialize;
use weir_grpc::frames::FrameFault;

use crate::answer::CountedAnswer;
use crate::client::code_number;
use crate::outcome::Failure;
use crate::plan::CallMode;

/// Size limits of an answer.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_BODY: usize = 4 << 20;

const OK: u16 = 200;
const TOO_MANY_REQUESTS: u16 = 429;

/// A whole answer.
#[derive(Debug)]
pub(super) struct AnswerBytes<'a> {
    status: u16,
    /// True if the connection ends with it.
    pub(super) closes: bool,
    body: &'a [u8],
    /// Length of head and body.
    pub(super) length: usize,
}

/// The counted fields of a decision. throttlecrab's has the first field, too.
#[derive(Debug, Deserialize)]
struct JsonDecision {
    allowed: bool,
    #[serde(default)]
    degraded: bool,
}

/// A batch.
#[derive(Debug, Deserialize)]
struct JsonBatch {
    results: Vec<JsonResult>,
}

#[derive(Debug, Deserialize)]
struct JsonResult {
    response: Option<JsonDecision>,
    error: Option<JsonFailed>,
}

#[derive(Debug, Deserialize)]
struct JsonFailed {
    #[serde(default)]
    code: i32,
    #[serde(default)]
    message: String,
}

/// An error in Connect's form.
#[derive(Debug, Deserialize)]
struct ConnectFailure {
    code: String,
    #[serde(default)]
    message: String,
}

impl<'a> AnswerBytes<'a> {
    /// Reads an answer; `None` if it is not complete yet.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Option<Self>, FrameFault> {
        let Some(head_end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else {
            return if bytes.len() > LONGEST_HEAD {
                Err("it sent headers that are too large")
            } else {
                Ok(None)
            };
        };
        let head = std::str::from_utf8(&bytes[..head_end]).map_err(|_| "it sent headers that are no text")?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or("it sent an answer without a status")?;
        let (mut length, mut closes) = (None, first.starts_with("HTTP/1.0"));
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().ok();
            } else if name.eq_ignore_ascii_case("connection") {
                closes |= value.eq_ignore_ascii_case("close");
            }
        }
        let length: usize = length.ok_or("it sent an answer without Content-Length")?;
        if length > LONGEST_BODY {
            return Err("it sent an answer that is too large");
        }
        let begin = head_end + 4;
        let body = bytes.get(begin..begin + length);
        Ok(body.map(|body| Self { status, closes, body, length: begin + length }))
    }

    /// Returns the counted decisions, or the failure.
    pub(super) fn result(&self, mode: CallMode) -> Result<CountedAnswer, Failure> {
        match (mode, self.status) {
            (CallMode::OtherGet(_), OK | TOO_MANY_REQUESTS) => Ok(CountedAnswer {
                allowed: u32::from(self.status == OK),
                denied: u32::from(self.status != OK),
                ..CountedAnswer::default()
            }),
            (CallMode::Batch(_), OK) => {
                let batch: JsonBatch = serde_json::from_slice(self.body).map_err(|_| Failure::Malformed)?;
                batch.results.into_iter().try_fold(CountedAnswer::default(), |mut all, result| {
                    match (result.response, result.error) {
                        (Some(decision), None) => decision.add_to(&mut all),
                        (None, Some(failed)) => all.fail(failed.code, failed.message),
                        _ => return Err(Failure::Malformed),
                    }
                    Ok(all)
                })
            }
            (_, OK) => {
                let decision: JsonDecision =
                    serde_json::from_slice(self.body).map_err(|_| Failure::Malformed)?;
                let mut answer = CountedAnswer::default();
                decision.add_to(&mut answer);
                Ok(answer)
            }
            (_, status) => Err(self.failure(status)),
        }
    }

    fn failure(&self, status: u16) -> Failure {
        let error = serde_json::from_slice::<ConnectFailure>(self.body).ok();
        let known = error.and_then(|error| Some((code_number(&error.code)?, error.message)));
        known.map_or(Failure::Http(status), |(code, message)| Failure::Status(code, message))
    }
}

impl JsonDecision {
    fn add_to(&self, answer: &mut CountedAnswer) {
        answer.count(self.allowed);
        answer.degraded += u32::from(self.degraded);
    }
}
