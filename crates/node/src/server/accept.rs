//! The acceptor: it gives each connection to the worker with the fewest. Connections beyond the bound are accepted
//! and closed: in the kernel's backlog they would keep their clients waiting.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with, acceptfrom_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::ServerError;
use super::listener::{Accepted, ConnectedPeer, Listener};
use super::open_files::OpenFiles;
use super::worker::Hand;
use crate::tls::TlsPort;

/// Exponential backoff while accepting fails: doubled from the first delay up to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// Flags of accepted sockets, set by the call that accepts them.
const ACCEPTED: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// The listening socket, and the workers that its connections go to.
pub(super) struct Acceptor {
    listener: AsyncFd<Listener>,
    dealer: Dealer,
}

/// Distributes connections over the workers.
struct Dealer {
    hands: Vec<Hand>,
    max_connections: usize,
    files: OpenFiles,
    refused: Arc<AtomicU64>,
    tls: Option<Arc<TlsPort>>,
    /// True if the last connection was refused.
    full: AtomicBool,
}

impl Acceptor {
    /// Creates an acceptor. Must be called within a runtime.
    pub(super) fn new(
        listener: Listener,
        hands: Vec<Hand>,
        max_connections: usize,
        files: OpenFiles,
        refused: Arc<AtomicU64>,
        tls: Option<Arc<TlsPort>>,
    ) -> Result<Self, ServerError> {
        let failed = |error| ServerError::Io { what: "listening", error };
        let listener = registered(listener).map_err(failed)?;
        let dealer = Dealer { hands, max_connections, files, refused, tls, full: AtomicBool::new(false) };
        Ok(Self { listener, dealer })
    }

    /// Accepts until dropped. No error ends it: errors of a connection end only that connection, and errors of the
    /// machine (no file descriptors left) pass.
    pub(super) async fn run(&self) -> Infallible {
        let mut backoff = FIRST_BACKOFF;
        loop {
            match self.accept().await {
                Ok(()) => backoff = FIRST_BACKOFF,
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "connection closed before it was accepted");
                }
                Err(error) => {
                    tracing::warn!(%error, retry_ms = backoff.as_millis() as u64, "cannot accept connections");
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<()> {
        loop {
            let mut ready = self.listener.readable().await?;
            // Sockets are accepted without the runtime, which would register each one here and then again at its worker.
            if let Ok(accepted) = ready.try_io(|listener| accept(listener.get_ref())) {
                let (stream, peer) = accepted?;
                return self.dealer.deal(stream, &peer);
            }
        }
    }

    /// Closes the listener after its backlog is distributed: clients in it may have sent calls already, and the
    /// kernel would reset these connections. The file of a Unix socket is removed first, so that no client connects
    /// meanwhile.
    pub(super) fn close(self) {
        let Self { listener, dealer } = self;
        let closed = match listener.into_inner() {
            Listener::Tcp(listener) => deal_waiting(&dealer, || accept_tcp(&listener)),
            Listener::Unix(listener, file) => {
                drop(file);
                deal_waiting(&dealer, || accept_unix(&listener))
            }
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "cannot accept the remaining connections; closing them");
        }
    }
}

// The successor of this constructor is unsafe, because its file descriptor may be closed meanwhile. That of a listener we own
// cannot be.
#[allow(deprecated)]
fn registered(listener: Listener) -> io::Result<AsyncFd<Listener>> {
    listener.prepare()?;
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Distributes connections from `accept` until none is waiting.
fn deal_waiting(
    dealer: &Dealer,
    accept: impl Fn() -> io::Result<(Accepted, ConnectedPeer)>,
) -> io::Result<()> {
    loop {
        match accept().and_then(|(stream, peer)| dealer.deal(stream, &peer)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if !concerns_one_connection(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
}

fn accept(listener: &Listener) -> io::Result<(Accepted, ConnectedPeer)> {
    match listener {
        Listener::Tcp(listener) => accept_tcp(listener),
        Listener::Unix(listener, _) => accept_unix(listener),
    }
}

fn accept_tcp(listener: &TcpListener) -> io::Result<(Accepted, ConnectedPeer)> {
    let (socket, peer) = acceptfrom_with(listener, ACCEPTED)?;
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
    Ok((Accepted::Tcp(socket.into(), None), ConnectedPeer(peer)))
}

fn accept_unix(listener: &UnixListener) -> io::Result<(Accepted, ConnectedPeer)> {
    Ok((Accepted::Unix(accept_with(listener, ACCEPTED)?.into()), ConnectedPeer(None)))
}

impl Dealer {
    /// Gives a connection to the worker with the fewest, unless the bound of connections or of files is reached.
    fn deal(&self, mut stream: Accepted, peer: &ConnectedPeer) -> io::Result<()> {
        if self.hands.iter().map(Hand::open).sum::<usize>() >= self.max_connections {
            let most = self.max_connections;
            let why = "as many connections as there may be: closing further ones";
            self.refuse(|| tracing::warn!(most, %peer, "{why}"));
            return Ok(());
        }
        if !self.files.has_place_for(&stream) {
            let files = &self.files;
            let why = "as many open files as clients may use: closing further connections";
            self.refuse(|| tracing::warn!(%files, %peer, "{why}"));
            return Ok(());
        }
        self.full.store(false, Relaxed);
        if let Accepted::Tcp(_, slot) = &mut stream {
            *slot = self.tls.as_ref().map(|tls| tls.begin(peer.0));
        }
        tracing::debug!(%peer, "connection accepted");
        if let Some(hand) = self.hands.iter().min_by_key(|hand| hand.open()) {
            hand.give(stream);
        }
        Ok(())
    }

    /// Counts a refused connection, which ends when the caller drops it. Only the first of a row is logged as a
    /// warning.
    fn refuse(&self, warn: impl FnOnce()) {
        self.refused.fetch_add(1, Relaxed);
        if !self.full.swap(true, Relaxed) {
            warn();
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, InvalidInput, NotConnected,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | InvalidInput | NotConnected
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn an_accepted_socket_sends_at_once_and_does_not_block() {
        let listener = Listener::Tcp(TcpListener::bind("127.0.0.1:0").unwrap());
        listener.prepare().unwrap();
        let Listener::Tcp(socket) = &listener else { unreachable!() };
        let client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let (Accepted::Tcp(accepted, _), peer) = accept(&listener).unwrap() else { unreachable!() };
        assert_eq!(peer.0, client.local_addr().ok());
        assert!(accepted.nodelay().unwrap());
        let waited = std::io::Read::read(&mut &accepted, &mut [0]).unwrap_err();
        assert_eq!(waited.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(accept(&listener).err().unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
