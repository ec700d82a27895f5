//! Usage by second in RedisTimeSeries: a series for each strategy, pattern and outcome of this node.
//!
//! A second is written once it is over, the last one when the process ends. It can be written again without harm, so
//! nothing is lost while Redis is away, up to [`KEPT`] seconds.
//!
//! The previous process may have ended in the second in which this one begins, and a sample replaces an earlier one.
//! So the counts of the first second are added to the sample of the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use weir_store::redis::{UsageLink, UsageTimeSeries};
use weir_units::Micros;

use super::collect::{Collector, second};
use super::history::{History, Resolution};
use super::series::SeriesName;

/// Seconds kept while they cannot be written.
const KEPT: u64 = 300;

/// Most samples per write; more wait for the next second.
const MAX_SAMPLES: usize = 5_000;

/// Seconds until a series and its rule are created again, in case they were deleted.
const MAKE_EVERY: u64 = 60;

/// Label of resources that no pattern matches; a label cannot be empty.
const NO_PATTERN: &str = "none";

/// Writer of one node's series.
pub(super) struct TimeSeries {
    link: UsageLink,
    node: String,
    /// The second in which this process began.
    first: u64,
    /// The next second to write.
    next: u64,
    /// Numbers of the series that exist. Redis does not tell if it is emptied, so they are created again at times.
    made: BTreeSet<usize>,
    made_since: u64,
    /// Series by number.
    series: Vec<UsageTimeSeries>,
    /// Why the last write failed, if it did.
    failed: Option<String>,
}

impl TimeSeries {
    pub(super) fn new(link: UsageLink, node: &str, started: Micros) -> Self {
        let (node, first) = (node.to_owned(), second(started));
        let (next, made, series) = (first + 1, BTreeSet::new(), Vec::new());
        Self { link, node, first, next, made, made_since: first, series, failed: None }
    }

    /// Starts over at `now`.
    pub(super) fn begin_anew(&mut self, now: Micros) {
        (self.first, self.next) = (second(now), second(now) + 1);
        self.made_since = self.first;
        self.made.clear();
    }

    /// Writes the seconds that are over and not written yet; and the last one, if the process ends.
    pub(super) async fn write(&mut self, collector: &Collector, now: Micros, ends: bool) {
        let open = if ends { (second(now) + 1).max(self.first + 2) } else { second(now) };
        self.next = self.next.max(open.saturating_sub(KEPT));
        self.name_new_series(collector);
        let (mut samples, mut next) = (Vec::new(), self.next);
        while next < open && samples.len() < MAX_SAMPLES {
            samples.extend(samples_of(&collector.history, self.first, next));
            next += 1;
        }
        match self.write_samples(&samples, open).await {
            Ok(()) => {
                self.next = next;
                if self.failed.take().is_some() {
                    tracing::info!("usage is written to RedisTimeSeries again");
                }
            }
            Err(reason) => {
                self.made.clear();
                if self.failed.replace(reason.clone()).is_none() {
                    tracing::warn!(
                        reason,
                        what_to_do = "docs/usage.md says what RedisTimeSeries needs; `usage.timeseries: false` turns this off",
                        "usage is not written to RedisTimeSeries; it is kept for five minutes"
                    );
                }
            }
        }
    }

    async fn write_samples(&mut self, samples: &[(usize, u64, u64)], open: u64) -> Result<(), String> {
        if samples.is_empty() {
            return Ok(());
        }
        if open >= self.made_since + MAKE_EVERY {
            self.made_since = open;
            self.made.clear();
        }
        let used: BTreeSet<usize> = samples.iter().map(|(id, _, _)| *id).collect();
        let new: Vec<usize> = used.difference(&self.made).copied().collect();
        let series: Vec<_> = new.iter().filter_map(|id| self.series.get(*id)).cloned().collect();
        self.link.make_series(&series).await?;
        self.made.extend(new);
        let sample = |(id, at, calls): &(usize, u64, u64)| Some((self.series.get(*id)?, *at, *calls));
        let samples: Vec<_> = samples.iter().filter_map(sample).collect();
        self.link.add_samples(&samples).await
    }

    fn name_new_series(&mut self, collector: &Collector) {
        for number in self.series.len()..collector.series.len() {
            let Some(name) = collector.series.name_at(number) else { return };
            self.series.push(self.of(name));
        }
    }

    fn of(&self, name: &SeriesName) -> UsageTimeSeries {
        let SeriesName { strategy, pattern, outcome } = name;
        let pattern = if pattern.is_empty() { NO_PATTERN.to_owned() } else { plain(pattern) };
        let strategy = plain(strategy);
        let key = format!("ts:{}:{strategy}:{pattern}:{outcome}", self.node);
        let (node, outcome) = (self.node.clone(), outcome.to_string());
        let labels = vec![("strategy", strategy), ("pattern", pattern), ("outcome", outcome), ("node", node)];
        UsageTimeSeries { key, labels }
    }
}

/// The samples of a second: series, milliseconds and calls. `first` is the second in which the process began.
fn samples_of(history: &History, first: u64, second: u64) -> impl Iterator<Item = (usize, u64, u64)> {
    let mut sums = BTreeMap::<usize, u64>::new();
    let begins = if second == first + 1 { first } else { second };
    for (id, calls, _) in (begins..=second).flat_map(|second| history.slot(Resolution::Second, second)) {
        *sums.entry(usize::from(id)).or_default() += calls;
    }
    sums.into_iter().map(move |(id, calls)| (id, second * 1_000, calls))
}

/// RedisTimeSeries takes no commas and parentheses in labels, and a colon is what separates the parts of a key.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii_graphic() && !"%,():{}'\"".contains(char) {
            plain.push(char);
            continue;
        }
        for byte in char.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a String cannot fail.
            let _ = write!(plain, "%{byte:02x}");
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{History, plain, samples_of};

    #[test]
    fn a_process_writes_nothing_at_the_second_in_which_it_began() {
        let mut history = History::new(100);
        for (second, id, calls) in [(100, 0, 2), (100, 1, 1), (101, 0, 5), (102, 0, 7)] {
            history.add(second, (id, calls, calls));
        }
        let samples = |second| samples_of(&history, 100, second).collect::<Vec<_>>();
        assert_eq!(samples(101), [(0, 101_000, 7), (1, 101_000, 1)]);
        assert_eq!(samples(102), [(0, 102_000, 7)]);
    }

    #[test]
    fn labels_are_plain() {
        assert_eq!(plain("zewtopia.com/*"), "zewtopia.com/*");
        assert_eq!(plain("a(b,c) d:é%"), "a%28b%2cc%29%20d%3a%c3%a9%25");
    }
}
