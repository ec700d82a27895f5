//! One HTTP/1.1 connection to the HTTP listener of a server, without a socket: one call after another, with JSON.

mod answer;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::sync::Arc;

use weir_grpc::frames::FrameFault;

use self::answer::AnswerBytes;
use super::access::ServerAccess;
use super::outcome::{CallOutcome, Failure, LoadCall};
use super::plan::CallMode;
use super::protocol::{ProtocolConnection, is_tls_alert};
use super::service::CallShape;

/// An HTTP/1.1 connection.
pub(super) struct HttpConnection {
    service: Arc<CallShape>,
    /// The head of each request, up to what depends on its message.
    head: Vec<u8>,
    /// Bytes to write, from `begin` on.
    out: Vec<u8>,
    begin: usize,
    /// The pending call.
    call: Option<LoadCall>,
    /// Bytes of the answer received so far.
    answer: Vec<u8>,
    has_answered: bool,
    is_closing: bool,
}

impl HttpConnection {
    pub(super) fn new(service: Arc<CallShape>, authority: &str, access: &ServerAccess) -> Self {
        let (method, body) = match service.mode {
            CallMode::OtherGet(_) => ("GET", ""),
            _ => ("POST", "content-type: application/json\r\nconnect-protocol-version: 1\r\n"),
        };
        let token = access.token.as_ref().map(|token| format!("authorization: {}\r\n", token.header()));
        let head = format!(
            "{method} {} HTTP/1.1\r\nhost: {authority}\r\n{body}{}",
            service.path(),
            token.unwrap_or_default()
        );
        Self {
            service,
            head: head.into_bytes(),
            out: Vec::new(),
            begin: 0,
            call: None,
            answer: Vec::new(),
            has_answered: false,
            is_closing: false,
        }
    }

    fn end(&mut self, failure: Failure, sink: &mut dyn FnMut(CallOutcome)) {
        // A late answer would be taken for that of the next call.
        self.is_closing = true;
        if let Some(call) = self.call.take() {
            sink(CallOutcome { call, result: Err(failure) });
        }
    }
}

impl ProtocolConnection for HttpConnection {
    fn has_room(&self) -> bool {
        !self.is_closing && self.call.is_none()
    }

    fn is_over(&self) -> bool {
        self.is_closing && self.call.is_none()
    }

    fn unanswered(&self) -> usize {
        usize::from(self.call.is_some())
    }

    fn is_greeted(&self) -> bool {
        self.has_answered || self.call.is_none()
    }

    fn foreign(&self, bytes: &[u8]) -> Option<FrameFault> {
        const BEGINNING: &[u8] = b"HTTP/1.";
        match bytes {
            _ if is_tls_alert(bytes) => Some("it expects TLS; write https://HOST:PORT"),
            _ if bytes.iter().zip(BEGINNING).all(|(one, other)| one == other) => None,
            _ => Some("it does not speak HTTP/1; is that the port of `http.listen`?"),
        }
    }

    fn call(&mut self, message: &[u8], call: LoadCall) {
        self.call = Some(call);
        self.out.extend_from_slice(&self.head);
        if let CallMode::OtherGet(_) = self.service.mode {
            self.out.extend_from_slice(message);
            self.out.extend_from_slice(b"\r\n");
        } else {
            // Writing to memory cannot fail.
            let _ = write!(self.out, "content-length: {}\r\n\r\n", message.len());
            self.out.extend_from_slice(message);
        }
    }

    fn finish(&mut self) {}

    fn to_write(&self) -> &[u8] {
        &self.out[self.begin..]
    }

    fn written(&mut self, count: usize) {
        self.begin += count;
        if self.begin >= self.out.len() {
            self.out.clear();
            self.begin = 0;
        }
    }

    fn receive(&mut self, bytes: &[u8], sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        if self.call.is_none() {
            return Err("it sent an answer to no call");
        }
        self.answer.extend_from_slice(bytes);
        let Some(answer) = AnswerBytes::read(&self.answer)? else { return Ok(()) };
        self.has_answered = true;
        self.is_closing |= answer.closes;
        let result = answer.result(self.service.mode);
        let length = answer.length;
        if let Some(call) = self.call.take() {
            sink(CallOutcome { call, result });
        }
        if length < self.answer.len() {
            return Err("it sent more than one answer to a call");
        }
        self.answer.clear();
        Ok(())
    }

    fn expire(&mut self, before_ns: u64, sink: &mut dyn FnMut(CallOutcome)) {
        if self.call.is_some_and(|call| call.sent_ns < before_ns) {
            self.end(Failure::Timeout, sink);
        }
    }

    fn lose(&mut self, sink: &mut dyn FnMut(CallOutcome)) {
        self.end(Failure::Lost, sink);
    }
}
