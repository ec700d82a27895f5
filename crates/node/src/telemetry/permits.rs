//! Gauges of strategies with permits: what the store's answers to this node said last, summed over the keys.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::proto::Metric;
use weir_time::clock;

use super::families::labelled;
use super::names::CounterNames;
use super::sampled::gauge;

/// Keys that one worker remembers.
const MAX_KEYS: usize = 4_096;

/// How long an answer counts after the leases of its time have ended.
const KEPT: Duration = Duration::from_secs(60);

/// The answers that one worker got last, by the digests of their keys.
#[derive(Debug, Default)]
pub(super) struct SeenPermits(Mutex<HashMap<u128, SeenKey>>);

/// The permits of one key, as an answer said.
#[derive(Debug, Clone, Copy)]
pub struct SeenKey {
    /// The number of the strategy's name; the recorder sets it.
    pub strategy: u32,
    /// Permits that are held.
    pub held: u64,
    /// Permits that there are.
    pub limit: u64,
    /// When the answer came.
    pub at: Instant,
    /// After which time every lease of the answer has ended.
    pub longest: Duration,
}

/// Sums over the keys of one strategy.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PermitSums {
    pub(super) held: u64,
    pub(super) limit: u64,
    pub(super) keys: u64,
}

impl SeenPermits {
    /// Remembers an answer. At the bound, keys that nobody asked for any more make room, or the key is left out.
    pub(super) fn saw(&self, key: u128, seen: SeenKey) {
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

/// The sums of each strategy. Of the workers' answers about one key the newest counts.
pub(super) fn sums<'w>(workers: impl Iterator<Item = &'w SeenPermits>) -> BTreeMap<u32, PermitSums> {
    let (now, mut newest) = (clock::monotonic(), HashMap::<u128, SeenKey>::new());
    for worker in workers {
        let mut keys = worker.0.lock();
        keys.retain(|_, seen| seen.counts(now));
        for (key, seen) in keys.iter() {
            let known = newest.entry(*key).or_insert(*seen);
            if known.at < seen.at {
                *known = *seen;
            }
        }
    }
    let mut sums = BTreeMap::<u32, PermitSums>::new();
    for seen in newest.values() {
        let sum = sums.entry(seen.strategy).or_default();
        sum.held = sum.held.saturating_add(seen.held);
        sum.limit = sum.limit.saturating_add(seen.limit);
        sum.keys += 1;
    }
    sums
}

/// One gauge of each strategy with permits.
pub(super) fn metrics(
    sums: &BTreeMap<u32, PermitSums>,
    names: &CounterNames,
    value: fn(&PermitSums) -> u64,
) -> Vec<Metric> {
    let one = |(strategy, sum): (&u32, &PermitSums)| {
        let mut metric = gauge(value(sum) as f64);
        metric.set_label(labelled(&[("strategy", names.strategy(*strategy)?)]).take_label());
        Some(metric)
    };
    sums.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answer_about_each_key_counts_and_old_ones_do_not() {
        let workers = [SeenPermits::default(), SeenPermits::default()];
        let now = clock::monotonic();
        let seen =
            |strategy, held, at| SeenKey { strategy, held, limit: 10, at, longest: Duration::from_secs(30) };
        let old = now.checked_sub(Duration::from_secs(100)).unwrap_or(now);
        workers[0].saw(1, seen(0, 4, now - Duration::from_millis(5)));
        workers[1].saw(1, seen(0, 3, now));
        workers[1].saw(2, seen(0, 2, now));
        workers[0].saw(3, seen(1, 9, old));
        let sums = sums(workers.iter());
        assert_eq!(sums.get(&0), Some(&PermitSums { held: 5, limit: 20, keys: 2 }));
        assert_eq!(sums.get(&1), None, "its leases have ended a minute ago");
    }

    #[test]
    fn a_worker_remembers_a_bounded_number_of_keys() {
        let worker = SeenPermits::default();
        let seen = SeenKey { strategy: 0, held: 1, limit: 1, at: clock::monotonic(), longest: KEPT };
        (0..2 * MAX_KEYS as u128).for_each(|key| worker.saw(key, seen));
        assert_eq!(sums(std::iter::once(&worker))[&0].keys, MAX_KEYS as u64);
    }
}
