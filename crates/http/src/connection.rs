//! The connections of the listener: their requests one after another, their ages, and their end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::{sleep, sleep_until};
use weir_grpc::{BufferBudget, CurrentPeer};
use weir_node::feature::{CallsCheck, FeatureWork, PortConnection, ServePort};
use weir_time::clock::monotonic;

use crate::metrics::HttpMetrics;
use crate::pace::{ConnectionPace, PaceStep, PacedStream, STEP_TIMEOUT};
use crate::routes::{RequestContext, Routes};
use crate::settings::HttpSettings;

/// The most bytes and the most fields of the headers of a request.
const MAX_HEADER_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 100;

/// Memory of a connection in bytes, beside a body: the buffers of its headers and of its answer.
const CONNECTION_BYTES: usize = 12 << 10;

/// The port on one worker.
pub(crate) struct HttpPort {
    routes: Arc<Routes>,
    settings: HttpSettings,
    metrics: HttpMetrics,
    budget: BufferBudget,
    /// True while the node drains.
    draining: Arc<AtomicBool>,
    turn: AtomicU32,
}

/// Counts an open connection until it is dropped.
struct OpenHttpConnection(HttpMetrics);

impl Drop for OpenHttpConnection {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl HttpPort {
    pub(crate) fn new(
        routes: Routes,
        settings: HttpSettings,
        metrics: HttpMetrics,
        budget: BufferBudget,
    ) -> Self {
        let (routes, draining) = (Arc::new(routes), Arc::default());
        Self { routes, settings, metrics, budget, draining, turn: AtomicU32::new(0) }
    }

    /// Ends each connection with its next answer while the flag is set.
    pub(crate) fn ending_if(self, draining: Arc<AtomicBool>) -> Self {
        Self { draining, ..self }
    }

    /// Returns the age of the next connection: eight to twelve tenths of the configured one, so that clients that
    /// connected together do not reconnect together.
    fn age(&self) -> Duration {
        const GOLDEN: u32 = 0x9e37_79b9;
        let turn = self.turn.fetch_add(GOLDEN, Relaxed);
        let age = self.settings.max_connection_age;
        age * 8 / 10 + (age * 2 / 5).mul_f64(f64::from(turn) / f64::from(u32::MAX))
    }
}

impl ServePort for HttpPort {
    fn serve(&self, connection: PortConnection) -> FeatureWork {
        let Some(held) = self.budget.hold(CONNECTION_BYTES) else {
            self.metrics.refused("budget");
            self.metrics.log_refused("budget", connection.peer.address());
            return Box::pin(async {});
        };
        let (routes, metrics) = (Arc::clone(&self.routes), self.metrics.clone());
        let draining = Arc::clone(&self.draining);
        let (age, pace) = (self.age(), ConnectionPace::new(self.settings.idle_timeout));
        metrics.opened();
        let (counted, peer) = (OpenHttpConnection(metrics.clone()), connection.peer.address());
        Box::pin(async move {
            let _kept = (held, counted);
            if let Err(reason) = serve(connection, (routes, draining), &pace, age).await {
                metrics.refused(reason);
                if reason != "idle" {
                    metrics.log_refused(reason, peer);
                }
            }
        })
    }
}

/// Serves a connection until it ends; or returns why its client was too slow.
async fn serve(
    connection: PortConnection,
    (routes, draining): (Arc<Routes>, Arc<AtomicBool>),
    pace: &Arc<ConnectionPace>,
    age: Duration,
) -> Result<(), &'static str> {
    let PortConnection { stream, peer, over } = connection;
    let (from, address) = (CurrentPeer::from(&*peer), peer.address());
    let check = Arc::new(CallsCheck::new(routes.calls(), &peer));
    let service = service_fn(|request| {
        let (routes, check, pace) = (Arc::clone(&routes), Arc::clone(&check), Arc::clone(pace));
        let draining = Arc::clone(&draining);
        pace.set(PaceStep::Answer);
        from.polls(async move {
            let context = RequestContext { check: &check, peer: address, pace: &pace };
            let mut answer = routes.answer(request, &context).await;
            if draining.load(Relaxed) {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            pace.set(PaceStep::Written(monotonic()));
            Ok::<_, Infallible>(answer)
        })
    });
    let io = TokioIo::new(PacedStream::new(stream, Arc::clone(pace)));
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).max_header_size(MAX_HEADER_BYTES).max_headers(MAX_HEADERS);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut ends = pin!(async move {
        tokio::select! {
            () = over => {}
            () = sleep(age) => {}
        }
    });
    let mut look = pin!(sleep(STEP_TIMEOUT));
    let mut last = None;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(peer = %peer.address(), %error, "HTTP connection closed with an error");
                }
                return Ok(());
            }
            () = &mut ends, if last.is_none() => {
                connection.as_mut().graceful_shutdown();
                last = Some(monotonic() + STEP_TIMEOUT);
            }
            () = until(last) => return Ok(()),
            () = look.as_mut() => {
                let next = pace.check(monotonic()).inspect_err(|reason| {
                    tracing::debug!(peer = %peer.address(), reason, "HTTP connection closed; it was too slow");
                })?;
                look.as_mut().reset(next.into());
            }
        }
    }
}

async fn until(end: Option<std::time::Instant>) {
    match end {
        Some(end) => sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
