//! Numbers of a limit as people write them at a command: `50/1s`, `50`, or keys of the algorithm.

use weir_units::Micros;

use super::errors::MistakeReport;
use super::quantities::rate_of;
use super::tree::compose;
use super::values::{Digits, digits, nearest, quote, shortened};
use super::yaml_node::{Content, YamlNode};

/// Maximum length of the numbers of one limit, in bytes.
pub const MAX_NUMBERS: usize = 512;

/// Keys whose values are numbers.
const NUMBER_KEYS: [&str; 20] = [
    "accuracy",
    "buckets",
    "burst",
    "capacity",
    "cold_factor",
    "delay",
    "interval",
    "limit",
    "max_cost",
    "max_debt",
    "max_held",
    "max_ttl",
    "max_weight",
    "min_gap",
    "near_limit",
    "period",
    "rate",
    "refill",
    "ttl",
    "window",
];

/// Keys that say what an algorithm does, not how much.
const SWITCHES: [&str; 14] = [
    "aligned",
    "anchored",
    "calendar",
    "charge_after",
    "count_denied",
    "hold",
    "mode",
    "name",
    "nodelay",
    "offset",
    "partitions",
    "per",
    "spread",
    "strict",
];

/// Changes of the keys of an algorithm.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Patch {
    /// New values.
    pub(super) set: Vec<(String, String)>,
    /// Keys that the new ones replace.
    pub(super) unset: Vec<&'static str>,
}

/// Reads numbers for the algorithm of this name.
pub(super) fn patch_of(algorithm: &str, text: &str) -> Result<Patch, String> {
    if text.len() > MAX_NUMBERS {
        return Err(format!("the numbers have {} bytes; at most {MAX_NUMBERS} are allowed", text.len()));
    }
    let text = text.trim();
    if text.starts_with('{') {
        return of_mapping(text);
    }
    let set = match (text.split_once('/'), digits(text)) {
        (Some(_), _) => of_rate(algorithm, text)?,
        (None, Digits::Number(_)) => vec![(of_number(algorithm, text)?, text.to_owned())],
        (None, _) => {
            return Err(format!(
                "{} is neither a number nor a rate such as 50/1s nor keys such as {{ limit: 50, window: 1s }}",
                quote(text)
            ));
        }
    };
    let set = set.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
    Ok(Patch { set, unset: Vec::new() })
}

/// `50/1s`: the key or the two keys of the algorithm that say how much per time.
fn of_rate(algorithm: &str, text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let rate = rate_of(text)?;
    let (count, period) = (rate.count.to_string(), format!("{}us", rate.period.0));
    Ok(match algorithm {
        "token_bucket" | "gcra" | "leaky_bucket" | "leaky_queue" | "warm_up" => {
            vec![("rate", text.to_owned())]
        }
        "fixed_window" | "sliding_window" | "bucketed_window" | "sliding_log" => {
            vec![("limit", count), ("window", period)]
        }
        "interval_refill" => vec![("refill", count), ("period", period)],
        "uniform" => match rate.period.0.checked_rem(rate.count) {
            Some(0) => vec![("interval", format!("{}us", Micros(rate.period.0 / rate.count).0))],
            _ => return Err(format!("{} is no whole number of microseconds for each call", quote(text))),
        },
        _ => return Err(format!("{} is a rate; write a number of permits, such as 50", quote(text))),
    })
}

/// `50`: the key of the algorithm that says how much.
fn of_number(algorithm: &str, text: &str) -> Result<&'static str, String> {
    match algorithm {
        "fixed_window" | "sliding_window" | "bucketed_window" | "sliding_log" | "concurrency" => Ok("limit"),
        "interval_refill" => Ok("capacity"),
        _ => Err(format!("{text} is no rate; write how fast units come back, such as {text}/1s")),
    }
}

/// `{ rate: 50/1s, burst: 100 }`.
fn of_mapping(text: &str) -> Result<Patch, String> {
    let mut report = MistakeReport::default();
    let tree = compose(text, &mut 0, &mut report);
    let tree = report.finish("", tree).map_err(|errors| {
        let reasons: Vec<&str> = errors.errors().iter().map(|error| error.reason.as_str()).collect();
        format!("{} cannot be read: {}", quote(text), reasons.join("; "))
    })?;
    let Some(YamlNode { content: Content::Map(entries), .. }) = tree else {
        return Err(format!("{} has no keys", quote(text)));
    };
    if entries.is_empty() {
        return Err(format!("{} has no keys", quote(text)));
    }
    let (mut patch, mut mistakes) = (Patch::default(), Vec::new());
    for (key, value) in entries {
        let (Content::Scalar { text: key, .. }, Content::Scalar { text: value, .. }) =
            (key.content, value.content)
        else {
            mistakes.push("every key needs a single value".to_owned());
            continue;
        };
        mistakes.extend(mistake_of(&key));
        match key.as_str() {
            "accuracy" => patch.unset.push("buckets"),
            "buckets" => patch.unset.push("accuracy"),
            _ => {}
        }
        patch.set.push((key, value));
    }
    if mistakes.is_empty() { Ok(patch) } else { Err(mistakes.join("; ")) }
}

fn mistake_of(key: &str) -> Option<String> {
    if SWITCHES.contains(&key) {
        return Some(format!("`{key}` is no number: live control changes numbers only, and files the rest"));
    }
    if NUMBER_KEYS.contains(&key) {
        return None;
    }
    let near = nearest(key, NUMBER_KEYS);
    let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(format!("`{}` is no key of numbers{help}", shortened(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(algorithm: &str, text: &str) -> Result<Vec<(String, String)>, String> {
        patch_of(algorithm, text).map(|patch| patch.set)
    }

    #[test]
    fn short_forms_are_the_keys_of_the_algorithm() {
        let pairs = |all: &[(&str, &str)]| {
            Ok(all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(set("token_bucket", "50/1s"), pairs(&[("rate", "50/1s")]));
        assert_eq!(set("sliding_log", " 5/m "), pairs(&[("limit", "5"), ("window", "60000000us")]));
        assert_eq!(set("fixed_window", "5"), pairs(&[("limit", "5")]));
        assert_eq!(set("uniform", "4/1s"), pairs(&[("interval", "250000us")]));
        assert_eq!(set("interval_refill", "4/1s"), pairs(&[("refill", "4"), ("period", "1000000us")]));
        assert_eq!(set("concurrency", "4"), pairs(&[("limit", "4")]));
        assert_eq!(set("gcra", "{ rate: 2/s, burst: 3 }"), pairs(&[("rate", "2/s"), ("burst", "3")]));
        assert_eq!(patch_of("bucketed_window", "{ buckets: 6 }").unwrap().unset, ["accuracy"]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for (algorithm, text) in [
            ("uniform", "3/1s"),
            ("uniform", "0/1s"),
            ("token_bucket", "50"),
            ("concurrency", "5/1s"),
            ("fixed_window", ""),
            ("fixed_window", "{ limit: [1] }"),
            ("fixed_window", "{ anchored: true }"),
            ("fixed_window", "{ limits: 1 }"),
            ("fixed_window", "{ limit: 1"),
            ("fixed_window", "{}"),
            ("fixed_window", &"1".repeat(600)),
        ] {
            let read = set(algorithm, text);
            assert!(read.is_err(), "{algorithm} {text}: {read:?}");
        }
    }
}
