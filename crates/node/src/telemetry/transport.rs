//! Events of connections: counters, and a log line for each kind of event, at most one in ten seconds; of floods one a
//! minute, which names the peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use weir_grpc::{ConnectionEvent, ConnectionObserver, ErrorCode, StreamBound};

use weir_time::clock::monotonic;

/// Between two log lines of one kind.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Interval of the log lines about floods, which name a peer.
const LOG_FLOODS_EVERY: Duration = Duration::from_secs(60);

const STREAM_REFUSALS: &str = "weir_stream_refusals_total";

/// Every code that a GOAWAY of ours may have, and its name in RFC 9113.
const CODES: [(ErrorCode, &str); 9] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::Protocol, "PROTOCOL_ERROR"),
    (ErrorCode::Internal, "INTERNAL_ERROR"),
    (ErrorCode::FlowControl, "FLOW_CONTROL_ERROR"),
    (ErrorCode::StreamClosed, "STREAM_CLOSED"),
    (ErrorCode::FrameSize, "FRAME_SIZE_ERROR"),
    (ErrorCode::RefusedStream, "REFUSED_STREAM"),
    (ErrorCode::Compression, "COMPRESSION_ERROR"),
    (ErrorCode::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
];

/// Counts the events of all connections.
pub struct TransportMetrics {
    goaways: Vec<IntCounter>,
    protocol_errors: Counted,
    floods: Counted,
    resets_in_flight: Counted,
    budget_refusals: Counted,
    message_timeouts: Counted,
    side_refusals: Counted,
    open_refusals: Counted,
    aged: Counted,
}

/// A counter, and when its last log line was written.
pub(super) struct Counted {
    name: &'static str,
    pub(super) count: IntCounter,
    logged: Mutex<Option<Instant>>,
    unlogged: AtomicU64,
}

impl TransportMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Arc<Self>, prometheus::Error> {
        let goaways = Opts::new("weir_goaways_total", "GOAWAY frames that were sent, by error code.");
        let goaways = IntCounterVec::new(goaways, &["code"])?;
        registry.register(Box::new(goaways.clone()))?;
        let counted = |name: &'static str, help: &str| {
            let count = IntCounter::new(name, help)?;
            registry.register(Box::new(count.clone()))?;
            Ok::<_, prometheus::Error>(Counted::new(name, count))
        };
        let refusals =
            Opts::new(STREAM_REFUSALS, "Streams that were refused, by the bound that was reached.");
        let refusals = IntCounterVec::new(refusals, &["bound"])?;
        registry.register(Box::new(refusals.clone()))?;
        let refused =
            |bound: StreamBound| Counted::new(STREAM_REFUSALS, refusals.with_label_values(&[bound.name()]));
        Ok(Arc::new(Self {
            goaways: CODES.iter().map(|(_, name)| goaways.with_label_values(&[name])).collect(),
            protocol_errors: counted(
                "weir_protocol_errors_total",
                "Connections that ended because the client broke the protocol.",
            )?,
            floods: counted("weir_floods_total", "Connections that ended because the client flooded them.")?,
            resets_in_flight: counted(
                "weir_resets_in_flight_total",
                "Calls in flight that their clients have reset.",
            )?,
            budget_refusals: counted(
                "weir_buffer_refusals_total",
                "Calls that ended because max_buffered_bytes was reached.",
            )?,
            message_timeouts: counted(
                "weir_message_timeouts_total",
                "Calls that ended because a message did not arrive in time.",
            )?,
            side_refusals: refused(StreamBound::Side),
            open_refusals: refused(StreamBound::Open),
            aged: counted("weir_connections_aged_total", "Connections that ended because of their age.")?,
        }))
    }

    /// A connection has reached its age.
    pub(crate) fn aged(&self) {
        self.aged.add("connections end because of their age; their clients connect again");
    }

    /// The connection of this peer ended with ENHANCE_YOUR_CALM. Floods have been counted by then.
    pub(crate) fn flooded(&self, peer: &str, reason: &str) {
        if let Some(more) = self.floods.turn_to_log(LOG_FLOODS_EVERY) {
            let metric = self.floods.name;
            tracing::warn!(
                peer,
                reason,
                metric,
                more_since_last_line = more,
                "connection closed; the client exceeds its bounds"
            );
        }
    }
}

impl ConnectionObserver for TransportMetrics {
    fn observe(&self, event: ConnectionEvent, reason: &'static str) {
        match event {
            ConnectionEvent::Goaway(code) => {
                let place = CODES.iter().position(|(known, _)| *known == code);
                if let Some(count) = place.and_then(|place| self.goaways.get(place)) {
                    count.inc();
                }
                if !matches!(code, ErrorCode::NoError | ErrorCode::EnhanceYourCalm) {
                    self.protocol_errors.add(reason);
                }
            }
            ConnectionEvent::Flood => self.floods.count.inc(),
            ConnectionEvent::ResetInFlight => self.resets_in_flight.add(reason),
            ConnectionEvent::BudgetRefusal => self.budget_refusals.add(reason),
            ConnectionEvent::StreamRefusal(StreamBound::Side) => self.side_refusals.add(reason),
            ConnectionEvent::StreamRefusal(StreamBound::Open) => self.open_refusals.add(reason),
            ConnectionEvent::MessageTimeout => self.message_timeouts.add(reason),
        }
    }
}

impl Counted {
    pub(super) fn new(name: &'static str, count: IntCounter) -> Self {
        Self { name, count, logged: Mutex::default(), unlogged: AtomicU64::new(0) }
    }

    fn add(&self, reason: &'static str) {
        self.count.inc();
        if let Some(more) = self.turn_to_log(LOG_EVERY) {
            tracing::info!(reason, metric = self.name, more_since_last_line = more, "connections");
        }
    }

    /// Returns the number of events without a line since the last one, if this one has a line.
    pub(super) fn turn_to_log(&self, every: Duration) -> Option<u64> {
        // Somebody else is logging if the lock is held.
        let Some(mut logged) = self.logged.try_lock() else {
            self.unlogged.fetch_add(1, Relaxed);
            return None;
        };
        let now = monotonic();
        if logged.is_some_and(|logged| now.saturating_duration_since(logged) < every) {
            self.unlogged.fetch_add(1, Relaxed);
            return None;
        }
        *logged = Some(now);
        drop(logged);
        Some(self.unlogged.swap(0, Relaxed))
    }
}
