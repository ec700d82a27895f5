//! The counters of one worker through all snapshots.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Metrics;
use super::decisions::CountedRows;
use super::recorder::{Recorder, WorkerCounters};

/// Gives all services of one worker the same counters under one snapshot.
pub struct WorkerRecorder {
    metrics: Metrics,
    counters: Arc<WorkerCounters>,
    last: Mutex<Option<(CountedRows, Arc<Recorder>)>>,
}

impl WorkerRecorder {
    /// Creates the counters of one more worker.
    pub fn new(metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), counters: metrics.worker(), last: Mutex::default() }
    }

    /// Returns the counters that have no names of the configuration.
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    /// Returns the counters in the rows of a snapshot.
    pub fn under(&self, rows: &CountedRows) -> Arc<Recorder> {
        let mut last = self.last.lock();
        if let Some((known, recorder)) = &*last
            && known.is_same(rows)
        {
            return Arc::clone(recorder);
        }
        let recorder = self.metrics.recorder_in(rows, &self.counters);
        *last = Some((rows.clone(), Arc::clone(&recorder)));
        recorder
    }
}
