//! What the nodes of Weir say of their rules to one another.

use std::sync::Arc;

use super::{ONE_FILE, StoreHealth};
use crate::redis::health::remedy::remedy;
use crate::redis::health::rules::{OtherRules, RulesChange, RulesDigest};
use crate::redis::health::streak::Since;

impl StoreHealth {
    /// Sets what this node's files say of its strategies, at the start and after each reload.
    pub fn publish_rules(&self, own: RulesDigest) {
        self.0.board.lock().rules.publish(own);
    }

    pub(in crate::redis::health) fn own_rules(&self) -> Arc<RulesDigest> {
        self.0.board.lock().rules.own()
    }

    /// Records the node that has other rules, if any.
    pub(in crate::redis::health) fn rules_compared(&self, other: Option<OtherRules>) {
        self.change(|board| match board.rules.found(other, Since::now()) {
            Some(RulesChange::Differs) => {
                if let Some((_, other)) = board.rules.other() {
                    tracing::warn!(
                        node = other.node,
                        strategies = other.text(),
                        what_to_do = ONE_FILE,
                        "another node has other limits under the same names, and both count in the same keys"
                    );
                }
            }
            Some(RulesChange::Agrees) => tracing::info!("no other node has other limits any more"),
            None => {}
        });
    }

    /// True if Redis refused the comparison of rules before.
    pub(in crate::redis::health) fn may_not_compare_rules(&self) -> bool {
        self.0.board.lock().rules.is_refused()
    }

    /// Records that Redis refused the comparison of rules. It is not asked again.
    pub(in crate::redis::health) fn rules_refused(&self, reason: &str) {
        if self.0.board.lock().rules.refused() {
            tracing::info!(
                reason, what_to_do = %remedy(reason, &self.0.config),
                "Redis does not show whether other nodes have the same limits"
            );
        }
    }
}
