//! Following Redis: what changed since the last look, or everything after a loss.

use weir_time::clock::monotonic;

use super::{ControlTask, EVERY, random_id};
use crate::store::ControlStore;
use crate::store::ControlSynced;

/// Time within which every node has polled once, and sent back what it knows.
const SENT_BACK_WITHIN: std::time::Duration = EVERY.saturating_mul(2);

impl ControlTask {
    /// Brings the entries and those of Redis together. The memory store has none that this node did not make.
    pub(super) async fn poll(&mut self) {
        let ControlStore::Redis(link) = &mut self.store else { return };
        let result = link.sync(&mut self.mirror, random).await;
        if result.as_ref().is_ok_and(|synced| synced.lost.is_some()) {
            self.lost_at = Some(monotonic());
        }
        // A round that failed may have read some entries before that.
        self.changed();
        if let Ok(synced) = &result {
            self.forget(&synced.dropped);
        }
        self.report(result);
    }

    /// True if the store was found without changes that this node knows, so recently that other nodes may not have sent
    /// back later ones. The version of an entry is not known until each of them has polled.
    pub(super) async fn has_lost_changes(&mut self) -> bool {
        self.poll().await;
        self.lost_at.is_some_and(|at| monotonic().saturating_duration_since(at) < SENT_BACK_WITHIN)
    }

    fn report(&mut self, result: Result<ControlSynced, String>) {
        let result = result.map(|synced| {
            if let Some(lost) = synced.lost {
                tracing::warn!(
                    from = lost.from,
                    to = lost.to,
                    sent_back = synced.sent,
                    "Redis lost changes of live control between these versions, or is another server; sending back \
                     those that this node knows"
                );
            }
            if synced.aside > 0 {
                tracing::warn!(
                    entries = synced.aside,
                    "Redis has entries of live control that this version of Weir cannot read; ignoring them"
                );
            }
        });
        match (&self.incomplete, result) {
            (Some(_), Ok(())) => {
                self.incomplete = None;
                tracing::info!("live control is in sync with Redis");
            }
            (None, Err(error)) => {
                tracing::warn!(%error, "Redis does not answer; changes by other nodes are delayed until it does");
                self.incomplete = Some(format!("Redis does not answer: {error}"));
            }
            (None, Ok(())) | (Some(_), Err(_)) => {}
        }
    }
}

/// A random id of a change; without random numbers the mirror sends nothing that could be taken for another's.
fn random() -> u64 {
    random_id().unwrap_or(1)
}
