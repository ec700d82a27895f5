//! The limit that a picture has as a line: that of all its counters together, because bars are sums over all callers.

use std::collections::HashSet;

use weir_core::algorithm::budget::LimitCost;
use weir_core::strategy::{Field, Limit, Rules};
use weir_units::Micros;

use crate::cli::explanation::renewal;
use crate::simulation::{SimulatedCalls, SimulatedStrategy};

/// A limit, spread evenly over its window.
pub(super) struct DrawnLimit {
    /// The name of the limit.
    pub(super) name: String,
    /// The number of counters: one for each resource, each consumer, or each pair, as the limit counts.
    pub(super) counters: u64,
    /// The cost that all counters admit in a microsecond.
    rate: f64,
}

impl DrawnLimit {
    /// The limit that denied most; if none denied, the first one. `None` if it is never full again, or exists in no run.
    pub(super) fn find(rules: &Rules, result: &SimulatedStrategy, calls: &SimulatedCalls) -> Option<Self> {
        let strategy = rules.resolve("", &result.strategy).ok()?.strategy;
        let denied = |limit: &Limit| {
            let of = result.denied_by.iter().find(|(name, _)| **name == *limit.name);
            of.map_or(0, |(_, calls)| *calls)
        };
        // Bars are sums of the cost without a name: no line of tokens is drawn among calls.
        let takes = |place: usize| {
            strategy.costed().and_then(|costed| costed.limits.get(place)).map(|limit| limit.cost)
        };
        let drawn = |place: usize| takes(place).is_none_or(|cost| cost == LimitCost::Request);
        let enforced = strategy.limits().iter().enumerate();
        let enforced = enforced.filter(|(place, limit)| drawn(*place) && !limit.algorithm.is_shadow());
        // The first one of those that denied as often: `max_by_key` returns the last one.
        let (place, limit) = enforced.rev().max_by_key(|(_, limit)| denied(limit))?;
        let mut drawn = Self { name: limit.name.to_string(), counters: 0, rate: 0.0 };
        let mut seen = HashSet::new();
        let mut last = None;
        for (resource, consumer) in &calls.subjects {
            let part = |field, value| if limit.scope.has(field) { value } else { "" };
            if !seen.insert((part(Field::Resource, resource.as_str()), part(Field::Consumer, consumer))) {
                continue;
            }
            // A consumer may have numbers of its own. Where a list answers, no limit is asked.
            let resolved = rules.resolve_for(resource, consumer, &result.strategy).ok()?;
            let Some(own) = resolved.strategy.algorithms().get(place).filter(|_| resolved.listing.is_none())
            else {
                continue;
            };
            let rate = match last.filter(|(known, _)| known == own) {
                Some((_, rate)) => rate,
                None => own.limit() as f64 / Some(renewal(own)).filter(|span| *span > Micros::ZERO)?.0 as f64,
            };
            last = Some((*own, rate));
            drawn.counters += 1;
            drawn.rate += rate;
        }
        Some(drawn).filter(|drawn| drawn.counters > 0)
    }

    /// The cost that all counters admit in `span`, in the long run.
    pub(super) fn per(&self, span: Micros) -> f64 {
        // Without the last digits: 30.000000000000004 would need an axis up to 31.
        (self.rate * span.0 as f64 * 1e6).round() / 1e6
    }
}
