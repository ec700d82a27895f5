//! What decides a request, as text for people and as JSON.

use std::convert::Infallible;
use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use weir::algorithm::{Algorithm, Cells, Kept, Op, State, decide};
use weir::key;
use weir::store::Verdicts;
use weir::strategy::{Limit, Listed, Strategy};
use weir::units::Micros;

use super::explain::Explained;

impl Explained<'_> {
    /// The strategy with the numbers that everybody else has.
    fn base(&self) -> &Strategy {
        self.rules.strategies().get(self.resolved.index).map_or(&**self.resolved.strategy, |base| base)
    }

    /// The limits, and whether the override says their numbers.
    fn limits(&self) -> impl Iterator<Item = (&Limit, bool)> {
        let (own, base) = (self.resolved.strategy.limits(), self.base().algorithms());
        own.iter().zip(base).map(|(limit, base)| (limit, limit.algorithm != *base))
    }

    /// The limit's key, as a pattern for `SCAN`: its hash tag takes the secret to tell.
    fn key(&self, limit: &Limit) -> String {
        let mut name = Vec::new();
        key::write_name(&mut name, self.resolved.strategy, limit, &self.subject);
        format!("weir:{{*}}:{}", String::from_utf8_lossy(&name))
    }
}

/// Line by line, in the order of the choice.
pub(super) fn text(explained: &Explained<'_>) -> String {
    let Explained { subject, resolved, .. } = explained;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let mut line = |name: &str, what: String| {
        let _ = writeln!(out, "{name:10}{what}");
    };
    line("resource", format!("{:?} {}", subject.resource, matched(explained)));
    if let Some(group) = resolved.group {
        line("group", format!("{group:?}: its resources share a shard"));
    }
    let by = if explained.explicit { "named by the request" } else { "the resource's own" };
    line("strategy", format!("`{}`, {by}", resolved.strategy.name()));
    if let Some(listing) = resolved.listing {
        let list = if listing.own { "the strategy's own" } else { "the" };
        let (name, means) = match listing.listed {
            Listed::Deny => ("deny", "denied"),
            Listed::Allow => ("allow", "allowed"),
        };
        line("access", format!("`{}` on {list} {name} list matches {:?}", listing.pattern, subject.consumer));
        line("answer", format!("{means}; no limit is asked and nothing is charged"));
        return out;
    }
    line("access", format!("{:?} is on no list", subject.consumer));
    line(
        "override",
        match resolved.applied {
            Some(one) => format!("`{}` on resources `{}`", one.consumer, one.resource),
            None => "none".to_owned(),
        },
    );
    line("limits", "all are charged, or none is".to_owned());
    for (limit, overridden) in explained.limits() {
        let from = if overridden { ", by the override" } else { "" };
        let _ = writeln!(out, "  {} per {}: {}{from}", limit.name, limit.scope, numbers(&limit.algorithm));
        let _ = writeln!(out, "    {}", explained.key(limit));
    }
    out
}

fn matched(explained: &Explained<'_>) -> String {
    match explained.resolved.pattern {
        Some(pattern) => format!("matches `{pattern}`"),
        None => "matches no pattern".to_owned(),
    }
}

fn numbers(algorithm: &Algorithm) -> String {
    let (limit, engine) = (algorithm.limit(), algorithm.engine().name());
    match limit {
        0 => format!("nothing ever passes ({engine})"),
        _ => format!(
            "at most {limit} at once, as new {} after all of it is spent ({engine})",
            renewal(algorithm)
        ),
    }
}

/// The same as JSON. What does not apply is null; who is listed is asked no limit.
pub(super) fn json(explained: &Explained<'_>) -> Result<String> {
    let Explained { subject, resolved, .. } = explained;
    let applied = resolved.applied.filter(|_| resolved.listing.is_none());
    let limits = explained.limits().map(|(limit, overridden)| {
        json!({
            "name": &*limit.name,
            "per": limit.scope.fields().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "limit": limit.algorithm.limit(),
            "renewal_us": renewal(&limit.algorithm).0,
            "engine": limit.algorithm.engine().name(),
            "overridden": overridden,
            "key": explained.key(limit),
        })
    });
    let limits: Option<Vec<Value>> = resolved.listing.is_none().then(|| limits.collect());
    let value = json!({
        "resource": subject.resource,
        "consumer": subject.consumer,
        "pattern": resolved.pattern.map(|pattern| pattern.to_string()),
        "group": resolved.group,
        "strategy": resolved.strategy.name(),
        "strategy_named_by": if explained.explicit { "request" } else { "resource" },
        "access": resolved.listing.map(|listing| json!({
            "list": match listing.listed { Listed::Deny => "deny", Listed::Allow => "allow" },
            "entry": listing.pattern.to_string(),
            "of": if listing.own { "strategy" } else { "all" },
        })),
        "override": applied.map(|one| json!({
            "consumer": one.consumer.to_string(),
            "resource": one.resource.to_string(),
        })),
        "limits": limits,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// How long until a limit is as new after all of it was spent at the start of a window: its numbers in
/// one, whatever the engine.
fn renewal(algorithm: &Algorithm) -> Micros {
    let (limits, cost) = (std::slice::from_ref(algorithm), algorithm.limit());
    let mut verdicts = Verdicts::default();
    let Ok(()) = decide(limits, Cell(None), Op::Charge, cost, Micros::ZERO, &mut verdicts);
    verdicts.limits.first().map_or(Micros::ZERO, |verdict| verdict.reset_after)
}

/// One state that nobody else sees.
struct Cell(Option<State>);

impl Cells for Cell {
    type Full = Infallible;

    fn get(&self, _: usize) -> Option<&State> {
        self.0.as_ref()
    }

    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, _: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        change(&mut self.0);
    }
}
