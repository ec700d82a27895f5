//! The consumers that call most, in the last minute and in the last hour.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::consumers::{ConsumerKey, ConsumerSummary, ConsumerTally};

/// Length of a part of the last minute, in seconds.
pub(super) const PART: u64 = 10;

/// Parts of a minute, and minutes of an hour.
const PARTS: usize = 6;
const MINUTES: usize = 60;

/// Window of a question about consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsumersWindow {
    /// The last six whole parts of ten seconds, and the one that has begun.
    Minute,
    /// The last 60 whole minutes, and what followed them.
    Hour,
}

/// Question about consumers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsumersAsk {
    /// The strategy; `None` is any.
    pub(crate) strategy: Option<String>,
    /// Allowed or denied calls; `None` is both.
    pub(crate) allowed: Option<bool>,
    /// Window.
    pub(crate) window: ConsumersWindow,
    /// Number of consumers.
    pub(crate) n: usize,
}

/// Answer: the consumers with the most calls first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConsumersAnswer {
    /// Consumers, each with the sampling error.
    pub(crate) consumers: Vec<(ConsumerTally<Arc<str>>, u64)>,
    /// Upper bound of the calls of a consumer that is not among them.
    pub(crate) missing: u64,
    /// Sample rate: one call in `rate` was counted.
    pub(crate) rate: u32,
    /// Number of all calls.
    pub(crate) calls: u64,
    /// Nodes that contributed.
    pub(crate) nodes: Vec<String>,
    /// Reason why other nodes' summaries are missing.
    pub(crate) incomplete: Option<String>,
}

/// Summaries of one node: parts of the last minute, and whole minutes.
#[derive(Default)]
pub(super) struct ConsumerWindows {
    parts: VecDeque<(u64, ConsumerSummary<Arc<str>>)>,
    minutes: VecDeque<(u64, ConsumerSummary<Arc<str>>)>,
    /// Spans that were not sent to other nodes yet; bounded by the windows.
    unsent: BTreeSet<FoundIn>,
}

/// Span of a summary: the number of a part, or of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoundIn {
    Part(u64),
    Minute(u64),
}

impl FoundIn {
    /// Key in Redis.
    pub(super) const fn key(self) -> (char, u64) {
        match self {
            Self::Part(slot) => ('c', slot),
            Self::Minute(slot) => ('d', slot),
        }
    }

    /// TTL of the key, in seconds.
    pub(super) const fn ttl(self) -> u64 {
        match self {
            Self::Part(_) => 120,
            Self::Minute(_) => 3_900,
        }
    }
}

impl ConsumerWindows {
    /// Adds the summary of the part of `second`.
    pub(super) fn add(&mut self, second: u64, found: ConsumerSummary<Arc<str>>) {
        if found.calls == 0 {
            return;
        }
        for (windows, width, most) in
            [(&mut self.parts, PART, PARTS + 1), (&mut self.minutes, 60, MINUTES + 1)]
        {
            let slot = second / width;
            match windows.back_mut() {
                Some((last, summary)) if *last >= slot => {
                    *summary = ConsumerSummary::merged([&*summary, &found])
                }
                _ => windows.push_back((slot, found.clone())),
            }
            if windows.len() > most {
                windows.pop_front();
            }
        }
        self.unsent.insert(FoundIn::Part(second / PART));
        self.unsent.insert(FoundIn::Minute(second / 60));
    }

    /// Spans that are over and not sent to other nodes yet.
    pub(super) fn unsent(&mut self, now: u64) -> Vec<FoundIn> {
        let mut unsent = std::mem::take(&mut self.unsent);
        unsent.retain(|span| self.found_in(*span).is_some());
        self.unsent = unsent;
        let has_ended = |span: &&FoundIn| match span {
            FoundIn::Part(slot) => *slot < now / PART,
            FoundIn::Minute(slot) => *slot < now / 60,
        };
        self.unsent.iter().filter(has_ended).copied().collect()
    }

    /// Marks spans as sent.
    pub(super) fn sent(&mut self, spans: &[FoundIn]) {
        spans.iter().for_each(|span| {
            self.unsent.remove(span);
        });
    }

    /// The summary of a span.
    pub(super) fn found_in(&self, span: FoundIn) -> Option<&ConsumerSummary<Arc<str>>> {
        let (windows, slot) = match span {
            FoundIn::Part(slot) => (&self.parts, slot),
            FoundIn::Minute(slot) => (&self.minutes, slot),
        };
        windows.iter().find(|(known, _)| *known == slot).map(|(_, summary)| summary)
    }

