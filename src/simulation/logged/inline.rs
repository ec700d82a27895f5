//! The limit that a request brought along, as its line has it.

use serde_json::Value;
use weir_core::algorithm::{Algorithm, Rate};
use weir_units::Micros;

use super::{LogLine, Mistake};

impl LogLine<'_> {
    pub(super) fn inline(&self) -> Result<Option<Algorithm>, Mistake> {
        let Some(given) = self.object.get("inline") else { return Ok(None) };
        let wrong = |why: &str| self.at("inline", format!("`inline` is no limit of a request: {why}"));
        let number = |name: &str| {
            let number = given.get(name).and_then(Value::as_u64);
            number.ok_or_else(|| wrong(&format!("`{name}` must be a whole number from 0")))
        };
        let window = || Ok((number("limit")?, Micros(number("window_us")?)));
        let made = match given.get("algorithm").and_then(Value::as_str) {
            Some("token_bucket") => {
                let rate = Rate { count: number("rate")?, period: Micros(number("period_us")?) };
                Algorithm::bucket(number("burst")?, rate)
            }
            Some("fixed_window") => {
                let (limit, span) = window()?;
                Algorithm::fixed_window(limit, span, false, false)
            }
            Some("sliding_window") => window().map(|(limit, span)| Algorithm::sliding_window(limit, span))?,
            Some("sliding_log") => window().map(|(limit, span)| Algorithm::sliding_log(limit, span))?,
            Some("bucketed_window") => {
                let (limit, span) = window()?;
                Algorithm::bucketed_window(limit, span, number("buckets")?, true)
            }
            _ => {
                let known = "token_bucket, fixed_window, sliding_window, sliding_log, bucketed_window";
                return Err(wrong(&format!("`algorithm` must be one of {known}")));
            }
        };
        made.map(Some).map_err(|error| wrong(&error.to_string()))
    }
}
