//! `weir_refused_calls_total`: refused calls by reason. The counts are kept where calls are refused.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{MetricFamily, MetricType};

use super::families::{counter, family};

const NAME: &str = "weir_refused_calls_total";
const HELP: &str = "Calls and questions that were refused for want of a credential or a right.";

/// Collector over a function that returns each reason with its count.
pub(super) struct RefusalCollector<F> {
    counts: F,
    description: Desc,
}

impl<F> RefusalCollector<F> {
    pub(super) fn new(counts: F) -> Result<Self, prometheus::Error> {
        let labels = vec!["reason".to_owned()];
        let description = Desc::new(NAME.to_owned(), HELP.to_owned(), labels, HashMap::new())?;
        Ok(Self { counts, description })
    }
}

impl<F: Fn() -> Vec<(&'static str, u64)> + Send + Sync> Collector for RefusalCollector<F> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let one = |(reason, count)| counter(&[("reason", reason)], count);
        vec![family(NAME, HELP, MetricType::COUNTER, (self.counts)().into_iter().map(one).collect())]
    }
}
