//! Tells other nodes which configuration this one has, and reads what they tell.

use std::time::Duration;

use weir_store::redis::ControlNode;
use weir_time::clock::monotonic;

use super::nodes::ToldNode;
use super::store::ControlStore;
use super::task::ControlTask;

/// How often nodes tell.
const TELL_EVERY: Duration = Duration::from_secs(1);

impl ControlTask {
    /// Tells other nodes which configuration this one has, once a second or when it has changed.
    pub(super) async fn tell_nodes(&mut self) {
        let (files, position) = (self.loads.hash().to_string(), self.mirror.last_position());
        let own = ControlNode { node: self.node.clone(), files, position };
        let now = monotonic();
        let is_new = self.told.told.as_ref() != Some(&own);
        let is_due = self.told.at.is_none_or(|at| now.saturating_duration_since(at) >= TELL_EVERY);
        if self.incomplete.is_some() || !(is_new || is_due) {
            return;
        }
        let all = match &mut self.store {
            ControlStore::Memory(_) => Ok(vec![own.clone()]),
            ControlStore::Redis(link) => link.exchange_nodes(&own, self.told.told.as_ref()).await,
        };
        match all {
            Ok(all) => *self.nodes.0.lock() = all,
            Err(error) => tracing::debug!(%error, "the configurations of other nodes are not read"),
        }
        self.told = ToldNode { told: Some(own), at: Some(now) };
    }
}
