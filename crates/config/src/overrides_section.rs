//! The `overrides` section: other parameters for some consumers. A tier is an override with a pattern.

use weir_core::algorithm::Algorithm;
use weir_core::strategy::{Override, OverrideError, Strategy};

use super::algorithms::algorithm;
use super::costs::percent;
use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::known_strategies::{Base, Strategies};
use super::patterns::{WrittenPatterns, pattern};
use super::values::quote;

/// The unique key of an override.
type Target = (String, String, String);

/// Reads the overrides.
pub(super) fn overrides(
    root: &mut Mapping<'_>,
    strategies: &Strategies,
    report: &mut MistakeReport,
) -> Vec<Override> {
    let items = root.take("overrides").and_then(|section| section.items(report)).unwrap_or_default();
    let mut seen = WrittenPatterns::new();
    items.iter().filter_map(|item| one(item, strategies, &mut seen, report)).collect()
}

fn one(
    item: &NamedNode<'_>,
    strategies: &Strategies,
    seen: &mut WrittenPatterns<Target>,
    report: &mut MistakeReport,
) -> Option<Override> {
    let mut fields = Mapping::new(item, report);
    let who =
        fields.require("consumer", "give it a consumer, or the beginning of many and a final *", report);
    let consumer = who.as_ref().and_then(|value| value.read(report, pattern));
    let name = fields.require("strategy", "name one of `strategies`", report);
    let name = name.and_then(|value| strategies.reference(&value, report));
    let resource = match fields.take("resource") {
        Some(value) => value.read(report, pattern),
        None => Some("*".to_owned()),
    };
    let changes = fields.require("limits", "say which limits have other numbers", report);
    fields.finish(report);

    let base = name.as_ref().and_then(|name| strategies.base(name));
    let strategy = changes.and_then(|value| changed(&value, base.as_ref(), report));
    let (who, consumer, name, resource) = (who?, consumer?, name?, resource?);
    let shown = match resource.as_str() {
        "*" => format!("an override of `{name}` for {}", quote(&consumer)),
        _ => format!("an override of `{name}` for {} on {}", quote(&consumer), quote(&resource)),
    };
    let target = (consumer.clone(), resource.clone(), name);
    let is_new = seen.is_new(target, &who, &shown, report);
    is_new.then_some(Override { consumer, resource, strategy: strategy? })
}

/// Returns the base with the parameters of the mapping. They are validated even if the base is mistaken.
fn changed(value: &NamedNode<'_>, base: Option<&Base<'_>>, report: &mut MistakeReport) -> Option<Strategy> {
    let entries = value.entries(report)?;
    if entries.is_empty() && !value.is_cut() {
        value.report(report, "an override says which limits have other numbers; name at least one");
    }
    let mut strategy = match base {
        Some(Base::Made(strategy)) => Some((*strategy).clone()),
        Some(Base::Mistaken(_)) | None => None,
    };
    for entry in &entries {
        let fits = match base {
            Some(Base::Made(strategy)) => strategy.check_override(entry.name),
            Some(Base::Mistaken(outline)) => outline.check_override(entry.name),
            None => Ok(()),
        };
        if let Err(error) = fits {
            entry.report(report, error.to_string());
        }
        let (algorithm, near) = numbers(&entry.value, report);
        if let Some((strategy, percent)) = strategy.as_mut().zip(near) {
            // An unknown limit has been reported before.
            let _ = strategy.override_near(entry.name, percent);
        }
        if let Some((strategy, algorithm)) = strategy.as_mut().zip(algorithm) {
            // Any other error has been reported before.
            if let Err(
                error @ (OverrideError::Local(_)
                | OverrideError::Approximate(_)
                | OverrideError::NotHeld { .. }),
            ) = strategy.override_limit(entry.name, algorithm)
            {
                entry.report(report, error.to_string());
            }
        }
    }
    strategy
}

/// Reads the algorithm and the `near_limit` that replace a limit's own. Either may be left out.
fn numbers(value: &NamedNode<'_>, report: &mut MistakeReport) -> (Option<Algorithm>, Option<u8>) {
    let mut fields = Mapping::new(value, report);
    let is_near_alone = fields.len() == 1 && fields.take("near_limit").is_some();
    let near = fields.read("near_limit", report, percent);
    let algorithm = if is_near_alone { None } else { algorithm(&mut fields, report) };
    fields.finish(report);
    (algorithm, near)
}
