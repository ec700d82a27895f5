//! Counters by rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rules::Domains;

use super::labels::label;
use super::lines::Lines;

/// Most rules with counters of their own.
pub(super) const MAX_RULES: usize = 10_000;

/// Label of rules beyond the bound, as rule and as domain.
pub(super) const OTHER: &str = "other";

/// Label of overrides in requests.
pub(super) const GIVEN: &str = "override";

/// The counters of one rule.
#[derive(Debug)]
pub struct RuleCounts(pub(super) Lines);

/// Hits on a rule, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hits {
    /// All hits.
    pub total: u64,
    /// Hits over the limit.
    pub over: u64,
    /// Hits within the limit and near it.
    pub near: u64,
    /// Hits that passed.
    pub within: u64,
    /// Hits over the limit that passed because the rule is in shadow mode.
    pub shadow: u64,
    /// Hits answered by a failure policy, because the store failed.
    pub degraded: u64,
    /// Hits over the limit that the cache of denials answered.
    pub cached: u64,
}

impl Hits {
    /// The number of counts.
    pub(super) const COUNTS: usize = 7;
}

impl RuleCounts {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self(Lines::new(workers)))
    }

    /// True once there was a hit. A rule without one has no series: most of the 10,000 rules of a large file never match.
    pub(super) fn has_hits(&self) -> bool {
        (0..Hits::COUNTS).any(|index| self.0.sum(index) > 0)
    }

    pub(super) fn add(&self, worker: usize, hits: Hits) {
        let Hits { total, over, near, within, shadow, degraded, cached } = hits;
        for (index, count) in [total, over, near, within, shadow, degraded, cached].into_iter().enumerate() {
            if count > 0 {
                self.0.add(worker, index, count);
            }
        }
    }
}

/// Counters of rules by domain and label.
pub(super) type ByRule = BTreeMap<(Box<str>, Box<str>), Arc<RuleCounts>>;

/// Counters of every rule in `domains`, by name and in the order of their index. Those in `before` are kept; rules
/// beyond the bound share `other`.
pub(super) fn renewed(
    before: &ByRule,
    domains: &Domains,
    other: &Arc<RuleCounts>,
    workers: usize,
) -> (ByRule, Box<[Arc<RuleCounts>]>) {
    let mut by_rule = ByRule::new();
    let counts = domains.rules().iter().map(|rule| {
        let name =
            (Box::from(&*rule.domain), label(&rule.label(&[GIVEN, OTHER])).into_owned().into_boxed_str());
        if by_rule.len() == MAX_RULES && !by_rule.contains_key(&name) {
            return Arc::clone(other);
        }
        let known = by_rule.get(&name).or_else(|| before.get(&name)).cloned();
        let counts = known.unwrap_or_else(|| RuleCounts::new(workers));
        by_rule.insert(name, Arc::clone(&counts));
        counts
    });
    let counts = counts.collect();
    (by_rule, counts)
}
