//! Retries the trial of calls over several slots (`probe.rs`) until it passes, and logs failures.
//!
//! Without such calls a node decides as exactly, but it gets one call per slot. A failure may be temporary: the node
//! was loading, or did not answer in time, or a right is granted later.

use std::sync::Arc;
use std::time::Duration;

use super::connect::Connection;
use super::context::LinkContext;
use super::probe::{Refusal, spans_slots};
use super::surroundings::RandomSource;
use super::topology::Address;

/// The trials of one link, over all its connections.
pub(super) struct Trials {
    context: Arc<LinkContext>,
    address: Address,
    has_failed: bool,
}

impl Trials {
    pub(super) fn new(context: Arc<LinkContext>, address: Address) -> Self {
        Self { context, address, has_failed: false }
    }

    /// Retries until a trial on `connection` has passed. Calls do not wait for it.
    pub(super) async fn pass(&mut self, mut connection: Connection) {
        let timeout = Duration::from(self.context.config.deadline);
        for failures in 1.. {
            let trial = spans_slots(&mut connection, &self.context, &self.address);
            match tokio::time::timeout(timeout, trial).await.unwrap_or(Err(Refusal::Silence(timeout))) {
                Ok(()) => return self.passed(),
                // The link notices by itself, and retries on its next connection.
                Err(Refusal::Disconnected) => {}
                Err(Refusal::FewSlots) => tracing::debug!(node = %self.address, "{}", Refusal::FewSlots),
                Err(refusal) => self.failed(&refusal),
            }
            tokio::time::sleep(backoff(failures, &self.context.surroundings.random)).await;
        }
    }

    fn failed(&mut self, refusal: &Refusal) {
        let is_first = !std::mem::replace(&mut self.has_failed, true);
        if self.context.single_slot_nodes.failed(&self.address, is_first) {
            tracing::warn!(
                node = %self.address, reason = %refusal, to_do = refusal.to_do(),
                "cannot batch over slots of a cluster node; sending one script call per slot, at a higher cost"
            );
        }
    }

    fn passed(&mut self) {
        if self.forget_failure() {
            tracing::info!(node = %self.address, "batching over slots recovered");
        }
    }

    /// Clears the failure. Returns true if this was the last failed link to a node whose failure was logged.
    fn forget_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed) && self.context.single_slot_nodes.forget(&self.address)
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        self.forget_failure();
    }
}

/// Exponential backoff from 1 s to a minute, with subtracted jitter so that workers do not retry in step.
fn backoff(failures: u32, random: &RandomSource) -> Duration {
    let base = 1_000_u64 << failures.saturating_sub(1).min(6);
    let base = base.min(60_000);
    Duration::from_millis(base - random.below(base / 10 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_repeated_after_a_second_that_doubles_up_to_a_minute() {
        let bases = [1, 2, 4, 8, 16, 32, 60, 60];
        for (failures, base) in (1..).zip(bases).chain([(u32::MAX, 60)]) {
            let (pause, base) = (backoff(failures, &RandomSource::System), Duration::from_secs(base));
            assert!(base * 9 / 10 <= pause && pause <= base, "{pause:?} after {failures}");
        }
    }
}
