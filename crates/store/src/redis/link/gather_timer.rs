//! The timer of decisions that wait for others.

use std::future::pending;
use std::time::Instant;

use weir_time::alarm::Alarm;
use weir_time::clock::monotonic;

use crate::redis::context::LinkContext;
use crate::redis::outbox::Outbox;

/// The timer of a link: none unless `store.redis.gather` is set.
pub(super) struct GatherTimer {
    alarm: Option<Alarm>,
    until: Option<Instant>,
}

impl GatherTimer {
    pub(super) fn new(context: &LinkContext) -> Self {
        let is_on = context.config.gather.0 > 0;
        Self { alarm: is_on.then(|| Alarm::with_clock(&context.surroundings.clock)), until: None }
    }

    /// Sets it if the decisions that are ready wait for others. Returns true if they do.
    pub(super) fn begin(&mut self, outbox: &Outbox) -> bool {
        if self.alarm.is_some() {
            self.until = outbox.gather(monotonic());
        }
        self.until.is_some()
    }

    /// Resets it, because decisions leave.
    pub(super) fn end(&mut self) {
        self.until = None;
    }

    /// Resolves when it is due, which is never if it is not set.
    pub(super) async fn wait(&mut self) {
        match (&mut self.alarm, self.until) {
            (Some(alarm), Some(until)) => alarm.wait(until).await,
            _ => pending().await,
        }
    }
}
