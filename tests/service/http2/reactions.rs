//! What a server may do about what it is sent. The names say which of it is accepted.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::PROTOCOL_ERROR;
use super::requests::call;
use super::session::Session;
use crate::support::frames::ping;

/// Tries every row, and reports all that fail.
#[track_caller]
pub(super) fn each<T>(rows: impl IntoIterator<Item = T>, check: impl Fn(T)) {
    let message_of = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => format!("{:?}", panic.downcast_ref::<&str>()),
    };
    let fails = |row| catch_unwind(AssertUnwindSafe(|| check(row))).err().map(message_of);
    let failed: Vec<String> = rows.into_iter().filter_map(fails).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

impl Session {
    /// Sends a fault; the connection ends with one of these codes, and says so.
    #[track_caller]
    pub(super) fn ends_connection(&mut self, what: &str, fault: &[u8], codes: &[u32]) {
        let before = self.pongs.len();
        // In one piece: a PING that is answered is proof of a connection that goes on.
        self.try_send(&[fault, &ping(*b"go on?!!")].concat());
        let lives = self.until("the end of a connection", |it| it.pongs.len() > before);
        assert!(!lives, "{what}: the connection lives on");
        self.has_ended(what, codes);
    }

    /// Sends a fault of a stream; either it or the connection ends with one of these codes.
    #[track_caller]
    pub(super) fn ends_stream_or_connection(&mut self, what: &str, stream: u32, fault: &[u8], codes: &[u32]) {
        self.try_send(fault);
        if !self.until(what, |it| it.seen(stream).reset.is_some()) {
            return self.has_ended(what, codes);
        }
        let reset = self.seen(stream).reset;
        assert!(reset.is_some_and(|code| codes.contains(&code)), "{what}: {reset:?}");
    }

    /// Sends a frame for stream 1, which is closed. The stream or the connection ends with one of these codes, or the
    /// server ignores the frame (RFC 9113, 5.1: it may have dropped the state of closed streams).
    #[track_caller]
    pub(super) fn ends_connection_or_ignores_closed_stream(
        &mut self,
        what: &str,
        fault: &[u8],
        codes: &[u32],
    ) {
        let before = self.pongs.len();
        self.try_send(&[fault, &ping(*b"go on?!!")].concat());
        if !self.until(what, |it| it.pongs.len() > before) {
            return self.has_ended(what, codes);
        }
        let reset = self.seen(1).reset;
        assert!(reset.is_none_or(|code| codes.contains(&code)), "{what}: {reset:?}");
        self.does_not_mind(3, &[]);
    }

    /// Sends a malformed request on a stream; it is reset for that or refused with a status of HTTP's, and the
    /// connection lives: stream `stream + 2` is answered.
    #[track_caller]
    pub(super) fn refuses_request_only(&mut self, what: &str, stream: u32, request: &[u8]) {
        self.try_send(request);
        let is_over = |it: &mut Self| it.seen(stream).reset.is_some() || it.seen(stream).ended;
        assert!(self.until(what, is_over), "{what}: the connection ended: {:?}", self.goaways);
        let answer = self.seen(stream);
        if answer.reset != Some(PROTOCOL_ERROR) {
            let status = answer.of(&answer.head, ":status");
            assert!(status.starts_with('4'), "{what}: {answer:?}");
        }
        self.send(&call(stream + 2));
        self.ended(stream + 2).allows();
    }

    /// Sends bytes that must not matter: stream `stream` is still answered.
    #[track_caller]
    pub(super) fn does_not_mind(&mut self, stream: u32, bytes: &[u8]) {
        self.send(bytes);
        self.send(&call(stream));
        self.ended(stream).allows();
    }

    /// The connection is closed, after a GOAWAY with one of these codes.
    #[track_caller]
    pub(super) fn has_ended(&mut self, what: &str, codes: &[u32]) {
        self.until(what, |it| it.closed);
        let goaway = self.goaways.last();
        assert!(goaway.is_some_and(|(_, code)| codes.contains(code)), "{what}: {goaway:?}");
    }
}
