//! A faulty network: a TCP proxy on loopback between a client and a server.

mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use self::pump::Pump;

/// The fault that the proxy injects into its connections, old and new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyMode {
    /// Forwards everything.
    Pass,
    /// Keeps everything back, and delivers it when the mode is [`ProxyMode::Pass`] again: a network hiccup.
    Stall,
    /// Forwards everything, but delays the server's data by this time. The delays overlap, so throughput is not
    /// affected.
    LateReplies(Duration),
    /// Silently drops all data. A connection that has lost data is closed when the mode changes, because its stream is
    /// incomplete.
    BlackHole,
    /// Closes all connections, and new ones as soon as they are accepted.
    Drop,
}

/// A proxy in front of one server. Ends, with its connections, on drop.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<SharedProxy>,
}

#[derive(Debug)]
struct SharedProxy {
    upstream: SocketAddr,
    /// None when the proxy is gone.
    mode: Mutex<Option<ProxyMode>>,
    connections: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

impl Proxy {
    /// Starts a proxy, on a port of its own, that passes everything to this loopback port.
    pub fn start(upstream_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on loopback");
        let addr = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(SharedProxy {
            upstream: SocketAddr::from((Ipv4Addr::LOCALHOST, upstream_port)),
            mode: Mutex::new(Some(ProxyMode::Pass)),
            connections: AtomicU64::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
        });
        let acceptor = Arc::clone(&shared);
        thread::spawn(move || acceptor.accept_all(&listener));
        Self { addr, shared }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// The address as Redis clients take it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// Changes the mode, with immediate effect on new data. [`ProxyMode::Drop`] takes a few milliseconds to close open
    /// connections.
    pub fn set_mode(&self, mode: ProxyMode) {
        *self.shared.mode.lock() = Some(mode);
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes forwarded to the server.
    pub fn bytes_up(&self) -> u64 {
        self.shared.bytes_up.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes forwarded to the client.
    pub fn bytes_down(&self) -> u64 {
        self.shared.bytes_down.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *self.shared.mode.lock() = None;
        let _ = TcpStream::connect(self.addr); // wakes the acceptor up
    }
}

impl SharedProxy {
    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.mode.lock().is_none() {
                return;
            }
            self.connections.fetch_add(1, Ordering::Relaxed);
            // If the server is down, the connection is closed. The client sees that.
            let _ = client.and_then(|client| self.serve(client));
        }
    }

    fn serve(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        if matches!(*self.mode.lock(), Some(ProxyMode::Drop) | None) {
            return Ok(());
        }
        let server = TcpStream::connect(self.upstream)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(pump::TICK))?;
        }
        let (up, down) = (Arc::clone(self), Arc::clone(self));
        let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || Pump::of_calls(&client, &server, &up).run());
        thread::spawn(move || Pump::of_replies(&server_too, &client_too, &down).run());
        Ok(())
    }
}
