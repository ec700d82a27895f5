//! The decision log: what was asked and answered, a JSON line each.
//!
//! It is sampled by key, a resource and a consumer: a key is in it completely or not at all, so that what another
//! configuration would have decided can be computed from it. A second log may have every denial. Lines are numbered in
//! the order of the file, before it is known whether they fit: a line that was dropped is a gap.

mod line;
mod sink;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{MetricFamily, MetricType};
use weir_config::{DecisionLogConfig, KeyShare, LogTarget};
use weir_time::clock::Clock;
use weir_units::Micros;

pub use self::line::{DecisionLine, is_denial};
use self::sink::DecisionSink;
use super::decisions::{counter, family};
use super::lines::LineWriter;

/// Bytes of lines that may wait to be written: some ten thousand lines. As many again may be in the thread's hand.
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

/// One log.
struct NumberedLines {
    name: &'static str,
    writer: LineWriter,
    written: AtomicU64,
    /// What every line begins with; its number follows.
    head: Vec<u8>,
}

impl DecisionLog {
    /// Opens what `config` says. Decisions that no store has timed have the time of `clock`.
    pub fn open(config: &DecisionLogConfig, clock: Clock) -> Result<Arc<Self>, DecisionLogError> {
        // The standard library seeds its hashers with what the system has of randomness.
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

    /// Whether a line about this key is wanted, where its call is or may be `denied`. It costs a hash at most.
    #[must_use]
    pub fn wants(&self, resource: &str, consumer: &str, denied: bool) -> bool {
        denied && self.denied.is_some() || self.share.has(resource, consumer)
    }

    /// Logs a line where it belongs.
    pub fn write(&self, line: &DecisionLine<'_>) {
        let sampled = || self.share.has(line.subject.resource, line.subject.consumer);
        let decisions = self.decisions.as_ref().filter(|_| sampled());
        let denied = self.denied.as_ref().filter(|_| is_denial(line.outcome));
        if decisions.is_none() && denied.is_none() {
            return;
        }
        let text = line.text(line.time.unwrap_or_else(|| self.now()));
        for log in decisions.into_iter().chain(denied) {
            log.writer.push_numbered(&log.head, &text);
            log.written.fetch_add(1, Relaxed);
        }
    }

    fn now(&self) -> Micros {
        self.clock.now()
    }

    /// Waits until everything has been written or dropped, but not longer than `wait` each.
    pub fn flush(&self, wait: Duration) {
        self.logs().for_each(|log| log.writer.flush(wait));
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

/// The counters of the logs, as a registry takes them.
pub(super) struct DecisionLogCounters {
    log: Arc<DecisionLog>,
    descriptions: Vec<Desc>,
}

const FAMILIES: [(&str, &str); 2] = [
    ("weir_decision_log_lines_total", "Lines of the decision log, with dropped ones, by log."),
    (
        "weir_decision_log_lines_dropped_total",
        "Lines of the decision log that did not fit or could not be written, by log.",
    ),
];

impl DecisionLogCounters {
    pub(super) fn new(log: Arc<DecisionLog>) -> Result<Self, prometheus::Error> {
        let describe = |(name, help): &(&str, &str)| {
            let labels = vec!["log".to_owned()];
            Desc::new((*name).to_owned(), (*help).to_owned(), labels, std::collections::HashMap::new())
        };
        Ok(Self { log, descriptions: FAMILIES.iter().map(describe).collect::<Result<_, _>>()? })
    }
}

impl Collector for DecisionLogCounters {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let counts: [fn(&NumberedLines) -> u64; 2] =
            [|log| log.written.load(Relaxed), |log| log.writer.dropped()];
        let mut families = Vec::new();
        for ((name, help), count) in FAMILIES.iter().zip(counts) {
            let metrics = self.log.logs().map(|log| counter(&[("log", log.name)], count(log))).collect();
            families.push(family(name, help, MetricType::COUNTER, metrics));
        }
        families
    }
}
