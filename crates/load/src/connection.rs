//! One HTTP/2 connection to a gRPC server, without a socket: bytes in, bytes and outcomes out.

mod calls;
mod receive;
mod send;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use weir_grpc::frames::FrameFault;

use self::calls::Calls;
use self::receive::Incoming;
use self::send::Outgoing;
use self::stream::LoadStream;
use super::access::ServerAccess;
use super::outcome::{CallOutcome, Failure, LoadCall};
use super::protocol::{ProtocolConnection, is_tls_alert};
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
}

impl ProtocolConnection for LoadConnection {
    fn has_room(&self) -> bool {
        !self.is_closing && self.outgoing.has_room(self.calls.unanswered())
    }

    fn is_over(&self) -> bool {
        (self.is_closing || self.outgoing.is_used_up()) && self.unanswered() == 0
    }

    fn unanswered(&self) -> usize {
        self.calls.unanswered() + self.stream.unanswered()
    }

    fn is_greeted(&self) -> bool {
        self.incoming.is_greeted
    }

    fn foreign(&self, bytes: &[u8]) -> Option<FrameFault> {
        // HTTP/2 begins with a short frame.
        match bytes {
            [0, ..] => None,
            _ if is_tls_alert(bytes) => Some("it expects TLS; write https://HOST:PORT"),
            _ if bytes.starts_with(b"HTTP/1") => Some("it speaks HTTP/1; is that the admin port?"),
            _ => Some("it does not speak HTTP/2"),
        }
    }

    fn call(&mut self, message: &[u8], call: LoadCall) {
        if self.service.mode.is_stream() {
            self.stream.id.get_or_insert_with(|| self.outgoing.open());
            self.stream.push(call);
        } else {
            let stream = self.outgoing.open();
            self.calls.push(stream, call);
        }
        self.outgoing.send(message);
    }

    fn finish(&mut self) {
        if self.stream.id.is_some() {
            self.outgoing.close();
        }
    }

    fn to_write(&self) -> &[u8] {
        self.outgoing.bytes()
    }

    fn written(&mut self, count: usize) {
        self.outgoing.written(count);
    }

    fn receive(&mut self, bytes: &[u8], sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        self.read(bytes, sink)
    }

    fn expire(&mut self, before_ns: u64, sink: &mut dyn FnMut(CallOutcome)) {
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

    fn lose(&mut self, sink: &mut dyn FnMut(CallOutcome)) {
        self.is_closing = true;
        self.calls.take_from(0, |call| sink(CallOutcome { call, result: Err(Failure::Lost) }));
        self.stream.end(&Failure::Lost, sink);
    }
}
