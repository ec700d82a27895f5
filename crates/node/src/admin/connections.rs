//! The connections of the admin port: a bounded number of them, and each with deadlines.
//!
//! At the bound, a new connection replaces the one that has waited longest for its client. New connections are
//! never refused, because probes and scrapes are new and ask at once. So silent and slow clients keep nobody out.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::yield_now;
use weir_grpc::{BoxedStream, Peer, PeerAddress};
use weir_time::clock::monotonic;

use super::gate::{self, AdminGate};
use super::progress::{ObservedSocket, Progress};
use crate::tls::{ClientCertificate, HandshakeShare, TlsConnection, TlsPort};

/// Interval of the checks for a deadline that has passed.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Delay after a failed accept.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// The open connections.
pub struct AdminConnections {
    most: usize,
    tls: Option<(Arc<TlsPort>, Arc<HandshakeShare>)>,
    gate: Arc<AdminGate>,
    open: Mutex<Vec<Arc<AdminConnection>>>,
}

struct AdminConnection {
    peer: IpAddr,
    progress: Arc<Progress>,
    closed: Notify,
}

impl AdminConnections {
    /// Allows at most `most` connections, half of them from one address.
    pub fn new(most: usize, tls: Option<Arc<TlsPort>>, gate: Arc<AdminGate>) -> Arc<Self> {
        let tls = tls.map(|port| (port, HandshakeShare::new()));
        Arc::new(Self { most, tls, gate, open: Mutex::new(Vec::new()) })
    }

    /// Serves `router` until dropped. Errors of a connection end only that connection.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, router: Router) -> Infallible {
        loop {
            let Ok((socket, peer)) = listener.accept().await else {
                tokio::time::sleep(RETRY_AFTER).await;
                continue;
            };
            let connection = Arc::new(AdminConnection {
                peer: peer.ip().to_canonical(),
                progress: Arc::new(Progress::new(monotonic())),
                closed: Notify::new(),
            });
            self.admit(&connection);
            tokio::spawn(Arc::clone(&self).run(connection, socket, peer, router.clone()));
            // A new connection is read before the next one is accepted: it may be a probe, which the next one would
            // replace.
            yield_now().await;
        }
    }

    /// Adds a connection. At a bound, it replaces the one that has waited longest.
    fn admit(&self, new: &Arc<AdminConnection>) {
        let mut open = self.open.lock();
        let of_peer = open.iter().filter(|one| one.peer == new.peer).count();
        let from_same = of_peer >= (self.most / 2).max(1);
        if from_same || open.len() >= self.most {
            let waiting = open.iter().enumerate().filter(|(_, one)| !from_same || one.peer == new.peer);
            if let Some((place, _)) = waiting.min_by_key(|(_, one)| one.progress.since()) {
                open.swap_remove(place).closed.notify_one();
            }
        }
        open.push(Arc::clone(new));
    }

    async fn run(
        self: Arc<Self>,
        connection: Arc<AdminConnection>,
        socket: TcpStream,
        peer: SocketAddr,
        router: Router,
    ) {
        tokio::select! {
            () = self.served(&connection, socket, peer, router) => {}
            () = connection.closed.notified() => {
                tracing::debug!(peer = %connection.peer, "too many connections to this HTTP port: this one waited longest");
            }
            () = late(&connection.progress) => {
                tracing::debug!(peer = %connection.peer, "a caller of an HTTP port was too slow");
            }
        }
        self.open.lock().retain(|one| !Arc::ptr_eq(one, &connection));
    }

    /// Serves a connection, after its handshake if the port has TLS, for as long as its certificate is valid.
    async fn served(
        &self,
        connection: &AdminConnection,
        socket: TcpStream,
        peer: SocketAddr,
        router: Router,
    ) {
        let address = PeerAddress::Tcp(peer);
        let Some((port, share)) = &self.tls else {
            return self.http(connection, Box::new(socket), Peer::new(address), router).await;
        };
        let Some(TlsConnection { stream, certificate }) =
            port.accept(socket, Some(peer), port.begin(Some(peer)), share).await
        else {
            return;
        };
        match certificate {
            None => self.http(connection, Box::new(stream), Peer::new(address), router).await,
            Some(certificate) => tokio::select! {
                () = self.http(connection, Box::new(stream), peer_with(address, &certificate), router) => {}
                reason = certificate.invalid() => {
                    tracing::debug!(peer = %connection.peer, reason, "a connection to an HTTP port ends");
                }
            },
        }
    }

    /// Serves HTTP over a byte stream. The gate checks each request.
    async fn http(&self, connection: &AdminConnection, stream: BoxedStream, peer: Peer, router: Router) {
        let gate = middleware::from_fn_with_state(self.gate.connected(peer), gate::admit);
        let observed = ObservedSocket { socket: stream, progress: Arc::clone(&connection.progress) };
        let builder = Builder::new(TokioExecutor::new());
        let service = TowerToHyperService::new(router.layer(gate).into_service());
        if let Err(error) = builder.serve_connection(TokioIo::new(observed), service).await {
            tracing::debug!(peer = %connection.peer, %error, "a connection to an HTTP port failed");
        }
    }
}

fn peer_with(address: PeerAddress, certificate: &ClientCertificate) -> Peer {
    Peer::new(address).with_certificate(Arc::clone(certificate.shared()))
}

/// Waits until a deadline has passed.
async fn late(progress: &Progress) {
    while !progress.is_late(monotonic()) {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(peer: &str, since: std::time::Instant) -> Arc<AdminConnection> {
        let progress = Arc::new(Progress::new(since));
        Arc::new(AdminConnection { peer: peer.parse().unwrap(), progress, closed: Notify::new() })
    }

    /// At the bound the connection that has waited longest is closed: one of the same address if that has half of
    /// all.
    #[test]
    fn a_new_connection_takes_the_place_of_the_one_that_waits_longest() {
        let start = monotonic();
        let at = |second| start + Duration::from_secs(second);
        let gate = AdminGate::new(None, &weir_config::ServerConfig::default());
        let connections = AdminConnections::new(4, None, gate);
        let is_open =
            |one: &Arc<AdminConnection>| connections.open.lock().iter().any(|it| Arc::ptr_eq(it, one));
        let (other, first, second) =
            (connection("10.0.0.9", at(0)), connection("10.0.0.1", at(1)), connection("10.0.0.1", at(2)));
        for one in [&other, &first, &second] {
            connections.admit(one);
        }
        let third = connection("10.0.0.1", at(3));
        connections.admit(&third);
        assert!(!is_open(&first) && is_open(&other) && is_open(&second) && is_open(&third));
        let (fourth, fifth) = (connection("10.0.0.2", at(4)), connection("10.0.0.3", at(5)));
        connections.admit(&fourth);
        connections.admit(&fifth);
        assert!(!is_open(&other) && is_open(&second) && is_open(&fourth) && is_open(&fifth));
    }
}
