//! The `resources` section: which strategy a resource has when the caller names none.

use std::collections::HashMap;

use super::errors::{Position, Report};
use super::fields::{Fields, Value};
use super::strategies::Strategies;
use super::values::{Scalar, nearest, quote, text_within};
use crate::key::MAX_PART;
use crate::strategy::{MAX_NAME, Resource, Resources};

/// The patterns of the file.
pub(super) fn resources(root: &mut Fields<'_>, strategies: &Strategies, report: &mut Report) -> Resources {
    let items = root.take("resources").and_then(|section| section.items(report)).unwrap_or_default();
    let mut seen = HashMap::new();
    let mut patterns = Vec::with_capacity(items.len());
    for item in &items {
        patterns.extend(resource(item, strategies, &mut seen, report));
    }
    Resources::new(patterns)
}

fn resource(
    item: &Value<'_>,
    strategies: &Strategies,
    seen: &mut HashMap<String, Position>,
    report: &mut Report,
) -> Option<(String, Resource)> {
    let mut fields = Fields::of(item, report);
    let matches =
        fields.require("match", "give it a resource, or the beginning of many and a final *", report);
    let pattern = matches.and_then(|value| {
        let pattern = value.read(report, pattern)?;
        match seen.get(&pattern) {
            Some(first) => {
                let (line, column) = (first.line, first.column);
                value.report(
                    report,
                    format!("{} is given twice; the first is at {line}:{column}", quote(&pattern)),
                );
                None
            }
            None => {
                seen.insert(pattern.clone(), value.at());
                Some(pattern)
            }
        }
    });
    let strategy = fields.require("strategy", "name one of `strategies`", report);
    let strategy = strategy.and_then(|value| reference(&value, strategies, report));
    let group = fields.read("group", report, |s| text_within(s, MAX_PART));
    fields.finish(report);
    Some((pattern?, Resource { strategy: strategy?, group: group.map(Into::into) }))
}

/// A resource, or a prefix and a final `*`.
fn pattern(scalar: Scalar<'_>) -> Result<String, String> {
    let text = text_within(scalar, MAX_PART)?;
    let prefix = text.strip_suffix('*').unwrap_or(&text);
    if prefix.contains('*') {
        return Err(format!("{}: a * can stand only at the end of a pattern", quote(&text)));
    }
    Ok(text)
}

/// The place of the strategy that is named.
fn reference(value: &Value<'_>, strategies: &Strategies, report: &mut Report) -> Option<usize> {
    /// Beyond this many names, comparing them all is not worth its time.
    const COMPARED: usize = 1000;
    let name = value.read(report, |s| text_within(s, MAX_NAME))?;
    let index = strategies.names.get(&name).copied();
    // What is not there may stand in a part that could not be read.
    if index.is_none() && strategies.whole {
        let names = strategies.names.keys().map(String::as_str).take(COMPARED);
        let near = if report.is_full() { None } else { nearest(&name, names) };
        let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        value.report(report, format!("there is no strategy {}{help}", quote(&name)));
    }
    index
}
