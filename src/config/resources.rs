//! The `resources` section: which strategy a resource has when the caller names none.

use super::errors::Report;
use super::fields::{Fields, Value};
use super::patterns::{Seen, pattern};
use super::strategies::Strategies;
use super::values::{quote, text_within};
use crate::key::MAX_PART;
use crate::strategy::{Resource, Resources};

/// The patterns of the file.
pub(super) fn resources(root: &mut Fields<'_>, strategies: &Strategies, report: &mut Report) -> Resources {
    let items = root.take("resources").and_then(|section| section.items(report)).unwrap_or_default();
    let mut seen = Seen::new();
    let mut patterns = Vec::with_capacity(items.len());
    for item in &items {
        patterns.extend(resource(item, strategies, &mut seen, report));
    }
    Resources::new(patterns)
}

fn resource(
    item: &Value<'_>,
    strategies: &Strategies,
    seen: &mut Seen<String>,
    report: &mut Report,
) -> Option<(String, Resource)> {
    let mut fields = Fields::of(item, report);
    let matches =
        fields.require("match", "give it a resource, or the beginning of many and a final *", report);
    let pattern = matches.and_then(|value| {
        let pattern = value.read(report, pattern)?;
        seen.is_new(pattern.clone(), &value, &quote(&pattern), report).then_some(pattern)
    });
    let strategy = fields.require("strategy", "name one of `strategies`", report);
    let strategy = strategy.and_then(|value| strategies.reference(&value, report));
    let strategy = strategy.and_then(|name| strategies.names.get(&name).copied());
    let group = fields.read("group", report, |s| text_within(s, MAX_PART));
    fields.finish(report);
    Some((pattern?, Resource { strategy: strategy?, group: group.map(Into::into) }))
}
