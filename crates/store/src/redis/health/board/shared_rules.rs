//! Comparison of rules between the nodes of Weir.

use std::sync::Arc;

use weir_config::RedisConfig;

use super::{Board, ONE_FILE, StoreHealth, problem};
use crate::backend::{Problem, RulesDigest, Since};
use crate::redis::health::remedy::remedy;
use crate::redis::health::rules::{COMPARISON, OtherRules, RulesChange};
use crate::redis::topology::Address;

impl StoreHealth {
    /// Sets what this node's files say of its strategies, at the start and after each reload.
    pub fn publish_rules(&self, own: RulesDigest) {
        self.0.board.lock().rules.publish(own);
    }

    pub(in crate::redis::health) fn own_rules(&self) -> Arc<RulesDigest> {
        self.0.board.lock().rules.own()
    }

    pub(in crate::redis::health) fn rules_compared(&self, other: Option<OtherRules>) {
        self.change(|board| match board.rules.found(other, Since::now()) {
            Some(RulesChange::Differs) => {
                if let Some((_, other)) = board.rules.other() {
                    tracing::warn!(
                        node = other.node,
                        strategies = other.text(),
                        what_to_do = ONE_FILE,
                        "another node has other limits under the same names; both count in the same keys"
                    );
                }
            }
            Some(RulesChange::Agrees) => tracing::info!("limits match on all nodes"),
            None => {}
        });
    }

    /// True if the node is known to lack a right for the comparison of rules.
    pub(in crate::redis::health) fn may_not_compare_rules(&self, node: &Address) -> bool {
        self.0.board.lock().nodes.get(node).is_some_and(|known| known.lacks(COMPARISON.name))
    }

    /// Records that Redis refused the comparison of rules. It is tried again with the next exchange.
    pub(in crate::redis::health) fn rules_refused(&self, reason: &str) {
        self.change(|board| {
            if board.rules.refused(reason, Since::now()) {
                tracing::warn!(
                    reason, what_to_do = %remedy(reason, &self.0.config, &board.uses),
                    "cannot compare limits with other nodes; will retry"
                );
            }
        });
    }
}

impl Board {
    /// Returns a note if nothing is compared, unless a right is missing, which has a note of its own.
    pub(super) fn rules_note(&self, config: &RedisConfig) -> Option<Problem> {
        if self.nodes.values().any(|known| known.lacks(COMPARISON.name)) {
            return None;
        }
        let what = "limits are not compared with those of other nodes".to_owned();
        Some(problem(what, self.rules.refusal()?, config, &self.uses))
    }
}
