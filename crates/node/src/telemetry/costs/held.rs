//! Units in open holds, as the store's last answers to this node said, by limit.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use weir_core::algorithm::budget::{BudgetVerdict, HoldBounds};
use weir_core::key::{KeySecret, Subject, write_parts_identity};
use weir_core::strategy::Strategy;

const MAX_KEYS: usize = 4_096;

/// One worker's answers, by the digests of their keys.
#[derive(Debug, Default)]
pub(super) struct HeldKeys(HashMap<u128, HeldUnits>);

/// Held units of a key, by an answer.
#[derive(Debug, Clone)]
struct HeldUnits {
    strategy: Box<str>,
    limit: Box<str>,
    held: u64,
    at: Instant,
    /// Time at which every hold of the answer has ended.
    ends: Instant,
}

/// The newest answer of all workers about each key.
#[derive(Debug, Default)]
pub(super) struct HeldSums(HashMap<u128, HeldUnits>);

impl HeldKeys {
    /// Remembers an answer that came `now`. At the bound, keys whose holds have ended make room, or the key is left out.
    pub(super) fn saw(
        &mut self,
        (strategy, bounds): (&Strategy, HoldBounds),
        subject: &Subject<'_>,
        verdict: &BudgetVerdict,
        now: Instant,
    ) {
        let longest = bounds.max.0.saturating_add(bounds.grain());
        let ends = now + Duration::from_micros(longest);
        let mut name = Vec::with_capacity(128);
        for (index, (limit, one)) in strategy.limits().iter().zip(&verdict.limits).enumerate() {
            if !strategy
                .costed()
                .and_then(|costed| costed.limits.get(index))
                .is_some_and(|limit| limit.holds())
            {
                continue;
            }
            name.clear();
            write_parts_identity(&mut name, strategy, index, subject);
            let key = KeySecret::BUILT_IN.hash(&name);
            if let Some(known) = self.0.get_mut(&key) {
                (known.held, known.at, known.ends) = (one.held, now, ends);
                continue;
            }
            if self.0.len() >= MAX_KEYS {
                self.0.retain(|_, known| known.ends > now);
            }
            if self.0.len() < MAX_KEYS {
                let (strategy, limit) = (strategy.name().into(), limit.name.clone());
                self.0.insert(key, HeldUnits { strategy, limit, held: one.held, at: now, ends });
            }
        }
    }
}

impl HeldSums {
    pub(super) fn add(&mut self, keys: &HeldKeys, now: Instant) {
        for (key, seen) in keys.0.iter().filter(|(_, seen)| seen.ends > now) {
            match self.0.get_mut(key) {
                Some(known) if known.at >= seen.at => {}
                Some(known) => *known = seen.clone(),
                None => drop(self.0.insert(*key, seen.clone())),
            }
        }
    }

    pub(super) fn by_limit(self) -> BTreeMap<(Box<str>, Box<str>), u64> {
        let mut sums = BTreeMap::new();
        for HeldUnits { strategy, limit, held, .. } in self.0.into_values() {
            let sum: &mut u64 = sums.entry((strategy, limit)).or_default();
            *sum = sum.saturating_add(held);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use weir_core::algorithm::Algorithm;
    use weir_core::algorithm::budget::{BudgetLimit, BudgetLimitVerdict, CostedLimits, LimitCost};
    use weir_core::strategy::{FailurePolicy, Field, Limit, Scope};
    use weir_time::clock::monotonic;
    use weir_units::{Micros, Retry};

    use super::*;

    const HOLD: HoldBounds = HoldBounds { max: Micros::from_secs(16), known_for: Micros::from_secs(60) };

    fn strategy() -> Strategy {
        let algorithm = Algorithm::fixed_window(100, Micros::from_secs(60), false, false).unwrap();
        let limit =
            |name: &str| Limit { name: name.into(), scope: Scope::new(&[Field::Consumer]), algorithm };
        let limits = vec![limit("rpm"), limit("output")];
        let of = |cost| BudgetLimit { algorithm, cost, at_once: false, near_percent: None };
        let costed = CostedLimits {
            limits: vec![of(LimitCost::Fixed(1)), of(LimitCost::Named(0))],
            names: vec!["output".into()],
            hold: Some(HOLD),
        };
        Strategy::new("llm", limits, false, FailurePolicy::Error).unwrap().with_costs(costed)
    }

    fn verdict(held: u64) -> BudgetVerdict {
        let limit = BudgetLimitVerdict {
            cause: None,
            cost: 1,
            granted: None,
            charged: None,
            uncharged: 0,
            remaining: 0,
            retry: Retry::Now,
            reset_after: Micros::ZERO,
            held,
            near: None,
            crossed_near: false,
            level_before: 0,
        };
        BudgetVerdict {
            now: Micros::ZERO,
            allowed: true,
            fitted: true,
            applied: true,
            wait: Micros::ZERO,
            held_for: None,
            outcome: None,
            retry: Retry::Now,
            reset_after: Micros::ZERO,
            limits: [limit, limit].into_iter().collect(),
        }
    }

    fn subject(consumer: &str) -> Subject<'_> {
        Subject { consumer, ..Subject::default() }
    }

    #[test]
    fn the_newest_answer_about_each_key_counts_until_its_holds_have_ended() {
        let (strategy, start) = (strategy(), monotonic());
        let later = |seconds| start + Duration::from_secs(seconds);
        let [mut one, mut other] = [HeldKeys::default(), HeldKeys::default()];
        one.saw((&strategy, HOLD), &subject("bob"), &verdict(40), start);
        other.saw((&strategy, HOLD), &subject("bob"), &verdict(10), later(1));
        one.saw((&strategy, HOLD), &subject("eve"), &verdict(5), later(2));
        let sums = |now| {
            let mut sums = HeldSums::default();
            [&one, &other].into_iter().for_each(|keys| sums.add(keys, now));
            sums.by_limit().into_iter().map(|((_, limit), held)| (limit, held)).collect::<Vec<_>>()
        };
        assert_eq!(sums(later(3)), [("output".into(), 15)], "a fixed cost is not held");
        assert_eq!(sums(later(18)), [("output".into(), 5)]);
        assert_eq!(sums(later(20)), []);
    }

    #[test]
    fn a_worker_remembers_a_bounded_number_of_keys() {
        let (strategy, start, mut keys) = (strategy(), monotonic(), HeldKeys::default());
        for consumer in 0..2 * MAX_KEYS {
            keys.saw((&strategy, HOLD), &subject(&consumer.to_string()), &verdict(1), start);
        }
        assert_eq!(keys.0.len(), MAX_KEYS);
        keys.saw((&strategy, HOLD), &subject("last"), &verdict(1), start + Duration::from_secs(20));
        assert_eq!(keys.0.len(), 1, "those that have ended make room");
    }
}
