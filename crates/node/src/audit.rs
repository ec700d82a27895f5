//! The audit: a JSON line for each call that changes something for all callers, and for refused calls.
//!
//! ```text
//!   live control, before and after a change ── at once, down to the disk ──┐
//!                                                                           ├─ server.audit_file
//!   other calls that change something, refused calls ── a bounded queue ───┘
//! ```
//!
//! A change by live control whose first line cannot be written is refused. Everything else never waits for the file: a
//! line that does not fit is left out, and a later line has the number of these.

mod refusals;
mod sink;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prost_types::Timestamp;
use serde_json::{Value, json};
use weir_config::LogTarget;
use weir_grpc::{PeerAddress, current_peer};
use weir_time::clock::{Clock, monotonic};
use weir_units::Micros;

use self::refusals::{RefusalLines, RefusedCall};
use self::sink::AuditSink;
use crate::current_method;
use crate::json_line;
use crate::known_methods::KnownMethods;
use crate::telemetry::{DecisionSink, LineWriter};

/// Size at which the file is rotated.
const MAX_BYTES: u64 = 16 << 20;

const MAX_FILES: usize = 5;

/// Capacity of the queue in bytes. Refusals cannot fill it: see `refusals.rs`.
const QUEUE: usize = 1 << 20;

/// Shortest time between two lines with the number of lines that were left out.
const LEFT_OUT_EVERY: Duration = Duration::from_secs(60);

/// Interval between checks for lines that were left out.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The audit of one process. Clones share it.
#[derive(Clone)]
pub struct AuditLog(Arc<AuditState>);

struct AuditState {
    sink: AuditSink,
    queue: LineWriter,
    clock: Clock,
    methods: KnownMethods,
    refusals: Mutex<RefusalLines>,
    /// Refusals without a line of their own.
    refusals_left_out: AtomicU64,
    left_out: Mutex<LeftOut>,
}

/// The lines that a line has reported as left out.
#[derive(Debug, Default)]
struct LeftOut {
    refusals: u64,
    lines: u64,
    at: Option<Instant>,
}

impl AuditLog {
    /// Opens the file; `None` is standard output.
    pub fn open(path: Option<&Path>, clock: Clock) -> io::Result<Self> {
        Self::open_knowing(path, clock, KnownMethods::default())
    }

    /// Opens the log, on a node with more methods.
    pub(crate) fn open_knowing(path: Option<&Path>, clock: Clock, methods: KnownMethods) -> io::Result<Self> {
        let target = path.map_or(LogTarget::Stdout, |path| LogTarget::File(path.to_owned()));
        let sink = AuditSink::new(DecisionSink::open_private(&target, MAX_BYTES, MAX_FILES)?);
        let queue = LineWriter::spawn_with("weir-audit", QUEUE, sink.clone())?;
        Ok(Self(Arc::new(AuditState {
            sink,
            queue,
            clock,
            methods,
            refusals: Mutex::new(RefusalLines::new(monotonic())),
            refusals_left_out: AtomicU64::new(0),
            left_out: Mutex::default(),
        })))
    }

    /// Writes a line at once, down to the disk.
    pub fn write(&self, line: &Value) -> io::Result<()> {
        self.0.sink.write_line(&text_of(line))
    }

    /// Queues the line of a call that changed something, or tried to. `by` is the name of the caller, empty on a server
    /// without identity.
    pub(crate) fn called(&self, method: &str, by: &str, asked: &Value, result: &Value) {
        self.queue(&json!({
            "audit": "called",
            "at": time_text(self.0.clock.now()),
            "method": method,
            "by": named_caller(by),
            "peer": peer(),
            "asked": asked,
            "result": result,
        }));
    }

    /// Queues the line of a refused call, unless there was one of its caller and method within a second. `by` is the name
    /// of the caller or the address of its peer, `what` a path or the part of a method that was refused.
    pub(crate) fn refused(&self, by: &str, what: &str, reason: &str) {
        let method = refusals::method_of(&self.0.methods, what, current_method::get());
        let refusal = RefusedCall { by: &refusals::shortened(by), method };
        // Workers that refuse at the same time do not wait for one another.
        let due = self.0.refusals.try_lock().and_then(|mut lines| lines.due(&refusal, monotonic()));
        let Some(left_out) = due else {
            self.0.refusals_left_out.fetch_add(1, Relaxed);
            return;
        };
        self.queue(&json!({
            "audit": "refused",
            "at": time_text(self.0.clock.now()),
            "method": refusal.method,
            "by": refusal.by,
            "peer": peer(),
            "reason": reason,
            "left_out": left_out,
        }));
    }

