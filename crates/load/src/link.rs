//! A connection and its socket: connects, and reconnects after a loss.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;

use rustix::event::PollFlags;
use socket2::{SockAddr, Socket, Type};

use super::access::ServerAccess;
use super::connection::LoadConnection;
use super::http::HttpConnection;
use super::outcome::CallOutcome;
use super::plan::CallProtocol;
use super::protocol::ProtocolConnection;
use super::service::CallShape;
use super::socket::LoadSocket;

/// Pause before a lost connection is dialled again.
const REDIAL_NS: u64 = 100_000_000;

/// The server, as a run knows it.
pub(super) struct LoadTarget {
    pub(super) address: SockAddr,
    pub(super) authority: String,
    pub(super) access: ServerAccess,
}

pub(super) struct LoadLink {
    target: Arc<LoadTarget>,
    service: Arc<CallShape>,
    socket: Option<LoadSocket>,
    is_connected: bool,
    /// Time of the loss, or of the last attempt.
    since_ns: u64,
    pub(super) connection: Box<dyn ProtocolConnection>,
}

/// State of a link after it was served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkEvent {
    /// The connection is up.
    Fine,
    /// Lost, with the reason; and whether the server had greeted before.
    Lost { reason: String, was_greeted: bool },
}

impl LoadLink {
    /// A link on a connected socket.
    pub(super) fn new(socket: Socket, target: Arc<LoadTarget>, service: Arc<CallShape>) -> io::Result<Self> {
        prepare(&socket, &target.address)?;
        let connection = target.connection(&service);
        let socket = Some(LoadSocket::new(socket, target.access.tls.as_ref())?);
        Ok(Self { target, service, socket, is_connected: true, since_ns: 0, connection })
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// True if the server has sent nothing for so long.
    pub(super) fn is_silent(&self, now_ns: u64, span_ns: u64) -> bool {
        self.is_connected && !self.connection.is_greeted() && now_ns > self.since_ns + span_ns
    }

    /// The socket to poll, and the events.
    pub(super) fn interest(&self) -> Option<(&Socket, PollFlags)> {
        let socket = self.socket.as_ref()?;
        let has_output = !self.connection.to_write().is_empty() || socket.wants_write();
        let wants_to_write = !self.is_connected || has_output;
        let write = if wants_to_write { PollFlags::OUT } else { PollFlags::empty() };
        Some((socket.inner(), PollFlags::IN | write))
    }

    /// Reconnects if it was lost long enough ago, and leaves a connection that the server is closing.
    pub(super) fn mend(&mut self, now_ns: u64) {
        if self.connection.is_over() && self.socket.take().is_some() {
            self.is_connected = false;
            self.since_ns = now_ns.saturating_sub(REDIAL_NS); // nothing went wrong: dial at once
        }
        if self.socket.is_none() && now_ns >= self.since_ns + REDIAL_NS {
            self.since_ns = now_ns;
            self.connection = self.target.connection(&self.service);
            let tls = self.target.access.tls.as_ref();
            self.socket = dial(&self.target.address).and_then(|socket| LoadSocket::new(socket, tls)).ok();
        }
    }

    /// Writes pending bytes, as far as the socket takes them.
    pub(super) fn flush(&mut self, now_ns: u64, sink: &mut dyn FnMut(CallOutcome)) -> LinkEvent {
        if !self.is_connected {
            return LinkEvent::Fine;
        }
        while let Some(socket) = &mut self.socket {
            let written = match self.connection.to_write() {
                [] if !socket.wants_write() => break,
                [] => socket.flush_tls().map(|()| 0),
                bytes => socket.write(bytes),
            };
            match written {
                Ok(count) => self.connection.written(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return self.lose(error.to_string(), now_ns, sink),
            }
        }
        LinkEvent::Fine
    }

    /// Reads received bytes, by way of `buffer`.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        now_ns: u64,
        sink: &mut dyn FnMut(CallOutcome),
    ) -> LinkEvent {
        let Some(socket) = &mut self.socket else { return LinkEvent::Fine };
        if !self.is_connected {
            match socket.inner().take_error() {
                Ok(None) if socket.inner().peer_addr().is_ok() => self.is_connected = true,
                Ok(None) => return LinkEvent::Fine, // still on its way
                Ok(Some(error)) | Err(error) => return self.lose(error.to_string(), now_ns, sink),
            }
        }
        loop {
            match socket.read(buffer) {
                Ok(0) => return self.lose("it closed the connection".to_owned(), now_ns, sink),
                Ok(count) => {
                    let bytes = &buffer[..count];
                    let received = match self.connection.is_greeted() {
                        false => self.connection.foreign(bytes).map_or(Ok(()), Err),
                        true => Ok(()),
                    };
                    if let Err(reason) = received.and_then(|()| self.connection.receive(bytes, sink)) {
                        return self.lose(reason.to_owned(), now_ns, sink);
                    }
                    if count < buffer.len() {
                        return LinkEvent::Fine;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return LinkEvent::Fine,
                Err(error) => return self.lose(error.to_string(), now_ns, sink),
            }
        }
    }

    fn lose(&mut self, reason: String, now_ns: u64, sink: &mut dyn FnMut(CallOutcome)) -> LinkEvent {
        let was_greeted = self.connection.is_greeted() || !self.is_connected;
        self.connection.lose(sink);
        self.socket = None;
        self.is_connected = false;
        self.since_ns = now_ns;
        LinkEvent::Lost { reason, was_greeted }
    }
}

impl LoadTarget {
    fn connection(&self, service: &Arc<CallShape>) -> Box<dyn ProtocolConnection> {
        let shape = Arc::clone(service);
        match service.protocol {
            CallProtocol::Grpc => Box::new(LoadConnection::new(shape, &self.authority, &self.access)),
            CallProtocol::Http => Box::new(HttpConnection::new(shape, &self.authority, &self.access)),
        }
    }
}

/// Begins a non-blocking connect.
fn dial(address: &SockAddr) -> io::Result<Socket> {
    const EINPROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    prepare(&socket, address)?;
    match socket.connect(address) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

fn prepare(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    if !address.is_unix() {
        socket.set_tcp_nodelay(true)?;
    }
    socket.set_nonblocking(true)
}
