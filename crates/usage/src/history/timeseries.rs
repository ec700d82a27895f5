//! Usage by second in RedisTimeSeries: two series, calls and cost, for each strategy, pattern and outcome of this process.
//!
//! A second is written once it is over, the last one when the process ends. It can be written again without harm, so
//! nothing is lost while Redis is away, up to [`KEPT`] seconds.
//!
//! The incarnation is part of the key: two processes may have the same node name, and a sample replaces an earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use weir_units::Micros;

use super::collect::{Collector, second};
use super::exchange::incarnation;
use super::resolutions::{History, Resolution};
use super::series::SeriesName;
use crate::store::{UsageLink, UsageSample, UsageTimeSeries};

/// Seconds kept while they cannot be written.
const KEPT: u64 = 300;

/// Most samples per write; more wait for the next second.
const MAX_SAMPLES: usize = 5_000;

/// Seconds until a series and its rule are created again, in case they were deleted.
const MAKE_EVERY: u64 = 60;

/// Label of resources that no pattern matches; a label cannot be empty.
const NO_PATTERN: &str = "none";

/// The columns written for each counted series: label and place of its value.
const DATA: [&str; 2] = ["hits", "cost"];

/// Label in place of the second for costs by name, whose units are no sum: they have the label `cost`.
const UNITS: &str = "units";

/// Writer of one process's series.
pub(super) struct TimeSeries {
    link: UsageLink,
    node: String,
    incarnation: String,
    /// The next second to write.
    next: u64,
    /// Numbers of the series that exist. Redis does not tell if it is emptied, so they are created again at times.
    made: BTreeSet<usize>,
    made_since: u64,
    /// Series by number: those of counted series `n` have the numbers `2n` and `2n + 1`.
    series: Vec<UsageTimeSeries>,
    /// Reason why the last write failed.
    failed: Option<String>,
}

impl TimeSeries {
    pub(super) fn new(link: UsageLink, node: &str, started: Micros) -> Self {
        let (node, incarnation, next) = (node.to_owned(), incarnation(started), second(started));
        let (made, series) = (BTreeSet::new(), Vec::new());
        Self { link, node, incarnation, next, made, made_since: next, series, failed: None }
    }

    /// Starts over at `now`, as another process of the node would.
    pub(super) fn begin_anew(&mut self, now: Micros) {
        (self.incarnation, self.next, self.made_since) = (incarnation(now), second(now), second(now));
        self.made.clear();
        self.series.clear();
    }

    /// Writes the seconds that are over and not written yet; and the last one, if the process ends.
    pub(super) async fn write(&mut self, collector: &Collector, now: Micros, ends: bool) {
        let open = second(now) + u64::from(ends);
        self.next = self.next.max(open.saturating_sub(KEPT));
        self.name_new_series(collector);
        let (mut samples, mut next) = (Vec::new(), self.next);
        while next < open && samples.len() < MAX_SAMPLES {
            samples.extend(samples_of(&collector.history, next));
            next += 1;
        }
        match self.write_samples(&samples, open).await {
            Ok(()) => {
                self.next = next;
                if self.failed.take().is_some() {
                    tracing::info!("usage export to RedisTimeSeries recovered");
                }
            }
            Err(reason) => {
                self.made.clear();
                if self.failed.replace(reason.clone()).is_none() {
                    tracing::warn!(
                        reason,
                        what_to_do = "docs/usage.md says what RedisTimeSeries needs; `usage.timeseries: false` turns this off",
                        "cannot write usage to RedisTimeSeries; keeping it for five minutes"
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
        let sample = |&(id, at_ms, value): &(usize, u64, u64)| {
            Some(UsageSample { series: self.series.get(id)?, at_ms, value })
        };
        let samples: Vec<_> = samples.iter().filter_map(sample).collect();
        self.link.add_samples(&samples).await
    }

    fn name_new_series(&mut self, collector: &Collector) {
        for number in self.series.len() / DATA.len()..collector.series.len() {
            let Some(name) = collector.series.name_at(number) else { return };
            let of_both = DATA.map(|data| self.time_series(name, data));
            self.series.extend(of_both);
        }
    }

    fn time_series(&self, name: &SeriesName, data: &'static str) -> UsageTimeSeries {
        let SeriesName { strategy, pattern, outcome, cost } = name;
        let pattern = if pattern.is_empty() { NO_PATTERN.to_owned() } else { plain(pattern) };
        let strategy = plain(strategy);
        let (node, incarnation) = (self.node.clone(), self.incarnation.clone());
        let mut key = format!("ts:{node}:{incarnation}:{strategy}:{pattern}:{outcome}:{data}");
        let mut labels = vec![
            ("strategy", strategy),
            ("pattern", pattern),
            ("outcome", outcome.to_string()),
            ("node", node),
            ("incarnation", incarnation),
        ];
        if cost.is_empty() {
            return UsageTimeSeries { key, data, labels };
        }
        // Its calls are none, so it has no samples of the first column.
        let cost = plain(cost);
        let _ = write!(key, ":{cost}");
        labels.push(("cost", cost));
        UsageTimeSeries { key, data: UNITS, labels }
    }
}

/// The samples of a second: series, milliseconds and value. A series has no sample where it counted nothing.
fn samples_of(history: &History, second: u64) -> Vec<(usize, u64, u64)> {
    let mut sums = BTreeMap::<usize, u64>::new();
    for (id, calls, cost) in history.slot(Resolution::Second, second) {
        for (number, value) in
            (DATA.len() * usize::from(id)..).zip([calls, cost]).filter(|(_, value)| *value > 0)
        {
            *sums.entry(number).or_default() += value;
        }
    }
    sums.into_iter().map(|(number, value)| (number, second * 1_000, value)).collect()
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
    fn a_second_has_a_sample_of_calls_and_one_of_cost_where_something_was_charged() {
        let mut history = History::new(100);
        for (second, id, calls, cost) in [(100, 0, 2, 5), (100, 1, 1, 0), (101, 0, 7, 7)] {
            history.add(second, (id, calls, cost));
        }
        assert_eq!(samples_of(&history, 100), [(0, 100_000, 2), (1, 100_000, 5), (2, 100_000, 1)]);
        assert_eq!(samples_of(&history, 101), [(0, 101_000, 7), (1, 101_000, 7)]);
        assert_eq!(samples_of(&history, 102), []);
    }

    #[test]
    fn labels_are_plain() {
        assert_eq!(plain("zewtopia.com/*"), "zewtopia.com/*");
        assert_eq!(plain("a(b,c) d:é%"), "a%28b%2cc%29%20d%3a%c3%a9%25");
    }
}
