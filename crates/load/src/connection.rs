//! One HTTP/2 connection to a gRPC server, without a socket: bytes in, bytes and outcomes out.

mod calls;
mod outcome;
mod receive;
mod send;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::calls::Calls;
pub(super) use self::outcome::{CallOutcome, Failure, LoadCall};
use self::receive::Incoming;
use self::send::Outgoing;
use self::stream::LoadStream;
use super::access::ServerAccess;
use super::request::RequestBlock;
use super::service::CallShape;

pub(super) struct LoadConnection {
    service: Arc<CallShape>,
    calls: Calls,
    stream: LoadStream,
    incoming: Incoming,
    outgoing: Outgoing,
    /// True if the server takes no further calls here.
    is_closing: bool,
}

impl LoadConnection {
    pub(super) fn new(service: Arc<CallShape>, authority: &str, access: &ServerAccess) -> Self {
        let block = RequestBlock::new(authority, service.path(), access);
        let outgoing = Outgoing::new(block, service.mode.is_stream());
        Self {
            service,
            calls: Calls::default(),
            stream: LoadStream::default(),
            incoming: Incoming::new(),
            outgoing,
            is_closing: false,
        }
    }

    /// True if a call can be made now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_closing && self.outgoing.has_room(self.calls.unanswered())
    }

    /// True if no call can ever be made again, and none is pending.
    pub(super) fn is_over(&self) -> bool {
        (self.is_closing || self.outgoing.is_used_up()) && self.unanswered() == 0
    }

    /// Number of pending calls.
    pub(super) fn unanswered(&self) -> usize {
        self.calls.unanswered() + self.stream.unanswered()
    }

    /// True if the server has sent valid HTTP/2.
    pub(super) fn is_greeted(&self) -> bool {
        self.incoming.is_greeted
    }

    /// Sends a call with this message, its prefix included. There must be room.
    pub(super) fn call(&mut self, message: &[u8], call: LoadCall) {
        if self.service.mode.is_stream() {
            self.stream.id.get_or_insert_with(|| self.outgoing.open());
            self.stream.push(call);
        } else {
            let stream = self.outgoing.open();
            self.calls.push(stream, call);
        }
        self.outgoing.send(message);
    }

    /// Ends the sending side: no further call is made.
    pub(super) fn finish(&mut self) {
        if self.stream.id.is_some() {
            self.outgoing.close();
        }
    }

    /// Bytes to write to the socket; [`LoadConnection::written`] removes them.
    pub(super) fn to_write(&self) -> &[u8] {
        self.outgoing.bytes()
    }

    /// Removes so many written bytes.
    pub(super) fn written(&mut self, count: usize) {
        self.outgoing.written(count);
    }

    /// Fails the calls that were made before this time.
    pub(super) fn expire(&mut self, before_ns: u64, sink: &mut dyn FnMut(CallOutcome)) {
        while let Some((stream, call)) = self.calls.take_older(before_ns) {
            self.outgoing.cancel(stream);
            self.incoming.forget(stream);
            sink(CallOutcome { call, result: Err(Failure::Timeout) });
        }
        // A late answer on a stream delays all that follow.
        if let Some(stream) = self.stream.id.filter(|_| self.stream.is_older(before_ns)) {
            self.outgoing.cancel(stream);
            self.stream.end(&Failure::Timeout, sink);
        }
    }

    /// Fails all calls, because the socket is closed.
    pub(super) fn lose(&mut self, sink: &mut dyn FnMut(CallOutcome)) {
        self.is_closing = true;
        self.calls.take_from(0, |call| sink(CallOutcome { call, result: Err(Failure::Lost) }));
        self.stream.end(&Failure::Lost, sink);
    }
}
