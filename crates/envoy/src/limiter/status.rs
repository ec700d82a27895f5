//! Status of one descriptor, and the count of its hits.

use std::mem;
use std::sync::Arc;

use crate::rules::{Domain, Kind, RateLimit, Rule};
use weir_core::algorithm::{LimitVerdict, Op, Verdict};
use weir_node::settle::Outcome;
use weir_units::Micros;

use super::{DescriptorDecision, DescriptorQuestion, EnvoyLimiter, FoundLimit, Loaded, name};
use crate::metrics::Hits;

/// Status code of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Within its limit, or without one.
    Ok,
    /// Over its limit.
    OverLimit,
}

/// The status of one descriptor.
#[derive(Debug, Clone)]
pub struct DescriptorStatus<'a> {
    /// Status code.
    pub code: Code,
    found: FoundLimit<'a>,
    /// Hits that would still pass now; `u32::MAX` where the rule is unlimited.
    pub remaining: u32,
    /// Time until the window ends or, for limits without windows, until the limit is full again. In whole seconds,
    /// rounded up: Envoy shows no fractions, and a client that waits this long is not early.
    pub until_reset_s: Option<u64>,
    /// True if it denies only together with all other descriptors in quota mode.
    pub quota_mode: bool,
}

impl<'a> DescriptorStatus<'a> {
    /// True if it is over its limit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.code == Code::OverLimit
    }

    /// The rule of the files that matched.
    #[must_use]
    pub fn rule(&self) -> Option<&'a Arc<Rule>> {
        self.found.rule()
    }

    /// The limit that was charged; `None` if a policy answered, because its state is then unknown.
    #[must_use]
    pub fn limit(&self) -> Option<&RateLimit> {
        self.until_reset_s.and_then(|_| self.found.limit())
    }
}

/// Builds the status of one descriptor, which takes what was found for its question, and counts its hits.
#[inline]
pub(super) fn status_of<'a>(
    envoy: &EnvoyLimiter,
    loaded: &Loaded,
    domain: Option<&Domain>,
    question: &mut DescriptorQuestion<'a>,
    decided: Option<&Outcome<DescriptorDecision>>,
) -> DescriptorStatus<'a> {
    let DescriptorQuestion { op, hits, .. } = *question;
    let found = mem::replace(&mut question.found, FoundLimit::Nothing);
    name::give_back(mem::take(&mut question.name));
    let rule = found.rule().map(|rule| &**rule);
    let quota_mode = envoy.config.quota_mode || rule.is_some_and(|rule| rule.quota_mode);
    let (Some(limit), Some(decided)) = (found.limit(), decided) else {
        // An unlimited rule has no budget, so in quota mode it is not one with room.
        let (remaining, quota_mode) = if rule.is_some() { (u32::MAX, false) } else { (0, quota_mode) };
        return DescriptorStatus { code: Code::Ok, found, remaining, until_reset_s: None, quota_mode };
    };
    let (over, remaining, until_reset) = match decided {
        Outcome::Decided(DescriptorDecision { verdict, limit: one, .. })
        | Outcome::Local(DescriptorDecision { verdict, limit: one, .. }) => {
            let over = !verdict.fitted && op != Op::Refund;
            (over, one.remaining, Some(until_reset(limit, verdict, one)))
        }
        Outcome::Policy { .. } | Outcome::Listed(_) | Outcome::Banned(_) => (!decided.is_allowed(), 0, None),
    };
    let shadow = over && rule.is_some_and(|rule| rule.shadow_mode);
    if op != Op::Refund {
        let algorithm = limit.strategy().algorithms().first();
        let counted = match (decided, algorithm) {
            (Outcome::Decided(decision), Some(algorithm)) => {
                let before = decision.limit.used_before(algorithm);
                let counted =
                    count(algorithm.limit(), before, hits, over, shadow, envoy.config.near_limit_ratio);
                Hits { cached: if decision.cached { counted.over } else { 0 }, ..counted }
            }
            // The state of the limit is unknown, so only the total is counted.
            _ => Hits { total: hits, degraded: hits, ..Hits::default() },
        };
        match rule {
            Some(rule) => {
                loaded.counts(rule).into_iter().for_each(|counts| envoy.recorder.hit(counts, counted))
            }
            None => {
                let counts = domain.and_then(|domain| loaded.domain_counts(domain));
                counts.into_iter().for_each(|counts| envoy.recorder.hit_given(counts, counted));
            }
        }
    }
    let code = if over && !shadow { Code::OverLimit } else { Code::Ok };
    let remaining = if over { 0 } else { u32::try_from(remaining).unwrap_or(u32::MAX) };
    DescriptorStatus { code, found, remaining, until_reset_s: until_reset.map(Micros::secs_ceil), quota_mode }
}

/// A fixed window ends regardless of use.
fn until_reset(limit: &RateLimit, verdict: &Verdict, one: &LimitVerdict) -> Micros {
    match limit.kind() {
        Kind::FixedWindow { .. } => {
            let length = limit.unit().seconds() * u64::from(limit.unit_multiplier()) * 1_000_000;
            Micros((length - verdict.now.0 % length).max(one.reset_after.0))
        }
        _ => one.reset_after,
    }
}

/// Splits the hits as the reference does: hits that cross a line count on both sides of it, whether they were
/// charged, forced or denied. `before` is the use before them.
fn count(limit: u64, before: u64, hits: u64, over: bool, shadow: bool, ratio: f32) -> Hits {
    let near_from = ((limit as f32 * ratio) as u64).min(limit);
    let after = before.saturating_add(hits);
    let above = |line: u64| after.saturating_sub(before.max(line));
    let over_hits = if over { above(limit) } else { 0 };
    Hits {
        total: hits,
        over: over_hits,
        near: above(near_from).saturating_sub(over_hits),
        within: if over { 0 } else { hits },
        shadow: if shadow { over_hits } else { 0 },
        degraded: 0,
        cached: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_that_cross_a_line_count_on_both_sides() {
        // 15 an hour, near from 12.
        let near = |before: u64, over| count(15, before, 1, over, false, 0.8);
        assert_eq!(near(10, false), Hits { total: 1, within: 1, ..Hits::default() });
        assert_eq!(near(12, false), Hits { total: 1, within: 1, near: 1, ..Hits::default() });
        assert_eq!(near(15, true), Hits { total: 1, over: 1, ..Hits::default() });
        // Of 20, near from 16.
        let of_20 = |before, hits| count(20, before, hits, before + hits > 20, true, 0.8);
        assert_eq!(of_20(19, 3), Hits { total: 3, over: 2, near: 1, shadow: 2, ..Hits::default() });
        assert_eq!(of_20(15, 7), Hits { total: 7, over: 2, near: 4, shadow: 2, ..Hits::default() });
        assert_eq!(of_20(22, 7), Hits { total: 7, over: 7, shadow: 7, ..Hits::default() });
        assert_eq!(of_20(0, 20), Hits { total: 20, within: 20, near: 4, ..Hits::default() });
    }
}
