//! Summaries of sketches, and how they are merged.

use std::collections::HashMap;

/// Most keys of a sketch, and of a merged summary.
pub(crate) const MAX_TALLIES: usize = 256;

/// Key of a tally: a consumer's allowed or denied calls under one strategy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConsumerKey<S = u32> {
    /// The strategy's index in the configuration, or its name.
    pub(crate) strategy: S,
    /// True for allowed calls.
    pub(crate) allowed: bool,
    /// The consumer.
    pub(crate) consumer: Box<str>,
}

/// Estimated number of calls of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsumerTally<S = u32> {
    /// The key.
    pub(crate) key: ConsumerKey<S>,
    /// Never an underestimate, apart from sampling.
    pub(crate) count: u64,
    /// The most by which `count` may be too high.
    pub(crate) error: u64,
}

/// Summary of one span of time. All counts are calls: samples times the sample rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsumerSummary<S = u32> {
    /// Tallies, at most [`MAX_TALLIES`].
    pub(crate) tallies: Vec<ConsumerTally<S>>,
    /// Upper bound of the calls of a key that is not among them.
    pub(crate) missing: u64,
    /// Number of all calls.
    pub(crate) calls: u64,
    /// Sample rate: one call in `rate` was counted.
    pub(crate) rate: u32,
}

impl<S> Default for ConsumerSummary<S> {
    fn default() -> Self {
        Self { tallies: Vec::new(), missing: 0, calls: 0, rate: 0 }
    }
}

impl<S: Clone + Eq + std::hash::Hash + Ord> ConsumerSummary<S> {
    /// Merges summaries. A key that a part does not list may have up to `missing` calls there; these are added to its
    /// count and to its error.
    #[must_use]
    pub(crate) fn merged<'s>(parts: impl IntoIterator<Item = &'s Self>) -> Self
    where
        S: 's,
    {
        let (mut sums, mut merged) = (HashMap::<&ConsumerKey<S>, (u64, u64, u64)>::new(), Self::default());
        for part in parts {
            for ConsumerTally { key, count, error } in &part.tallies {
                let sum = sums.entry(key).or_default();
                let (counts, errors, listed) = (
                    sum.0.saturating_add(*count),
                    sum.1.saturating_add(*error),
                    sum.2.saturating_add(part.missing),
                );
                *sum = (counts, errors, listed);
            }
            merged.missing = merged.missing.saturating_add(part.missing);
            merged.calls = merged.calls.saturating_add(part.calls);
            merged.rate = merged.rate.max(part.rate);
        }
        let tally = |(key, (count, error, listed)): (&ConsumerKey<S>, (u64, u64, u64))| {
            let unlisted = merged.missing.saturating_sub(listed);
            let (count, error) = (count.saturating_add(unlisted), error.saturating_add(unlisted));
            ConsumerTally { key: key.clone(), count, error }
        };
        let mut tallies: Vec<_> = sums.into_iter().map(tally).collect();
        tallies.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        if let Some(dropped) = tallies.get(MAX_TALLIES) {
            merged.missing = merged.missing.max(dropped.count);
        }
        tallies.truncate(MAX_TALLIES);
        Self { tallies, ..merged }
    }

    /// Sampling error of a count: five standard deviations, exceeded by less than one count in a million.
    #[must_use]
    pub(crate) fn sampling_error(&self, count: u64) -> u64 {
        if self.rate <= 1 {
            return 0;
        }
        // Among `count / rate` samples the deviation is at most its root, and one sample stands for `rate` calls.
        let rate = f64::from(self.rate);
        (5.0 * (count.max(u64::from(self.rate)) as f64 * rate).sqrt()).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(missing: u64, tallies: &[(&str, u64, u64)]) -> ConsumerSummary {
        let tally = |&(consumer, count, error): &(&str, u64, u64)| ConsumerTally {
            key: ConsumerKey { strategy: 0, allowed: true, consumer: consumer.into() },
            count,
            error,
        };
        ConsumerSummary { tallies: tallies.iter().map(tally).collect(), missing, calls: 100, rate: 1 }
    }

    #[test]
    fn what_a_part_does_not_list_is_added_as_error() {
        let merged =
            ConsumerSummary::merged(&[summary(3, &[("a", 10, 2), ("b", 5, 0)]), summary(4, &[("a", 7, 1)])]);
        assert_eq!(merged.tallies, summary(0, &[("a", 17, 3), ("b", 9, 4)]).tallies);
        assert_eq!((merged.missing, merged.calls), (7, 200));
    }

    #[test]
    fn no_more_than_the_bound_are_kept_and_those_dropped_are_within_what_is_missing() {
        let names: Vec<String> = (0..300).map(|index| format!("c{index:03}")).collect();
        let tallies: Vec<_> = names.iter().zip(1..).map(|(name, count)| (name.as_str(), count, 0)).collect();
        let merged = ConsumerSummary::merged(&[summary(0, &tallies)]);
        assert_eq!((merged.tallies.len(), merged.missing), (MAX_TALLIES, 44));
        assert_eq!(&*merged.tallies[0].key.consumer, "c299");
    }
}
