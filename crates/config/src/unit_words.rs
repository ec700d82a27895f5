//! Words that people write for units of time, and what to write instead.

use super::values::quote;

/// A unit, and its other words.
const WORDS: [(&str, &[&str]); 6] = [
    ("ms", &["msec", "msecs", "millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds", "S"]),
    ("m", &["min", "mins", "minute", "minutes", "M"]),
    ("h", &["hr", "hrs", "hour", "hours", "H"]),
    ("d", &["day", "days", "D"]),
    ("w", &["week", "weeks", "W"]),
];

/// Returns the unit that a word stands for.
pub(super) fn unit_of(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(unit, _)| *unit)
}

/// Says what to write instead of `text`, in which a unit has another word, or is a month.
pub(super) fn instead(text: &str, unit: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let shown = quote(text);
    if ["mo", "month", "months"].contains(&unit) {
        return Some(format!(
            "{shown} is not a duration, because months differ; write days, such as 30d, or of a fixed_window `calendar: month`"
        ));
    }
    let meant = text.replace(unit, unit_of(unit)?);
    fits(&meant).then(|| format!("{shown} is not a duration; write {meant}"))
}
