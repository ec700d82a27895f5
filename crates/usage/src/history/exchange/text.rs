//! Encoding of values in Redis. Other nodes' values are validated: malformed ones are skipped.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::consumers::{ConsumerKey, ConsumerSummary, ConsumerTally, MAX_TALLIES};
use crate::history::level::SlotEntry;
use crate::history::series::SeriesName;

/// Numbers of series, calls and cost.
pub(super) fn entries(entries: &[SlotEntry]) -> String {
    let texts: Vec<String> = entries.iter().map(|(id, calls, cost)| format!("{id}:{calls}:{cost}")).collect();
    texts.join(" ")
}

/// Reads [`entries`]; the number of a series stays a text.
pub(super) fn each_entry<'t>(text: &'t str, mut each: impl FnMut(&'t str, u64, u64)) {
    for entry in text.split(' ') {
        let mut parts = entry.splitn(3, ':');
        let id = parts.next();
        let mut number = || parts.next()?.parse::<u64>().ok();
        if let (Some(id), Some(calls), Some(cost)) = (id, number(), number()) {
            each(id, calls, cost);
        }
    }
}

pub(super) fn name(name: &SeriesName) -> String {
    let SeriesName { strategy, pattern, outcome, cost } = name;
    match &**cost {
        "" => json!([&**strategy, &**pattern, &**outcome]).to_string(),
        cost => json!([&**strategy, &**pattern, &**outcome, cost]).to_string(),
    }
}

/// Reads [`name`]s, by the numbers of their series.
pub(super) fn names(fields: Vec<(String, String)>) -> HashMap<String, SeriesName> {
    let name = |(id, text): (String, String)| {
        let Ok(Value::Array(parts)) = serde_json::from_str(&text) else { return None };
        let ([strategy, pattern, outcome], cost) = parts.split_first_chunk::<3>()?;
        let text = |part: &Value| part.as_str().map(Arc::<str>::from);
        let cost = match cost {
            [] => Arc::default(),
            [cost] => text(cost)?,
            _ => return None,
        };
        let (strategy, pattern, outcome) = (text(strategy)?, text(pattern)?, text(outcome)?);
        Some((id, SeriesName { strategy, pattern, outcome, cost }))
    };
    fields.into_iter().filter_map(name).collect()
}

/// The tallies by their counts, and the summary's other fields.
pub(super) fn members(found: &ConsumerSummary<Arc<str>>) -> Vec<(u64, String)> {
    let ConsumerSummary { tallies, missing, calls, rate } = found;
    let tally = |ConsumerTally { key, count, error }: &ConsumerTally<Arc<str>>| {
        (*count, json!([error, &*key.strategy, key.allowed, &*key.consumer]).to_string())
    };
    let all = json!({ "missing": missing, "calls": calls, "rate": rate }).to_string();
    tallies.iter().map(tally).chain([(0, all)]).collect()
}

/// Reads [`members`]; `None` if there are none.
pub(super) fn summary(members: Vec<(String, u64)>) -> Option<ConsumerSummary<Arc<str>>> {
    let mut summary = ConsumerSummary::default();
    for (text, count) in members.into_iter().take(MAX_TALLIES + 1) {
        match serde_json::from_str(&text) {
            Ok(Value::Array(parts)) => summary.tallies.extend(tally(&parts, count)),
            Ok(Value::Object(all)) => {
                let number = |name: &str| all.get(name).and_then(Value::as_u64).unwrap_or(0);
                (summary.missing, summary.calls) = (number("missing"), number("calls"));
                summary.rate = u32::try_from(number("rate")).unwrap_or(u32::MAX);
            }
            _ => {}
        }
    }
    (summary.calls > 0).then_some(summary)
}

fn tally(parts: &[Value], count: u64) -> Option<ConsumerTally<Arc<str>>> {
    let [error, strategy, allowed, consumer] = parts else { return None };
    let key = ConsumerKey {
        strategy: strategy.as_str()?.into(),
        allowed: allowed.as_bool()?,
        consumer: consumer.as_str()?.into(),
    };
    Some(ConsumerTally { key, count, error: error.as_u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_as_it_was_written() {
        let counted = [(0, 1, 2), (5_007, u64::MAX, 0)];
        let mut read = Vec::new();
        let text = entries(&counted);
        each_entry(&text, |id, calls, cost| read.push((id.parse().unwrap(), calls, cost)));
        assert_eq!(read, counted);
        for cost in ["", "output"] {
            let (strategy, pattern) = ("a:b \"c\"".into(), "{x}\n*".into());
            let awkward = SeriesName { strategy, pattern, outcome: "denied".into(), cost: cost.into() };
            let read = names(vec![("7".to_owned(), name(&awkward))]);
            assert_eq!(read["7"], awkward);
        }
        let key = ConsumerKey { strategy: "s".into(), allowed: false, consumer: "\u{1f42f} [1]".into() };
        let tallies = vec![ConsumerTally { key, count: 9, error: 2 }];
        let found = ConsumerSummary { tallies, missing: 3, calls: 11, rate: 16 };
        let members = members(&found).into_iter().map(|(count, text)| (text, count)).collect();
        assert_eq!(summary(members), Some(found));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut read = 0;
        for text in ["", "1", "1:2", "1:x:3", "::", "1:2:-3", "1:99999999999999999999:3"] {
            each_entry(text, |_, _, _| read += 1);
        }
        assert_eq!(read, 0);
        for text in ["", "[]", "[1,2,3]", "{}", "[\"a\",\"b\"]", "[\"a\",\"b\",\"c\",\"d\",\"e\"]"] {
            assert!(names(vec![("0".to_owned(), text.to_owned())]).is_empty(), "{text}");
            assert_eq!(summary(vec![(text.to_owned(), 5)]), None, "{text}");
        }
    }
}
