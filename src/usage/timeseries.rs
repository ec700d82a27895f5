//! What each second counted, in RedisTimeSeries: a series for each strategy, pattern and outcome of this node.
//!
//! A second is written once it is over. It can be written again without harm, so nothing is lost while Redis is away, up
//! to [`KEPT`] seconds.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::collect::{Collector, second};
use super::history::Resolution;
use super::series::SeriesName;
use crate::store::redis::{UsageLink, UsageTimeSeries};
use crate::units::Micros;

/// Seconds that are kept while they cannot be written.
const KEPT: u64 = 300;

/// Values that are written at a time; more wait for the next second.
const MAX_SAMPLES: usize = 5_000;

/// Seconds until a series and its rule are made again, in case they are gone.
const MAKE_EVERY: u64 = 60;

/// The label of resources that no pattern matches; a label cannot be empty.
const NO_PATTERN: &str = "none";

/// One node's side of it.
pub(super) struct TimeSeries {
    link: UsageLink,
    node: String,
    /// The next second to write.
    next: u64,
    /// The numbers of series that are there. Whoever empties Redis does not say so, so they are made again at times.
    made: BTreeSet<usize>,
    made_since: u64,
    /// By the numbers of the series.
    series: Vec<UsageTimeSeries>,
    /// Why the last write failed, if it did.
    failed: Option<String>,
}

impl TimeSeries {
    pub(super) fn new(link: UsageLink, node: &str, started: Micros) -> Self {
        let (node, next) = (node.to_owned(), second(started));
        Self { link, node, next, made: BTreeSet::new(), made_since: next, series: Vec::new(), failed: None }
    }

    /// Writes the seconds that are over and not written yet.
    pub(super) async fn write(&mut self, collector: &Collector, now: Micros) {
        let open = second(now);
        self.next = self.next.max(open.saturating_sub(KEPT));
        self.name_new_series(collector);
        let (mut samples, mut next) = (Vec::new(), self.next);
        while next < open && samples.len() < MAX_SAMPLES {
            let entries = collector.history.slot(Resolution::Second, next);
            samples.extend(entries.into_iter().map(|(id, calls, _)| (usize::from(id), next * 1_000, calls)));
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
    use super::plain;

    #[test]
    fn labels_are_plain() {
        assert_eq!(plain("zewtopia.com/*"), "zewtopia.com/*");
        assert_eq!(plain("a(b,c) d:é%"), "a%28b%2cc%29%20d%3a%c3%a9%25");
    }
}
