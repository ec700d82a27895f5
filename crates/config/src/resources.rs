//! The `resources` section: the default strategy of each resource.

use weir_core::key::MAX_PART;
use weir_core::strategy::{Resource, Resources};

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::known_strategies::Strategies;
use super::patterns::{WrittenPatterns, pattern};
use super::values::{quote, text_within};

/// Reads the patterns.
pub(super) fn resources(
    root: &mut Mapping<'_>,
    strategies: &Strategies,
    report: &mut MistakeReport,
) -> Resources {
    let items = root.take("resources").and_then(|section| section.items(report)).unwrap_or_default();
    let mut seen = WrittenPatterns::new();
    let mut patterns = Vec::with_capacity(items.len());
    for item in &items {
        patterns.extend(resource(item, strategies, &mut seen, report));
    }
    Resources::new(patterns)
}

fn resource(
    item: &NamedNode<'_>,
    strategies: &Strategies,
    seen: &mut WrittenPatterns<String>,
    report: &mut MistakeReport,
) -> Option<(String, Resource)> {
    let mut fields = Mapping::new(item, report);
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
