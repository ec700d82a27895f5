//! What sketches have found, and how several of them become one.

use std::collections::HashMap;

/// The most keys of a sketch, and of what becomes of several.
pub const MAX_TALLIES: usize = 256;

/// Whose calls are counted: one consumer's under one strategy, allowed or denied ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerKey<S = u32> {
    /// The strategy: its place in the configuration, or its name.
    pub strategy: S,
    /// Whether the calls were allowed.
    pub allowed: bool,
    /// The consumer.
    pub consumer: Box<str>,
}

/// An estimate of how many calls there were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerTally<S = u32> {
    /// Whose.
    pub key: ConsumerKey<S>,
    /// Not too low, but for what the sample does.
    pub count: u64,
    /// By how much `count` may be too high.
    pub error: u64,
}

/// What was found in one span of time. All counts are of calls: those of the sample, times its rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSummary<S = u32> {
    /// At most [`MAX_TALLIES`].
    pub tallies: Vec<ConsumerTally<S>>,
    /// The most calls of a key that is not among them.
    pub missing: u64,
    /// All calls.
    pub calls: u64,
    /// One of so many calls was looked at.
    pub rate: u32,
}

impl<S> Default for ConsumerSummary<S> {
    fn default() -> Self {
        Self { tallies: Vec::new(), missing: 0, calls: 0, rate: 0 }
    }
}

impl<S: Clone + Eq + std::hash::Hash + Ord> ConsumerSummary<S> {
    /// Several as one. A key that a part does not list may have as many calls there as that part says of those that
    /// are missing: so much is added to its count and to its error.
    #[must_use]
    pub fn merged<'s>(parts: impl IntoIterator<Item = &'s Self>) -> Self
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

    /// By how much a count may be off because only a sample was looked at: five standard deviations, which less than
    /// one count in a million exceeds.
    #[must_use]
    pub fn sampling_error(&self, count: u64) -> u64 {
        if self.rate <= 1 {
            return 0;
        }
        // Of `count / rate` samples the deviation is its root at most; and one sample is `rate` calls.
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
