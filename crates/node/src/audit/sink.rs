//! The file of the audit, shared by the thread of the queue and by what is written at once.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::telemetry::DecisionSink;

/// The target of the lines. Clones share it, and each writes whole lines.
#[derive(Clone)]
pub(super) struct AuditSink(Arc<Mutex<DecisionSink>>);

impl AuditSink {
    pub(super) fn new(sink: DecisionSink) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }

    /// Writes whole lines, down to the disk.
    pub(super) fn write_line(&self, text: &[u8]) -> io::Result<()> {
        let mut sink = self.0.lock();
        sink.write_all(text)?;
        sink.persist()
    }
}

impl Write for AuditSink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_line(text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
