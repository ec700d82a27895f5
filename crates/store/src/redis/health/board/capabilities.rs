//! Capabilities that features need of each node: which is missing, since when and why. Decisions are made all the same.

use super::{Board, NodeBoard, StoreHealth, problem};
use crate::backend::{Problem, Since};
use crate::redis::health::remedy::remedy;
use crate::redis::health::rights::FoundCapability;
use crate::redis::health::streak::{Streak, StreakChange};
use crate::redis::topology::Address;
use crate::scripts::{ScriptSpec, Uses};

pub(super) struct CapabilityBoard {
    spec: &'static ScriptSpec,
    streak: Streak,
}

impl StoreHealth {
    pub(in crate::redis::health) fn set_uses(&self, uses: &Uses) {
        let mut board = self.0.board.lock();
        if board.uses != *uses {
            board.uses.clone_from(uses);
        }
    }

    /// Records the findings about all capabilities in use on a node, apart from decisions.
    pub(in crate::redis::health) fn found_capabilities(&self, node: &Address, found: Vec<FoundCapability>) {
        self.change(|board| {
            let Board { nodes, uses, .. } = board;
            let Some(known) = nodes.get_mut(node) else { return };
            known.capabilities.retain(|own| found.iter().any(|(spec, _)| spec.name == own.spec.name));
            for (spec, lacks) in found {
                let own = known.capability(spec);
                let name = spec.name;
                match lacks {
                    None => {
                        if let Some(StreakChange::Ended { lasted }) = own.streak.succeeded(Since::now()) {
                            let seconds = lasted.as_secs();
                            tracing::info!(%node, capability = name, seconds, "capability of a Redis node recovered");
                        }
                    }
                    Some(reason) => {
                        if own.streak.failed(&reason, Since::now()).is_some() {
                            let what_to_do = remedy(&reason, &self.0.config, uses);
                            tracing::warn!(
                                %node, capability = name, reason, %what_to_do,
                                "Redis node lacks a capability; decisions are not affected"
                            );
                        }
                    }
                }
            }
        });
    }
}

impl Board {
    pub(super) fn lacking(&self, config: &weir_config::RedisConfig) -> impl Iterator<Item = Problem> {
        self.nodes.iter().flat_map(move |(node, known)| {
            known.capabilities.iter().filter_map(move |own| {
                let what = format!("Redis node {node} cannot {}", own.spec.does);
                Some(problem(what, own.streak.failure()?, config, &self.uses))
            })
        })
    }

    /// Returns the names of the capabilities that every node lacks of those that need them.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let all = || self.nodes.values().flat_map(|known| &known.capabilities);
        let works = |name| all().any(|own| own.spec.name == name && own.streak.failure().is_none());
        let mut names: Vec<_> = all().map(|own| own.spec.name).filter(|name| !works(*name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl NodeBoard {
    fn capability(&mut self, spec: &'static ScriptSpec) -> &mut CapabilityBoard {
        let place = self.capabilities.iter().position(|own| own.spec.name == spec.name);
        let place = place.unwrap_or_else(|| {
            self.capabilities.push(CapabilityBoard { spec, streak: Streak::default() });
            self.capabilities.len() - 1
        });
        &mut self.capabilities[place]
    }

    pub(super) fn lacks(&self, name: &str) -> bool {
        self.capabilities.iter().any(|own| own.spec.name == name && own.streak.failure().is_some())
    }
}