    /// Queues a line each minute in which lines were left out, for the life of the process.
    pub(crate) async fn count_left_out(self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            self.report_left_out(monotonic());
        }
    }

    /// Waits until everything has been written or dropped, but not longer than `wait`.
    pub(crate) fn flush(&self, wait: Duration) {
        self.0.left_out.lock().at = None;
        self.report_left_out(monotonic());
        self.0.queue.flush(wait);
    }

    fn report_left_out(&self, now: Instant) {
        let mut known = self.0.left_out.lock();
        let (refusals, lines) = (self.0.refusals_left_out.load(Relaxed), self.0.queue.dropped());
        let is_early = known.at.is_some_and(|at| now.saturating_duration_since(at) < LEFT_OUT_EVERY);
        if is_early || (refusals, lines) == (known.refusals, known.lines) {
            return;
        }
        self.queue(&json!({
            "audit": "left_out",
            "at": time_text(self.0.clock.now()),
            "refusals": refusals - known.refusals,
            "lines": lines - known.lines,
        }));
        *known = LeftOut { refusals, lines, at: Some(now) };
    }

    fn queue(&self, line: &Value) {
        self.0.queue.push(&text_of(line));
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

fn text_of(line: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    json_line::push(&mut text, line);
    text.push(b'\n');
    text
}

/// The caller as the audit names it: its name, or the address of its peer.
pub fn named_caller(name: &str) -> String {
    if name.is_empty() { peer().unwrap_or_default() } else { name.to_owned() }
}

/// The address of the peer whose call is polled now.
fn peer() -> Option<String> {
    match current_peer() {
        PeerAddress::Unknown => None,
        address => Some(address.to_string()),
    }
}

/// An id of a change, as the audit, the log, the commands and the API write it.
pub fn change_id(change: u64) -> String {
    format!("{change:016x}")
}

/// A time as the audit writes it.
pub fn time_text(at: Micros) -> String {
    let seconds = i64::try_from(at.0 / 1_000_000).unwrap_or(i64::MAX);
    let nanos = i32::try_from(at.0 % 1_000_000 * 1_000).unwrap_or_default();
    Timestamp { seconds, nanos }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn calls_and_refusals_are_lines_and_the_rest_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = AuditLog::open(Some(&path), Clock::System).unwrap();
        audit.called("Reset", "token:ops", &json!({ "consumer": "bob" }), &json!("applied"));
        for _ in 0..5 {
            audit.refused("token:shop", "/weir.v1.AdminService/Reset", "rights");
        }
        audit.refused("token:shop", "/weir.v1.AdminService/Nothing", "rights");
        audit.flush(Duration::from_secs(10));
        let seen = lines(&path);
        let expected = [("called", "Reset"), ("refused", "Reset"), ("refused", "an unknown method")];
        assert_eq!(seen.len(), 4, "{seen:?}");
        for (line, (kind, method)) in seen.iter().zip(expected) {
            assert_eq!((line["audit"].as_str(), line["method"].as_str()), (Some(kind), Some(method)));
        }
        assert_eq!((&seen[0]["by"], &seen[0]["asked"]["consumer"]), (&json!("token:ops"), &json!("bob")));
        assert_eq!((&seen[3]["audit"], &seen[3]["refusals"]), (&json!("left_out"), &json!(4)));
        assert_eq!(
            std::fs::metadata(&path).map(|file| file.len()).ok(),
            Some(std::fs::read(&path).unwrap().len() as u64)
        );
    }

    /// A full disk loses lines, and the next line has their number.
    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let audit = AuditLog::open(Some(Path::new("/dev/full")), Clock::System).unwrap();
        let error = audit.write(&json!({ "audit": "asked" })).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        audit.called("Reset", "token:ops", &json!({}), &json!("applied"));
        audit.0.queue.flush(Duration::from_secs(10));
        assert_eq!(audit.0.queue.dropped(), 1);
    }

    #[test]
    fn a_line_a_minute_has_what_was_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = AuditLog::open(Some(&path), Clock::System).unwrap();
        let start = monotonic();
        for (seconds, more) in [(0, 0), (1, 3), (2, 4), (60, 0), (61, 0), (200, 0)] {
            audit.0.refusals_left_out.fetch_add(more, Relaxed);
            audit.report_left_out(start + Duration::from_secs(seconds));
        }
        audit.0.queue.flush(Duration::from_secs(10));
        let counts: Vec<u64> = lines(&path).iter().map(|line| line["refusals"].as_u64().unwrap()).collect();
        assert_eq!(counts, [3, 4]);
    }
}
