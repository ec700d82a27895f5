//! Hints for a single value that stands in the place of a mapping.

use super::unit_words::unit_of;

/// A mapping that says the same, for a value at a path; none for what nobody can guess.
pub(super) fn written_out(path: &str, text: &str) -> Option<String> {
    let key = path.rsplit('.').next()?;
    if path == "store" {
        return store(text);
    }
    let (count, period) = text.split_once('/').or_else(|| text.split_once(" per "))?;
    let (count, period) = (count.trim(), period.trim());
    count.parse::<u64>().ok()?;
    let unit = unit_of(period).or_else(|| ["s", "m", "h", "d"].into_iter().find(|unit| *unit == period))?;
    Some(match key {
        "fixed_window" | "sliding_window" | "bucketed_window" | "sliding_log" => {
            format!("{key}: {{ limit: {count}, window: 1{unit} }}")
        }
        "token_bucket" | "gcra" | "leaky_bucket" | "leaky_queue" => {
            format!("{key}: {{ rate: {count}/1{unit}, burst: {count} }}")
        }
        _ => return None,
    })
}

/// The store as a URL or a word, as other programs have it.
fn store(text: &str) -> Option<String> {
    match text {
        "memory" => Some("store: { memory: {} }, or nothing".to_owned()),
        _ if text.starts_with("redis://") || text.starts_with("rediss://") || text.starts_with("unix://") => {
            Some("store: { redis: { nodes: [\"URL\"] } }, with this URL".to_owned())
        }
        "redis" => Some("store: { redis: { nodes: [\"redis://127.0.0.1:6379\"] } }".to_owned()),
        _ => None,
    }
}
