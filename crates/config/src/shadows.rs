//! `shadow` of a strategy: shadow strategies, which are decided with it and never enforced.

use weir_core::strategy::MAX_SHADOWS;

use super::errors::MistakeReport;
use super::fields::NamedNode;
use super::known_strategies::{Base, Strategies};
use super::values::quote;

/// A strategy and its `shadow` list.
pub(super) type ShadowList<'t> = (&'t str, NamedNode<'t>);

/// Returns for each valid strategy the indices of its shadows.
pub(super) fn shadows(
    lists: &[ShadowList<'_>],
    strategies: &Strategies,
    report: &mut MistakeReport,
) -> Vec<Vec<usize>> {
    let mut shadows = vec![Vec::new(); strategies.made.len()];
    for (live, list) in lists {
        let places = shadows_of(live, list, lists, strategies, report);
        if let Some(own) = strategies.made_place(live).and_then(|place| shadows.get_mut(place)) {
            *own = places;
        }
    }
    shadows
}

fn shadows_of(
    live: &str,
    list: &NamedNode<'_>,
    lists: &[ShadowList<'_>],
    strategies: &Strategies,
    report: &mut MistakeReport,
) -> Vec<usize> {
    let Some(items) = list.items(report) else { return Vec::new() };
    if items.is_empty() || items.len() > MAX_SHADOWS {
        let reason = format!("has {} entries: it must have 1 to {MAX_SHADOWS}", items.len());
        list.report(report, reason);
    }
    let (mut seen, mut places) = (Vec::new(), Vec::new());
    for item in &items {
        let Some(name) = strategies.reference(item, report) else { continue };
        let reason = if name == live {
            Some("is this strategy itself; name another one".to_owned())
        } else if seen.contains(&name) {
            Some(format!("{} is listed twice", quote(&name)))
        } else if lists.iter().any(|(other, _)| *other == name) {
            Some(format!("{} has shadows itself; a shadow of a shadow is never decided", quote(&name)))
        } else if is_of_leases(strategies, &name) {
            Some(format!(
                "{} limits concurrency; only strategies of rate limits can be shadows",
                quote(&name)
            ))
        } else {
            cannot_be_asked(strategies, (live, &name))
        };
        match reason {
            Some(reason) => item.report(report, reason),
            None => places.extend(strategies.made_place(&name)),
        }
        seen.push(name);
    }
    places
}

fn is_of_leases(strategies: &Strategies, name: &str) -> bool {
    matches!(strategies.base(name), Some(Base::Made(strategy)) if strategy.permits().is_some())
}

/// Returns the reason that a shadow cannot decide the calls of its live strategy.
fn cannot_be_asked(strategies: &Strategies, (live, shadow): (&str, &str)) -> Option<String> {
    let costed = |name: &str| match strategies.base(name) {
        Some(Base::Made(strategy)) => Some(strategy.costed()),
        _ => None,
    };
    let (known, own) = (costed(live)?, costed(shadow)??);
    if own.hold.is_some() {
        return Some(format!("{} has holds; a shadow never learns how calls are settled", quote(shadow)));
    }
    let has = |name: &str| known.is_some_and(|known| known.names.iter().any(|other| **other == *name));
    let missing = own.names.iter().find(|name| !has(name))?;
    Some(format!(
        "{} needs the cost {}, which no limit of {} has, so callers do not name it",
        quote(shadow),
        quote(missing),
        quote(live)
    ))
}