    /// The summaries of a window that ends at `now`.
    pub(super) fn window(&self, window: ConsumersWindow, now: u64) -> Vec<&ConsumerSummary<Arc<str>>> {
        let (windows, width, back) = match window {
            ConsumersWindow::Minute => (&self.parts, PART, PARTS as u64),
            ConsumersWindow::Hour => (&self.minutes, 60, MINUTES as u64),
        };
        let first = (now / width).saturating_sub(back);
        windows.iter().filter(|(slot, _)| *slot >= first).map(|(_, summary)| summary).collect()
    }
}

/// Replaces numbers by names.
pub(super) fn named(found: ConsumerSummary, name: impl Fn(u32) -> Arc<str>) -> ConsumerSummary<Arc<str>> {
    let tally = |ConsumerTally { key, count, error }: ConsumerTally| {
        let ConsumerKey { strategy, allowed, consumer } = key;
        ConsumerTally { key: ConsumerKey { strategy: name(strategy), allowed, consumer }, count, error }
    };
    let ConsumerSummary { tallies, missing, calls, rate } = found;
    ConsumerSummary { tallies: tallies.into_iter().map(tally).collect(), missing, calls, rate }
}

impl ConsumersAsk {
    /// The answer from all summaries.
    pub(super) fn answer<'s>(
        &self,
        parts: impl IntoIterator<Item = &'s ConsumerSummary<Arc<str>>>,
        nodes: Vec<String>,
        incomplete: Option<String>,
    ) -> ConsumersAnswer {
        let merged = ConsumerSummary::merged(parts);
        let is_wanted = |key: &ConsumerKey<Arc<str>>| {
            self.strategy.as_deref().is_none_or(|strategy| strategy == &*key.strategy)
                && self.allowed.is_none_or(|allowed| allowed == key.allowed)
        };
        let with_error =
            |tally: &ConsumerTally<Arc<str>>| (tally.clone(), merged.sampling_error(tally.count));
        let wanted = merged.tallies.iter().filter(|tally| is_wanted(&tally.key));
        let consumers = wanted.take(self.n).map(with_error).collect();
        let missing = merged.missing.saturating_add(merged.sampling_error(merged.missing));
        ConsumersAnswer { consumers, missing, rate: merged.rate, calls: merged.calls, nodes, incomplete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(consumer: &str, count: u64) -> ConsumerSummary<Arc<str>> {
        let key = ConsumerKey { strategy: "s".into(), allowed: true, consumer: consumer.into() };
        ConsumerSummary {
            tallies: vec![ConsumerTally { key, count, error: 0 }],
            missing: 0,
            calls: count,
            rate: 1,
        }
    }

    fn counts(windows: &ConsumerWindows, window: ConsumersWindow, now: u64) -> Vec<(String, u64)> {
        let ask = ConsumersAsk { strategy: None, allowed: None, window, n: 10 };
        let answer = ask.answer(windows.window(window, now), vec![], None);
        answer.consumers.into_iter().map(|(tally, _)| (tally.key.consumer.into(), tally.count)).collect()
    }

    #[test]
    fn calls_leave_a_window_when_it_has_passed() {
        let mut windows = ConsumerWindows::default();
        windows.add(1_000, found("early", 5));
        for second in (1_010..1_070).step_by(10) {
            windows.add(second, found("steady", 1));
        }
        let of = |consumer: &str, count| (consumer.to_owned(), count);
        assert_eq!(counts(&windows, ConsumersWindow::Minute, 1_069), [of("steady", 6), of("early", 5)]);
        assert_eq!(counts(&windows, ConsumersWindow::Minute, 1_070), [of("steady", 6)]);
        assert_eq!(counts(&windows, ConsumersWindow::Hour, 1_070), [of("steady", 6), of("early", 5)]);
        assert_eq!(counts(&windows, ConsumersWindow::Hour, 10_000), []);
    }

    #[test]
    fn a_strategy_and_an_outcome_can_be_asked_for() {
        let mut windows = ConsumerWindows::default();
        windows.add(0, found("a", 5));
        let ask = |strategy: Option<&str>, allowed| {
            let strategy = strategy.map(str::to_owned);
            let ask = ConsumersAsk { strategy, allowed, window: ConsumersWindow::Minute, n: 10 };
            ask.answer(windows.window(ConsumersWindow::Minute, 0), vec![], None).consumers.len()
        };
        assert_eq!([ask(Some("s"), Some(true)), ask(Some("t"), None), ask(None, Some(false))], [1, 0, 0]);
    }
}
