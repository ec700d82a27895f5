//! The acceptor: it gives each connection to the worker with the fewest. Connections beyond the bound are accepted
//! and closed: in the kernel's backlog they would keep their clients waiting.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};

use super::ServerError;
use super::listener::{Accepted, ConnectedPeer, Listener, SocketFile};
use super::open_files::OpenFiles;
use super::worker::Hand;
use crate::tls::TlsPort;

/// Exponential backoff while accepting fails: doubled from the first delay up to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// The listening socket, and the workers that its connections go to.
pub(super) struct Acceptor {
    listener: AcceptingListener,
    dealer: Dealer,
}

/// A listening socket registered with the runtime.
enum AcceptingListener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// Distributes connections over the workers.
struct Dealer {
    hands: Vec<Hand>,
    max_connections: usize,
    files: OpenFiles,
    refused: Arc<AtomicU64>,
    /// TLS of TCP connections.
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
        let listener = AcceptingListener::on_runtime(listener).map_err(failed)?;
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
                    tracing::debug!(%error, "a connection ended before it was accepted");
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
        let (stream, peer) = match &self.listener {
            AcceptingListener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                (Accepted::Tcp(stream.into_std()?, None), ConnectedPeer(Some(peer)))
            }
            AcceptingListener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                (Accepted::Unix(stream.into_std()?), ConnectedPeer(None))
            }
        };
        self.dealer.deal(stream, &peer)
    }

    /// Closes the listener after its backlog is distributed: clients in it may have sent calls already, and the
    /// kernel would reset these connections. The file of a Unix socket is removed first, so that no client connects
    /// meanwhile.
    pub(super) fn close(self) {
        let Self { listener, dealer } = self;
        let closed = match listener {
            AcceptingListener::Tcp(listener) => listener.into_std().and_then(|listener| {
                deal_waiting(&dealer, || {
                    let (stream, peer) = listener.accept()?;
                    // Unlike sockets that the runtime accepts, it is not non-blocking by itself.
                    stream.set_nonblocking(true)?;
                    Ok((Accepted::Tcp(stream, None), ConnectedPeer(Some(peer))))
                })
            }),
            AcceptingListener::Unix(listener, file) => listener.into_std().and_then(|listener| {
                drop(file);
                deal_waiting(&dealer, || {
                    let (stream, _) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok((Accepted::Unix(stream), ConnectedPeer(None)))
                })
            }),
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "connections that waited to be accepted are closed");
        }
    }
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

impl AcceptingListener {
    /// Registers the listener. Must be called within a runtime.
    fn on_runtime(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Self::Tcp(TcpListener::from_std(listener)?)
            }
            Listener::Unix(listener, file) => {
                listener.set_nonblocking(true)?;
                Self::Unix(UnixListener::from_std(listener)?, file)
            }
        })
    }
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
        // Nagle's algorithm would hold each small response until the one before is acknowledged: 40 ms.
        if let Accepted::Tcp(stream, slot) = &mut stream {
            stream.set_nodelay(true)?;
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
