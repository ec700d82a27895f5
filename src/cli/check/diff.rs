//! `weir check --diff OLD NEW`: what a change of the configuration does: which strategies, limits and overrides differ, which
//! states start full, and what needs a restart. It compares as a reload does.

use std::fmt::Write as _;
use std::path::Path;

use weir_config::{Applies, Config, StoreConfig};
use weir_core::strategy::{
    BanTerms, BeforeAfter, Limit, LimitChange, ResourceChange, Strategy, StrategyChange,
};

use super::super::explanation::algorithm;
use super::super::feature_texts::changes;
use super::super::settings::no_overrides;

/// Settings that are a part of the names of all states in Redis, or of where they are.
const NAMES_OF_STATES: [&str; 4] = ["store", "store.namespace", "store.key_secret", "store.redis.nodes"];

/// Returns what differs, a line each, or the mistakes of either configuration.
pub(super) fn diff(old: &Path, new: &Path) -> Result<String, Vec<String>> {
    let load = |path| Config::load(path, &no_overrides());
    let (old, new) = match (load(old), load(new)) {
        (Ok(old), Ok(new)) => (old, new),
        (old, new) => {
            let errors = [old.err(), new.err()].into_iter().flatten();
            return Err(errors.map(|errors| errors.to_string()).collect());
        }
    };
    let mut out = String::new();
    for change in old.rules.strategy_changes(&new.rules) {
        strategy(&mut out, &change);
    }
    for change in old.rules.resource_changes(&new.rules) {
        resource(&mut out, &change);
    }
    if !old.rules.has_lists_of(&new.rules) {
        out += "access: changed\n";
    }
    changes(&old, &new).for_each(|line| push(&mut out, &line));
    settings(&mut out, &old, &new);
    Ok(if out.is_empty() { "nothing differs\n".to_owned() } else { out })
}

fn strategy(out: &mut String, change: &StrategyChange<'_>) {
    let StrategyChange { name, strategy, limits, moves, starts_full, differs, overrides, lists } = change;
    match (strategy.before, strategy.after) {
        (None, _) => return push(out, &format!("strategies.{name}: added")),
        (_, None) => return push(out, &format!("strategies.{name}: removed; its states expire")),
        (Some(_), Some(_)) => {}
    }
    for limit in limits {
        push(out, &format!("strategies.{name}.{}", limit_line(limit)));
    }
    if let (Some(one), Some(other)) = (strategy.before, strategy.after) {
        bans(out, one, other);
    }
    if *starts_full {
        push(out, &format!("strategies.{name}: counts something else, so it starts full"));
    } else if *moves {
        push(
            out,
            &format!("strategies.{name}: its keys move to other slots, so on Redis all of it starts full"),
        );
    }
    if *differs {
        push(out, &format!("strategies.{name}: changed, and keeps what is used"));
    }
    for (consumer, resource, both) in overrides {
        let on = if resource == "*" { String::new() } else { format!(" on {resource}") };
        push(out, &format!("overrides of {name} for {consumer}{on}: {}", numbers(both)));
    }
    if *lists {
        push(out, &format!("strategies.{name}.access: changed"));
    }
}

/// The bans that differ, of limits that both have.
fn bans(out: &mut String, one: &Strategy, other: &Strategy) {
    let terms = |strategy: &Strategy, name: &str| {
        let place = strategy.limits().iter().position(|limit| *limit.name == *name);
        let ban = place.and_then(|place| strategy.ban_of(place));
        ban.map_or("none".to_owned(), |(_, BanTerms { after, within, lasts })| {
            format!("for {lasts} after {after} denials within {within}")
        })
    };
    for limit in other.limits().iter().filter(|limit| one.limits().iter().any(|own| own.name == limit.name)) {
        let (before, after) = (terms(one, &limit.name), terms(other, &limit.name));
        if before != after {
            push(out, &format!("strategies.{}.limits.{}.ban: {before} -> {after}", other.name(), limit.name));
        }
    }
}

fn push(out: &mut String, line: &str) {
    let _ = writeln!(out, "{line}");
}

fn limit_line(change: &LimitChange<'_>) -> String {
    let LimitChange { name, limit, starts_full } = change;
    let shown = |limit: &Limit| format!("{} {}", limit.scope, algorithm::text(&limit.algorithm));
    let what = match (limit.before, limit.after) {
        (Some(one), Some(other)) => format!("{} -> {}", shown(one), shown(other)),
        (None, Some(other)) => format!("added: {}", shown(other)),
        (Some(_), None) => "removed".to_owned(),
        (None, None) => String::new(),
    };
    let state = match (limit.after, starts_full) {
        (None, _) => "",
        (Some(_), true) => "; it starts full",
        (Some(_), false) => "; it keeps what is used",
    };
    format!("limits.{name}: {what}{state}")
}

/// The numbers of an override, which has the keys of its strategy and so keeps what is used.
fn numbers(both: &BeforeAfter<&Strategy>) -> String {
    // Of both, only the limits that differ.
    let shown = |strategy: &Strategy| {
        let other = [both.before, both.after].into_iter().flatten().find(|it| !std::ptr::eq(*it, strategy));
        let is_same = |limit: &&Limit| {
            let limits = other.map(Strategy::limits).unwrap_or_default();
            limits.iter().any(|other| other.name == limit.name && other.algorithm == limit.algorithm)
        };
        let limits = strategy.limits().iter().filter(|limit| !is_same(limit));
        let limits = limits.map(|limit| format!("{} {}", limit.name, algorithm::text(&limit.algorithm)));
        limits.collect::<Vec<_>>().join(", ")
    };
    match (both.before, both.after) {
        (Some(one), Some(other)) => format!("{} -> {}; it keeps what is used", shown(one), shown(other)),
        (None, Some(other)) => format!("added: {}; it keeps what is used", shown(other)),
        (Some(_), None) => "removed; it keeps what is used".to_owned(),
        (None, None) => String::new(),
    }
}

fn resource(out: &mut String, change: &ResourceChange) {
    let ResourceChange { pattern, means } = change;
    let shown = |(strategy, group): &(String, Option<String>)| match group {
        Some(group) => format!("{strategy}, group {group}"),
        None => strategy.clone(),
    };
    let line = match (&means.before, &means.after) {
        (Some(one), Some(other)) => {
            let moves =
                if one.0 == other.0 { "; on Redis it starts full, because its keys move" } else { "" };
            format!("{} -> {}{moves}", shown(one), shown(other))
        }
        (None, Some(other)) => format!("added: {}", shown(other)),
        (Some(_), None) => "removed".to_owned(),
        (None, None) => String::new(),
    };
    push(out, &format!("resources {pattern}: {line}"));
}

fn settings(out: &mut String, old: &Config, new: &Config) {
    let changes = old.setting_changes(new);
    let mut restart = false;
    for change in &changes {
        let needs = change.applies == Applies::AtRestart;
        restart |= needs;
        let when = if needs { "needs a restart" } else { "a reload applies it" };
        let full = NAMES_OF_STATES.contains(&change.path.as_str());
        let full = if full { "; all states start full" } else { "" };
        push(out, &format!("{change} ({when}{full})"));
    }
    if restart && matches!(new.store, StoreConfig::Memory(_)) {
        push(out, "note: a restart makes all limits full, because the store is memory");
    }
}
