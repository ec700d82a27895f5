//! Handshakes one after the other on several threads, each up to the first bytes of HTTP/2.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, Stream};

use crate::callers::{Caller, Callers, MUTUAL, NAME, TLS};
use crate::served::Served;

/// Threads that connect.
const THREADS: usize = 4;

/// The begin of an HTTP/2 connection: the preface and empty SETTINGS.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A kind of handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handshakes {
    caller: &'static Caller,
    resumes: bool,
}

impl Handshakes {
    pub(crate) const ALL: [Self; 4] = [
        Self { caller: &TLS, resumes: false },
        Self { caller: &TLS, resumes: true },
        Self { caller: &MUTUAL, resumes: false },
        Self { caller: &MUTUAL, resumes: true },
    ];

    pub(crate) const fn caller(&self) -> &'static Caller {
        self.caller
    }

    pub(crate) fn name(&self) -> String {
        format!("{}, {}", self.caller.name, if self.resumes { "with a ticket" } else { "without a ticket" })
    }

    /// Returns handshakes a second, and µs of the server's CPU for each with its connection.
    pub(crate) fn measure(&self, callers: &Callers, served: &Served, span: Duration) -> (f64, f64) {
        let mut config = (*callers.client(self.caller)).clone();
        if !self.resumes {
            config.resumption = Resumption::disabled();
        }
        let config = Arc::new(config);
        let done = AtomicU64::new(0);
        if self.resumes {
            // The first one brings the tickets of the others.
            connect(served.address, &config);
        }
        let (before, begun) = (served.cpu(), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while begun.elapsed() < span {
                        let kind = connect(served.address, &config);
                        let expected =
                            if self.resumes { HandshakeKind::Resumed } else { HandshakeKind::Full };
                        done.fetch_add(u64::from(kind == expected), Relaxed);
                    }
                });
            }
        });
        let (seconds, done) = (begun.elapsed().as_secs_f64(), done.into_inner() as f64);
        (done / seconds, (served.cpu() - before) * 1e6 / done)
    }
}

/// Connects, and reads until the server's SETTINGS and tickets have come.
fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> HandshakeKind {
    let mut tls = ClientConnection::new(Arc::clone(config), ServerName::try_from(NAME).unwrap()).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut stream = Stream::new(&mut tls, &mut socket);
    stream.write_all(PREFACE).unwrap();
    let _ = stream.read(&mut [0; 64]).unwrap();
    tls.handshake_kind().unwrap()
}
