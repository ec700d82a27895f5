//! TLS of the ports: handshakes, loads of files, and when certificates expire.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::transport::Counted;
use crate::label::labels;

/// Between two log lines about clients without TLS, or about refused ones.
const LOG_EVERY: Duration = Duration::from_secs(60);

const HANDSHAKES: &str = "weir_tls_handshakes_total";

labels! {
    /// End of a handshake.
    pub enum HandshakeResult {
        /// With a new session.
        Done = "done",
        /// With an earlier session.
        Resumed = "resumed",
        /// The client's certificate is missing or not valid.
        Refused = "refused",
        /// Client and server do not agree, or one of them broke the protocol.
        Failed = "failed",
        /// The client sent something else than TLS.
        PlainText = "plain_text",
        /// The client has gone.
        Closed = "closed",
        /// The handshake timed out.
        TimedOut = "timed_out",
        /// The handshake was evicted for another one.
        Evicted = "evicted",
    }
}

labels! {
    /// End of a load of files.
    pub enum TlsLoad {
        /// The files are in use.
        Done = "done",
        /// The files have mistakes; the previous ones stay in use.
        Refused = "refused",
    }
}

/// The metrics of all ports with TLS.
pub struct TlsMetrics {
    handshakes: Vec<IntCounter>,
    plain_text: Counted,
    refused: Counted,
    loads: [IntCounter; 2],
    expiry: IntGaugeVec,
    next_update: IntGaugeVec,
}

impl TlsMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Arc<Self>, prometheus::Error> {
        let counters = |name: &str, help: &str| {
            let counters = IntCounterVec::new(Opts::new(name, help), &["result"])?;
            registry.register(Box::new(counters.clone()))?;
            Ok::<_, prometheus::Error>(counters)
        };
        let gauges = |name: &str, help: &str| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), &["port"])?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let handshakes = counters(HANDSHAKES, "TLS handshakes of clients, by how they ended.")?;
        let loads = counters("weir_tls_loads_total", "Loads of TLS files after they had changed.")?;
        let of = |result: HandshakeResult| handshakes.with_label_values(&[result.name()]);
        Ok(Arc::new(Self {
            handshakes: HandshakeResult::ALL.map(of).into(),
            plain_text: Counted::new(HANDSHAKES, of(HandshakeResult::PlainText)),
            refused: Counted::new(HANDSHAKES, of(HandshakeResult::Refused)),
            loads: TlsLoad::ALL.map(|result| loads.with_label_values(&[result.name()])),
            expiry: gauges(
                "weir_tls_certificate_expiry_timestamp_seconds",
                "When the certificate of a port expires, or an intermediate one of it.",
            )?,
            next_update: gauges(
                "weir_tls_crl_next_update_timestamp_seconds",
                "When the first revocation list of a port is due to be replaced.",
            )?,
        }))
    }

    pub(crate) fn handshake(&self, result: HandshakeResult) {
        if let Some(count) = self.handshakes.get(result as usize) {
            count.inc();
        }
    }

    /// A handshake of this peer failed. Clients without TLS get a log line, one a minute for all of them, and so do refused
    /// ones.
    pub(crate) fn failed(&self, result: HandshakeResult, peer: &str, reason: &str) {
        self.handshake(result);
        let line = match result {
            HandshakeResult::PlainText => &self.plain_text,
            HandshakeResult::Refused => &self.refused,
            _ => return,
        };
        let Some(more) = line.turn_to_log(LOG_EVERY) else { return };
        if result == HandshakeResult::Refused {
            tracing::warn!(
                peer,
                reason,
                more_since_last_line = more,
                "connection refused; the client's certificate is missing or invalid"
            );
        } else {
            tracing::warn!(
                peer,
                more_since_last_line = more,
                "connection closed; the client speaks plain text, and this port expects TLS (https://)"
            );
        }
    }

    /// Files were read again.
    pub(crate) fn loaded(&self, result: TlsLoad) {
        if let Some(count) = self.loads.get(result as usize) {
            count.inc();
        }
    }

    /// The certificate of a port expires at this time, in seconds since the Unix epoch.
    pub(crate) fn certificate_expires(&self, port: &str, at: i64) {
        self.expiry.with_label_values(&[port]).set(at);
    }

    /// A revocation list of a port is due at this time.
    pub(crate) fn next_update(&self, port: &str, at: i64) {
        self.next_update.with_label_values(&[port]).set(at);
    }
}
