//! `tonic`: a connection that tonic's own server serves, over hyper and h2. It is the reference for `fast`.
//!
//! Each connection has a server of its own, so that each has its own maximum age, and its streams are told when it
//! ends. The limitations of this server are in the table of differences of `crates/grpc/README.md`.

mod counted;
mod front;
mod inflated;
mod open_calls;
mod socket;
mod whole;

use std::future::ready;
use std::io;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::transport::Server;
use weir_config::ServerLimits;
use weir_grpc::{BoxedStream, ConnectionContext, Methods, Peer};
use weir_time::deadlines::Deadlines;

use self::front::{Front, FrontParts};
use self::open_calls::CallBounds;
use self::socket::Socket;
use super::router::Router;
use super::services::AnswerAlone;
use super::stopping::SHUTDOWN_TIMEOUT;
use crate::service::{BatchTurns, Closing};

/// Initial receive windows per stream and per connection: those of `fast`.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// The services of a worker, without the type of its store.
pub(super) struct TonicServices {
    pub(super) methods: Methods,
    pub(super) router: Router,
    pub(super) decisions: Arc<dyn AnswerAlone>,
    pub(super) deadlines: Deadlines,
}

/// Serves one connection until it ends; or, once `over` is ready, until its calls have ended.
///
/// It knows neither the kind of the stream nor that of the store: for each of them hyper, h2 and tonic's server would
/// be compiled again.
pub(super) async fn live(
    stream: BoxedStream,
    peer: &Arc<Peer>,
    services: TonicServices,
    limits: &ServerLimits,
    shared: &ConnectionContext,
    over: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let (close, closing) = watch::channel(());
    let (socket, mut events, _served) = Socket::new(stream, limits.handshake_timeout.into());
    let front = Front::new(FrontParts {
        check: services.methods.connected(peer),
        methods: services.methods,
        router: services.router,
        decisions: services.decisions,
        from: weir_grpc::CurrentPeer::from(&**peer),
        closing: Closing(closing),
        bounds: CallBounds::new(shared),
        deadlines: services.deadlines,
        turns: BatchTurns::default(),
    });
    let shutdown = async {
        tokio::select! {
            biased;
            () = events.ended() => return,
            () = over => {}
        }
        // A connection that was accepted just now may carry a call: its GOAWAY must follow the SETTINGS.
        let _ = timeout(SHUTDOWN_TIMEOUT, events.handshake_done()).await;
        drop(close);
    };
    // The stream of connections never ends: its end would be a shutdown.
    let accepted = stream::once(ready(Ok::<_, io::Error>(socket))).chain(stream::pending());
    server(limits).serve_with_incoming_shutdown(front, accepted, shutdown).await
}

fn server(limits: &ServerLimits) -> Server {
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(limits.max_streams)
        .http2_max_header_list_size(limits.max_header_bytes)
        .http2_max_pending_accept_reset_streams(Some(limits.max_pending_resets))
        .http2_max_local_error_reset_streams(Some(limits.max_local_resets))
        .http2_keepalive_interval(Some(limits.keepalive_interval.into()))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout.into()))
}
