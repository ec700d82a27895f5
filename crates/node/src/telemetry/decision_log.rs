//! The decision log: a JSON line for each decision.
//!
//! It is sampled by key (resource and consumer): a key is logged completely or not at all, so that the decisions of
//! another configuration can be computed from it. A second log may have every denial. Lines are numbered in the order
//! of the file, before it is known if they fit: a dropped line leaves a gap.

mod costs;
mod line;
mod sink;
mod text;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus::proto::Metric;
use weir_config::{DecisionLogConfig, KeyShare, LogTarget};
use weir_time::clock::Clock;

pub use self::costs::LoggedCosts;
pub use self::line::{DecisionLine, is_denial};
pub(crate) use self::sink::DecisionSink;
use super::families::{FamilySpec, counter};
use super::lines::LineWriter;

/// Capacity of the queue in bytes: some ten thousand lines. The writing thread may hold as many again.
const QUEUE: usize = 4 << 20;

/// A file of the log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the decision log cannot be written to {target}: {error}")]
pub struct DecisionLogError {
    target: String,
    error: io::Error,
}

/// The logs of one process. All workers share them.
pub struct DecisionLog {
    share: KeyShare,
    decisions: Option<NumberedLines>,
    denied: Option<NumberedLines>,
    clock: Clock,
}

struct NumberedLines {
    name: &'static str,
    writer: LineWriter,
    written: AtomicU64,
    /// Prefix of every line, up to its number.
    head: Vec<u8>,
}

impl DecisionLog {
    /// Opens the logs of `config`. Decisions without the store's time are stamped by `clock`.
    pub fn open(config: &DecisionLogConfig, clock: Clock) -> Result<Arc<Self>, DecisionLogError> {
        // The standard library seeds its hashers from the system's randomness.
        let incarnation = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let open = |name: &'static str, thread: &str, to: &LogTarget, keys: KeyShare| {
            let opened = DecisionSink::open(to, config.max_bytes, config.max_files)
                .and_then(|sink| LineWriter::spawn_with(thread, QUEUE, sink));
            let writer = opened.map_err(|error| DecisionLogError { target: to.to_string(), error })?;
            let head = format!(r#"{{"log":"{name}","keys":{keys},"incarnation":"{incarnation}","sequence":"#);
            Ok(NumberedLines { name, writer, written: AtomicU64::new(0), head: head.into_bytes() })
        };
        let all = KeyShare::ALL;
        let decisions = (config.keys != KeyShare::NONE)
            .then(|| open("decisions", "weir-decisions", &config.to, config.keys))
            .transpose()?;
        let denied = config.denied.as_ref().map(|to| open("denied", "weir-denied", to, all)).transpose()?;
        Ok(Arc::new(Self { share: config.keys, decisions, denied, clock }))
    }

    /// True if a call with this key is logged; `denied` is true if it is or may be denied. Costs a hash at most.
    pub fn wants(&self, resource: &str, consumer: &str, denied: bool) -> bool {
        denied && self.denied.is_some() || self.share.has(resource, consumer)
    }

    /// Writes a line to the logs that want it.
    pub fn write(&self, line: &DecisionLine<'_>) {
        let sampled = || self.share.has(line.subject.resource, line.subject.consumer);
        let decisions = self.decisions.as_ref().filter(|_| sampled());
        let denied = self.denied.as_ref().filter(|_| is_denial(line.outcome));
        if decisions.is_none() && denied.is_none() {
            return;
        }
        let text = line.text(line.time.unwrap_or_else(|| self.clock.now()));
        for log in decisions.into_iter().chain(denied) {
            log.writer.push_numbered(&log.head, &text);
            log.written.fetch_add(1, Relaxed);
        }
    }

    /// Waits until everything has been written or dropped, but not longer than `wait` each.
    pub fn flush(&self, wait: Duration) {
        self.logs().for_each(|log| log.writer.flush(wait));
    }

    pub(super) fn metrics(&self) -> [Vec<Metric>; FAMILIES.len()] {
        let counts: [fn(&NumberedLines) -> u64; FAMILIES.len()] =
            [|log| log.written.load(Relaxed), |log| log.writer.dropped()];
        counts.map(|count| self.logs().map(|log| counter(&[("log", log.name)], count(log))).collect())
    }

    fn logs(&self) -> impl Iterator<Item = &NumberedLines> {
        self.decisions.iter().chain(&self.denied)
    }
}

impl std::fmt::Debug for DecisionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.logs().map(|log| log.name)).finish()
    }
}

pub(super) const FAMILIES: [FamilySpec; 2] = [
    FamilySpec::counter(
        "weir_decision_log_lines_total",
        "Lines of the decision log, with dropped ones, by log.",
        &["log"],
    ),
    FamilySpec::counter(
        "weir_decision_log_lines_dropped_total",
        "Lines of the decision log that did not fit or could not be written, by log.",
        &["log"],
    ),
];
