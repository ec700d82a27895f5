//! `--inline`: a limit in the request itself.

use std::time::Duration;

use weir_config::rate_of;
use weir_core::algorithm::Rate;
use weir_proto::v1::inline_limit::Algorithm;
use weir_proto::v1::{InlineBucketedWindow, InlineLimit, InlineTokenBucket, InlineWindow};

const FORM: &str = "write NAME:ALGORITHM:RATE, such as api:token_bucket:10/1s:20 or api:sliding_log:100/1m";

/// Parses an inline limit. The server checks its bounds.
pub(super) fn limit(text: &str) -> Result<InlineLimit, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (name, algorithm, rate, last) = match *parts {
        [name, algorithm, rate] => (name, algorithm, rate, None),
        [name, "token_bucket", rate, burst] => (name, "token_bucket", rate, Some(number("burst", burst)?)),
        [name, "bucketed_window", rate, buckets] => {
            (name, "bucketed_window", rate, Some(number("buckets", buckets)?))
        }
        _ => return Err(FORM.to_owned()),
    };
    let Rate { count, period } = rate_of(rate).map_err(|error| format!("{error}; {FORM}"))?;
    let period = Duration::from(period);
    let span = Some(period.try_into().map_err(|_| format!("the period of {rate} is too long"))?);
    let window = InlineWindow { limit: count, window: span };
    let algorithm = match algorithm {
        "token_bucket" => {
            Algorithm::TokenBucket(InlineTokenBucket { rate: count, period: span, burst: last })
        }
        "fixed_window" => Algorithm::FixedWindow(window),
        "sliding_window" => Algorithm::SlidingWindow(window),
        "sliding_log" => Algorithm::SlidingLog(window),
        "bucketed_window" => {
            let buckets = last.ok_or_else(|| format!("buckets are missing; {FORM}"))?;
            Algorithm::BucketedWindow(InlineBucketedWindow { limit: count, window: span, buckets })
        }
        other => {
            return Err(format!(
                "{other} is none of token_bucket, fixed_window, sliding_window, sliding_log, bucketed_window; {FORM}"
            ));
        }
    };
    Ok(InlineLimit { name: name.to_owned(), algorithm: Some(algorithm), ..InlineLimit::default() })
}

fn number(what: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{what} is {text}: it must be a whole number; {FORM}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_short_to_write() {
        let bucket = limit("api:token_bucket:10/s:20").unwrap();
        let Some(Algorithm::TokenBucket(bucket)) = bucket.algorithm else { panic!() };
        assert_eq!((bucket.rate, bucket.period.unwrap().seconds, bucket.burst), (10, 1, Some(20)));
        let log = limit("api:sliding_log:100/1m").unwrap();
        let Some(Algorithm::SlidingLog(log)) = log.algorithm else { panic!() };
        assert_eq!((log.limit, log.window.unwrap().seconds), (100, 60));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, named) in [
            ("api", "NAME:ALGORITHM:RATE"),
            ("api:fixed_window:10/1s:5", "NAME:ALGORITHM:RATE"),
            ("api:fixed_window:10", "is not a rate"),
            ("api:fixed_window:x/1s", "is not a whole number"),
            ("api:token_bucket:1/1s:y", "burst is y"),
            ("api:gcra:10/1s", "gcra is none of token_bucket"),
        ] {
            let error = limit(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
