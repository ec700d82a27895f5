//! Writes every decision to a file, for checks that need more than counts.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::outcome::CallOutcome;

/// Least size of a write.
const CHUNK: usize = 64 << 10;

/// The file, shared by the threads. Warm-up calls are in it too.
#[derive(Debug, Clone)]
pub(crate) struct Record(Arc<Mutex<File>>);

/// One thread's buffered writer.
#[derive(Debug)]
pub(crate) struct Trace {
    record: Record,
    lines: Vec<u8>,
    failure: Option<io::Error>,
}

impl Record {
    /// Begins the file with the names of its columns. Times are microseconds of the run.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(b"sent_us,answered_us,key,result\n")?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    pub(crate) const fn trace(self) -> Trace {
        Trace { record: self, lines: Vec::new(), failure: None }
    }
}

impl Trace {
    pub(super) fn write(&mut self, outcome: &CallOutcome, now_ns: u64) {
        let result = match &outcome.result {
            Ok(answer) if answer.allowed > 0 => "allowed",
            Ok(_) => "denied",
            Err(_) => "failed",
        };
        let (sent_us, answered_us) = (outcome.call.sent_ns / 1_000, now_ns / 1_000);
        // Writing to memory cannot fail.
        let _ = writeln!(self.lines, "{sent_us},{answered_us},{},{result}", outcome.call.key);
        if self.lines.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.record.0.lock().write_all(&self.lines) {
            self.failure.get_or_insert(error);
        }
        self.lines.clear();
    }

    /// Flushes.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }
}
