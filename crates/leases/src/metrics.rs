//! Gauges of strategies with permits: what the store's answers to this node said last, summed over the keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::proto::Metric;
use weir_core::strategy::{Rules, Strategy};
use weir_node::telemetry::families::{FamilyCollector, FamilySpec, gauge};
use weir_time::clock;

/// Keys that one worker remembers.
const MAX_KEYS: usize = 4_096;

/// Time for which an answer counts after the leases of its time have ended.
const KEPT: Duration = Duration::from_secs(60);

const FAMILIES: [FamilySpec; 3] = [
    FamilySpec::gauge(
        "weir_permits_held",
        "Permits that are held, as the store's last answers to this node said, summed over the keys of a strategy.",
        &["strategy"],
    ),
    FamilySpec::gauge(
        "weir_permits_limit",
        "Permits that there are, fixed or adaptive, as these answers said, summed over the same keys.",
        &["strategy"],
    ),
    FamilySpec::gauge(
        "weir_permits_keys",
        "Keys of a strategy that this node has asked for lately.",
        &["strategy"],
    ),
];

/// Answers that all workers have seen, and the strategies on the metrics page. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PermitGauges(Arc<GaugesState>);

#[derive(Default)]
struct GaugesState {
    workers: Mutex<Vec<Arc<SeenPermits>>>,
    rules: ArcSwap<Rules>,
}

/// The answers that one worker got last, by the digests of their keys.
#[derive(Debug, Default)]
pub struct SeenPermits(Mutex<HashMap<u128, SeenKey>>);

/// The permits of one key, as an answer said.
#[derive(Debug, Clone)]
pub(crate) struct SeenKey {
    pub(crate) strategy: Arc<Strategy>,
    /// Permits that are held.
    pub(crate) held: u64,
    /// Permits that there are.
    pub(crate) limit: u64,
    /// Time of the answer.
    pub(crate) at: Instant,
    /// Time after which every lease of the answer has ended.
    pub(crate) longest: Duration,
}

/// Sums over the keys of one strategy.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct PermitSums {
    held: u64,
    limit: u64,
    keys: u64,
}

impl PermitGauges {
    /// Shows the strategies of these rules from now on.
    pub(crate) fn follow(&self, rules: Arc<Rules>) {
        self.0.rules.store(rules);
    }

    /// Returns the answers of one more worker.
    pub(crate) fn worker(&self) -> Arc<SeenPermits> {
        let seen = Arc::<SeenPermits>::default();
        self.0.workers.lock().push(Arc::clone(&seen));
        seen
    }

    /// Returns the collector.
    pub(crate) fn collector(&self) -> Result<impl Collector + 'static, prometheus::Error> {
        let gauges = self.clone();
        FamilyCollector::new(FAMILIES, move || {
            let sums = gauges.sums();
            let metrics = |value: fn(&PermitSums) -> u64| -> Vec<Metric> {
                let one = |(strategy, sum): (&String, &PermitSums)| {
                    gauge(&[("strategy", strategy)], value(sum) as f64)
                };
                sums.iter().map(one).collect()
            };
            [metrics(|sum| sum.held), metrics(|sum| sum.limit), metrics(|sum| sum.keys)]
        })
    }

    /// The sums of each strategy with permits, by its name.
    fn sums(&self) -> BTreeMap<String, PermitSums> {
        let mut sums = sums(self.0.workers.lock().iter().map(|worker| &**worker));
        for strategy in self.0.rules.load().strategies().iter().filter(|it| it.permits().is_some()) {
            sums.entry(strategy.name().to_owned()).or_default();
        }
        sums
    }
}

impl SeenPermits {
    /// Records an answer. At the bound, stale keys are evicted; without any, the key is left out.
    pub(crate) fn saw(&self, key: u128, seen: SeenKey) {
        let mut keys = self.0.lock();
        if keys.len() >= MAX_KEYS && !keys.contains_key(&key) {
            keys.retain(|_, known| known.counts(seen.at));
            if keys.len() >= MAX_KEYS {
                return;
            }
        }
        keys.insert(key, seen);
    }
}

impl SeenKey {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.longest.saturating_add(KEPT)
    }
}

/// The sums of each strategy, by its name. Of the workers' answers about one key the newest counts.
fn sums<'w>(workers: impl Iterator<Item = &'w SeenPermits>) -> BTreeMap<String, PermitSums> {
    let (now, mut newest) = (clock::monotonic(), HashMap::<u128, SeenKey>::new());
    for worker in workers {
        let mut keys = worker.0.lock();
        keys.retain(|_, seen| seen.counts(now));
        for (key, seen) in keys.iter() {
            let known = newest.entry(*key).or_insert_with(|| seen.clone());
            if known.at < seen.at {
                *known = seen.clone();
            }
        }
    }
    let mut sums = BTreeMap::<String, PermitSums>::new();
    for seen in newest.values() {
        let sum = sums.entry(seen.strategy.name().to_owned()).or_default();
        sum.held = sum.held.saturating_add(seen.held);
        sum.limit = sum.limit.saturating_add(seen.limit);
        sum.keys += 1;
    }
    sums
}

#[cfg(test)]
mod tests {
    use weir_core::strategy::{
        ConcurrencyNumbers, ConcurrencyRule, FailurePolicy, Field, LimitSource, Scope,
    };
    use weir_units::Micros;

    use super::*;

    fn strategy(name: &str) -> Arc<Strategy> {
        let (ttl, source) = (Micros::from_secs(30), LimitSource::Fixed(10));
        let numbers = ConcurrencyNumbers { source, ttl, max_ttl: ttl, max_weight: None, partitions: None };
        let rule = ConcurrencyRule::new(numbers).unwrap();
        Arc::new(
            Strategy::of_leases(name, Scope::new(&[Field::Consumer]), rule, FailurePolicy::Error).unwrap(),
        )
    }

    #[test]
    fn the_newest_answer_about_each_key_counts_and_old_ones_do_not() {
        let workers = [SeenPermits::default(), SeenPermits::default()];
        let (now, first, second) = (clock::monotonic(), strategy("first"), strategy("second"));
        let seen = |strategy: &Arc<Strategy>, held, at| {
            let strategy = Arc::clone(strategy);
            SeenKey { strategy, held, limit: 10, at, longest: Duration::from_secs(30) }
        };
        let old = now.checked_sub(Duration::from_secs(100)).unwrap_or(now);
        workers[0].saw(1, seen(&first, 4, now - Duration::from_millis(5)));
        workers[1].saw(1, seen(&first, 3, now));
        workers[1].saw(2, seen(&first, 2, now));
        workers[0].saw(3, seen(&second, 9, old));
        let sums = sums(workers.iter());
        assert_eq!(sums.get("first"), Some(&PermitSums { held: 5, limit: 20, keys: 2 }));
        assert_eq!(sums.get("second"), None, "its leases have ended a minute ago");
    }

    #[test]
    fn a_worker_remembers_a_bounded_number_of_keys() {
        let worker = SeenPermits::default();
        let (strategy, at) = (strategy("first"), clock::monotonic());
        let seen = SeenKey { strategy, held: 1, limit: 1, at, longest: KEPT };
        (0..2 * MAX_KEYS as u128).for_each(|key| worker.saw(key, seen.clone()));
        assert_eq!(sums(std::iter::once(&worker))["first"].keys, MAX_KEYS as u64);
    }
}
