//! Metrics of the listener. No label has a value that a client sends.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts};
use weir_grpc::PeerAddress;

use crate::minutely::Minutely;

/// Results of checks: the values of `Weir-Decision`.
const DECISIONS: [&str; 8] =
    ["allowed", "limited", "never", "denied", "banned", "degraded", "unavailable", "refused"];

/// Statuses that are counted: 100 to 599.
const STATUSES: usize = 500;

/// Bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 8] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0];

/// Reasons for which connections end, or are refused.
const REASONS: [&str; 6] = ["connections", "budget", "idle", "slow_headers", "slow_body", "slow_reader"];

/// The metrics of the listener.
#[derive(Clone)]
pub(crate) struct HttpMetrics(Arc<Families>);

struct Families {
    requests: IntCounterVec,
    durations: HistogramVec,
    connections: IntGauge,
    checks: IntCounterVec,
    refused: IntCounterVec,
    /// Counted by the acceptor.
    refused_connections: Arc<AtomicU64>,
    seen: AtomicU64,
    lines: Minutely,
}

/// The counters of one route.
pub(crate) struct RouteMetrics {
    name: String,
    metrics: HttpMetrics,
    by_status: Vec<OnceLock<IntCounter>>,
    durations: Histogram,
}

impl HttpMetrics {
    pub(crate) fn new(refused_connections: Arc<AtomicU64>) -> Result<Self, prometheus::Error> {
        let requests = Opts::new("weir_http_requests_total", "Requests to the HTTP listener.");
        let durations = HistogramOpts::new(
            "weir_http_request_duration_seconds",
            "Time from the headers of a request to its answer.",
        );
        let checks = Opts::new("weir_http_check_total", "Questions of proxies, by what was decided.");
        let refused = Opts::new(
            "weir_http_refused_total",
            "HTTP connections that were refused, or ended because their clients were too slow.",
        );
        let families = Families {
            requests: IntCounterVec::new(requests, &["route", "status"])?,
            durations: HistogramVec::new(durations.buckets(BUCKETS.to_vec()), &["route"])?,
            connections: IntGauge::new("weir_http_connections", "Open connections of the HTTP listener.")?,
            checks: IntCounterVec::new(checks, &["check", "decision"])?,
            refused: IntCounterVec::new(refused, &["reason"])?,
            refused_connections,
            seen: AtomicU64::new(0),
            lines: Minutely::default(),
        };
        REASONS.iter().for_each(|reason| drop(families.refused.with_label_values(&[reason])));
        Ok(Self(Arc::new(families)))
    }

    /// Returns the counters of a route.
    pub(crate) fn route(&self, name: &str) -> RouteMetrics {
        let by_status = (0..STATUSES).map(|_| OnceLock::new()).collect();
        let durations = self.0.durations.with_label_values(&[name]);
        let route = RouteMetrics { name: name.to_owned(), metrics: self.clone(), by_status, durations };
        route.counter(StatusCode::OK);
        route
    }

    /// Returns the counters of a check.
    pub(crate) fn check(&self, check: &str) -> CheckMetrics {
        let counter = |decision| (decision, self.0.checks.with_label_values(&[check, decision]));
        CheckMetrics(DECISIONS.map(counter), self.clone())
    }

    pub(crate) fn opened(&self) {
        self.0.connections.inc();
    }

    pub(crate) fn closed(&self) {
        self.0.connections.dec();
    }

    /// Counts a connection that ends for one of [`REASONS`].
    pub(crate) fn refused(&self, reason: &'static str) {
        self.0.refused.with_label_values(&[reason]).inc();
    }

    /// Logs the rule that a request or a connection was refused by, once a minute for all of them.
    pub(crate) fn log_refused(&self, rule: &'static str, peer: PeerAddress) {
        self.0.lines.say(|suppressed| {
            tracing::info!(rule, %peer, suppressed, "HTTP request refused");
        });
    }
}

/// The counters of a check, by the decision.
pub(crate) struct CheckMetrics([(&'static str, IntCounter); 8], HttpMetrics);

impl CheckMetrics {
    /// Logs the rule that a question was refused by.
    pub(crate) fn log_refused(&self, rule: &'static str, peer: PeerAddress) {
        self.1.log_refused(rule, peer);
    }

    pub(crate) fn count(&self, decision: &str) {
        if let Some((_, counter)) = self.0.iter().find(|(known, _)| *known == decision) {
            counter.inc();
        }
    }
}

impl RouteMetrics {
    /// Counts a request.
    pub(crate) fn count(&self, status: StatusCode, took: Duration) {
        if let Some(counter) = self.counter(status) {
            counter.inc();
        }
        self.durations.observe(took.as_secs_f64());
    }

    /// Counts a request that makes no call, and logs the rule of its status.
    pub(crate) fn refuse(&self, status: StatusCode, took: Duration, peer: PeerAddress) {
        self.count(status, took);
        let rule = match status.as_u16() {
            400 => "protocol",
            403 => "origin",
            404 => "path",
            405 => "method",
            414 => "target",
            415 => "content_type",
            _ => return,
        };
        self.metrics.log_refused(rule, peer);
    }

    fn counter(&self, status: StatusCode) -> Option<&IntCounter> {
        let place = self.by_status.get(usize::from(status.as_u16()).checked_sub(100)?)?;
        Some(place.get_or_init(|| {
            self.metrics.0.requests.with_label_values(&[self.name.as_str(), status.as_str()])
        }))
    }
}

impl Collector for HttpMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let Families { requests, durations, connections, checks, refused, .. } = &*self.0;
        [requests.desc(), durations.desc(), connections.desc(), checks.desc(), refused.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Families { requests, durations, connections, checks, refused, refused_connections, seen, .. } =
            &*self.0;
        let now = refused_connections.load(Relaxed);
        let new = now.saturating_sub(seen.swap(now, Relaxed));
        refused.with_label_values(&["connections"]).inc_by(new);
        let counted = [requests.collect(), durations.collect(), connections.collect(), checks.collect()];
        [counted.concat(), refused.collect()].concat()
    }
}
