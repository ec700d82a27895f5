//! The other end of a connection, known before its first call.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;

/// The client of a connection.
#[derive(Debug)]
pub struct Peer {
    number: u32,
    address: PeerAddress,
    certificate: Option<Arc<PeerCertificate>>,
    is_disconnected: AtomicBool,
    disconnect: Notify,
}

/// Origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress {
    /// A TCP connection.
    Tcp(SocketAddr),
    /// A Unix socket, with the user id that the kernel names, if it does.
    Unix {
        /// The user id of the process at the other end.
        uid: Option<u32>,
    },
    /// A byte stream without an address: a pipe in memory, or a socket whose client has gone.
    Unknown,
}

/// The verified certificate chain of a client. The connections of one certificate may share it.
#[derive(PartialEq, Eq)]
pub struct PeerCertificate {
    chain: Box<[Box<[u8]>]>,
}

impl Peer {
    /// Creates the peer of a connection without a client certificate.
    #[must_use]
    pub fn new(address: PeerAddress) -> Self {
        Self {
            number: next_number(),
            address,
            certificate: None,
            is_disconnected: AtomicBool::new(false),
            disconnect: Notify::new(),
        }
    }

    /// Adds the certificate of a TLS handshake.
    #[must_use]
    pub fn with_certificate(self, certificate: Arc<PeerCertificate>) -> Self {
        Self { certificate: Some(certificate), ..self }
    }

    /// Returns the number of the connection in this process, from 1 on. It wraps after two thousand million.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns where the connection comes from.
    #[must_use]
    pub fn address(&self) -> PeerAddress {
        self.address
    }

    /// Returns the client's certificate, if it has sent one that was verified.
    #[must_use]
    pub fn certificate(&self) -> Option<&Arc<PeerCertificate>> {
        self.certificate.as_ref()
    }

    /// Asks the server to end the connection: GOAWAY, and a short time for the calls in flight.
    pub fn disconnect(&self) {
        self.is_disconnected.store(true, Ordering::Release);
        self.disconnect.notify_waiters();
    }

    /// True once [`Peer::disconnect`] was called.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.is_disconnected.load(Ordering::Acquire)
    }

    /// Waits for [`Peer::disconnect`].
    pub async fn disconnected(&self) {
        // A waiter is notified from its creation on, so the order of both lines matters.
        let notified = self.disconnect.notified();
        if !self.is_disconnected() {
            notified.await;
        }
    }
}

/// The next number of a connection, below 2^31.
fn next_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let last = LAST.fetch_add(1, Ordering::Relaxed);
    last % (u32::MAX / 2) + 1
}

impl Default for Peer {
    fn default() -> Self {
        Self::new(PeerAddress::Unknown)
    }
}

impl PeerCertificate {
    /// Wraps a verified chain in DER, the client's own certificate first; `None` if it is empty.
    #[must_use]
    pub fn new(chain: impl IntoIterator<Item = impl Into<Box<[u8]>>>) -> Option<Self> {
        let chain: Box<[Box<[u8]>]> = chain.into_iter().map(Into::into).collect();
        (!chain.is_empty()).then_some(Self { chain })
    }

    /// Returns the client's own certificate in DER.
    #[must_use]
    pub fn end_entity(&self) -> &[u8] {
        self.chain.first().map_or(&[], |first| first)
    }

    /// Returns the whole chain in DER, as the client has sent it.
    #[must_use]
    pub fn chain(&self) -> &[Box<[u8]>] {
        &self.chain
    }
}

impl fmt::Debug for PeerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.chain.iter().map(|one| one.len()).collect::<Vec<_>>();
        f.debug_struct("PeerCertificate").field("bytes", &bytes).finish()
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { uid: Some(uid) } => write!(f, "a Unix socket (user {uid})"),
            Self::Unix { uid: None } => f.write_str("a Unix socket"),
            Self::Unknown => f.write_str("an unknown address"),
        }
    }
}
