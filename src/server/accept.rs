//! Accepts connections and deals them out, each to the worker that has the fewest. Beyond the bound they
//! are accepted and closed: left in the kernel's queue, they would keep their callers waiting.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::TcpListener;

use super::ServerError;
use super::worker::Hand;

/// Waits between tries while accepting fails, doubled up to the second.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// The listening socket, and the workers that its connections go to.
pub(super) struct Acceptor {
    listener: TcpListener,
    hands: Vec<Hand>,
    max_connections: usize,
    refused: Arc<AtomicU64>,
    /// Whether the last connection was refused; only the first of a row is worth a warning.
    full: AtomicBool,
}

impl Acceptor {
    /// Within a runtime.
    pub(super) fn new(
        listener: StdListener,
        hands: Vec<Hand>,
        max_connections: usize,
        refused: Arc<AtomicU64>,
    ) -> Result<Self, ServerError> {
        let failed = |error| ServerError::Io { what: "listening", error };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        Ok(Self { listener, hands, max_connections, refused, full: AtomicBool::new(false) })
    }

    /// Accepts until dropped. No error ends it: what is wrong with one connection is that connection's
    /// end, and what is wrong with the machine (no file descriptors left) passes.
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
        let (stream, peer) = self.listener.accept().await?;
        if self.hands.iter().map(Hand::open).sum::<usize>() >= self.max_connections {
            self.refuse(peer);
            return Ok(());
        }
        self.full.store(false, Relaxed);
        // tonic sets this only on sockets that it accepts itself. Without it every small answer waits
        // for the acknowledgement of the one before: 40 ms.
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        tracing::debug!(%peer, "connection accepted");
        if let Some(hand) = self.hands.iter().min_by_key(|hand| hand.open()) {
            hand.give(stream);
        }
        Ok(())
    }

    /// The connection ends when the caller drops it.
    fn refuse(&self, peer: SocketAddr) {
        self.refused.fetch_add(1, Relaxed);
        if !self.full.swap(true, Relaxed) {
            let most = self.max_connections;
            tracing::warn!(most, %peer, "as many connections as there may be: closing further ones");
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
