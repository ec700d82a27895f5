//! The explanation of a request, as text and as JSON.

pub(super) mod algorithm;
pub(super) mod approximate;
mod costs;
pub(super) mod local;
mod permits;
mod redis_size;
mod request;
mod state;

pub(super) use self::redis_size::largest_state;
pub(super) use self::request::ExplainedRequest;
pub(super) use self::state::renewal;

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use weir_core::algorithm::{Algorithm, Engine};
use weir_core::key::{self, Placements, SlotPart};
use weir_core::strategy::{BanTerms, FailurePolicy, Listed, Strategy, Tag};

use self::redis_size::redis_size;
use self::state::Size;

/// Describes the input of the hash tag.
fn tagged(tag: &Tag) -> String {
    match tag {
        Tag::Strategy(name) => format!("strategy `{name}`"),
        Tag::Fields(fields) => fields.to_string(),
    }
}

/// Describes the placement of keys with this tag in a cluster.
pub(super) fn place(tag: u128, placements: &Placements) -> String {
    let slot = key::slot(tag);
    let slot_only = format!("slot {slot} of a Redis Cluster");
    placements.part(slot).map_or(slot_only.clone(), |SlotPart { number, shards, slots }| {
        format!("{slot_only}, part {number} of {shards} (slots {} to {})", slots.start(), slots.end())
    })
}

/// Formats the policy as in the configuration.
const fn policy(policy: FailurePolicy) -> &'static str {
    match policy {
        FailurePolicy::Local(_) => "local",
        FailurePolicy::Allow => "allow",
        FailurePolicy::Deny => "deny",
        FailurePolicy::Error => "error",
    }
}

/// Formats the policy with its numbers.
fn failure(strategy: &Strategy) -> String {
    match strategy.on_store_failure() {
        FailurePolicy::Local(policy) => {
            format!(
                "local, {} of each limit on each node; when_full: {}",
                policy.share,
                local::when_full(policy)
            )
        }
        other => policy(other).to_owned(),
    }
}

/// Formats the explanation as text, in the order of resolution.
pub(super) fn text(explained: &ExplainedRequest<'_>) -> String {
    let ExplainedRequest { subject, resolved, .. } = explained;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let mut line = |name: &str, what: String| {
        let _ = writeln!(out, "{name:10}{what}");
    };
    line("resource", format!("{:?} {}", subject.resource, matched(explained)));
    if let Some(group) = resolved.group {
        let placed = explained.placements.part_of_group(group);
        let placed = placed.map_or(String::new(), |part| format!(", which `groups` puts into part {part}"));
        line("group", format!("{group:?}: its resources share a shard{placed}"));
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
    line("failure", format!("on_store_failure: {}", failure(resolved.strategy)));
    for about in local::lines(resolved.strategy) {
        let _ = writeln!(out, "  {about}");
    }
    for (place, about) in approximate::lines(resolved.strategy).iter().enumerate() {
        let _ = writeln!(out, "{:10}{about}", if place == 0 { "approx." } else { "" });
    }
    let mut line = |name: &str, what: String| {
        let _ = writeln!(out, "{name:10}{what}");
    };
    line(
        "tag",
        format!("{}, {}", tagged(resolved.strategy.tag()), place(explained.tag(), explained.placements)),
    );
    if let Some(rule) = resolved.strategy.permits() {
        line("permits", format!("held by leases, per {}", resolved.strategy.fields()));
        for about in permits::lines(rule) {
            let _ = writeln!(out, "  {about}");
        }
        for key in explained.lease_keys() {
            let _ = writeln!(out, "    key    {key}");
        }
        return out;
    }
    let shadows = explained.rules.shadows(resolved.index);
    if !shadows.is_empty() {
        let names: Vec<&str> = shadows.iter().map(|shadow| shadow.name()).collect();
        line("shadows", format!("{}, decided too and never enforced", names.join(", ")));
    }
    line("limits", "all are charged, or none is".to_owned());
    limits(&mut out, explained);
    holds(&mut out, explained);
    out
}

/// Explains the bounds of holds, and the key of the record of one.
fn holds(out: &mut String, explained: &ExplainedRequest<'_>) {
    let Some(costed) = explained.resolved.strategy.costed() else { return };
    let key = explained.hold_key();
    for (place, about) in costs::lines(costed, key.len()).iter().enumerate() {
        let _ = writeln!(out, "{:10}{about}", if place == 0 { "holds" } else { "" });
    }
    if costed.hold.is_some() {
        let _ = writeln!(out, "    key    {key}");
    }
}

/// Each limit with its ban, its keys, the size of its state, and what a node decides by itself.
fn limits(out: &mut String, explained: &ExplainedRequest<'_>) {
    let resolved = &explained.resolved;
    let parts = resolved.strategy.local().map_or(&[][..], |local| local.strategy().algorithms());
    for (place, (limit, overridden)) in explained.limits().enumerate() {
        let from = if overridden { ", by the override" } else { "" };
        let mode = if limit.algorithm.is_shadow() { ", in shadow mode" } else { "" };
        let _ =
            writeln!(out, "  {} per {}: {}{from}{mode}", limit.name, limit.scope, numbers(&limit.algorithm));
        if let Some((_, BanTerms { after, within, lasts })) = resolved.strategy.ban_of(place) {
            let _ = writeln!(
                out,
                "    ban    for {lasts} after {after} denials within {within}, counted on each node"
            );
        }
        let cost = costs::of_limit(resolved.strategy, place);
        if !cost.is_empty() {
            let _ = writeln!(out, "    cost   {cost}");
        }
        let _ = writeln!(out, "    key    {}", explained.key(limit));
        if let Some(key) = explained.parts_key(place) {
            let _ = writeln!(out, "    held   {key}");
        }
        if let Some(key) = explained.held_key(limit) {
            let _ = writeln!(out, "    held   {key}");
        }
        let _ = writeln!(out, "    state  {}", size(&limit.algorithm, explained.key(limit).len()));
        if let Some(part) = parts.get(place) {
            let bound = local::bound(&limit.algorithm, part);
            let _ = writeln!(out, "    local  {} on each node; {bound}", local::part_text(part));
        }
    }
}

fn matched(explained: &ExplainedRequest<'_>) -> String {
    match explained.resolved.pattern {
        Some(pattern) => format!("matches `{pattern}`"),
        None => "matches no pattern".to_owned(),
    }
}

fn numbers(algorithm: &Algorithm) -> String {
    let text = algorithm::text(algorithm) + &algorithm::parts(algorithm);
    match algorithm.limit() {
        0 => format!("{text}; nothing ever passes"),
        _ => {
            format!(
                "{text}; full again {} after being emptied",
                algorithm::for_people(state::renewal(algorithm))
            )
        }
    }
}

/// Describes the memory of a key of this length in both stores.
fn size(algorithm: &Algorithm, key: usize) -> String {
    let engine = algorithm.engine().name();
    let (memory, redis) = (state::size(algorithm), redis_size(algorithm, key));
    let grows = memory.most > memory.one || redis.most > redis.one;
    let of = |Size { one, most }| if grows { format!("{one} to {most}") } else { one.to_string() };
    let when = if grows { ", from the first call on to the worst" } else { "" };
    format!("{engine}, {} bytes in the memory store, about {} on Redis{when}", of(memory), of(redis))
}

/// Formats the explanation as JSON. Fields that do not apply are null. A listed consumer has no limits.
pub(super) fn json(explained: &ExplainedRequest<'_>) -> Result<String> {
    let ExplainedRequest { subject, resolved, .. } = explained;
    let applied = resolved.applied.filter(|_| resolved.listing.is_none());
    let limits = explained.limits().enumerate().map(|(place, (limit, overridden))| {
        let size = state::size(&limit.algorithm);
        let redis = redis_size(&limit.algorithm, explained.key(limit).len());
        let mut said = json!({
            "name": &*limit.name,
            "per": limit.scope.fields().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "algorithm": algorithm::text(&limit.algorithm),
            "limit": limit.algorithm.limit(),
            "renewal_us": state::renewal(&limit.algorithm).0,
            "engine": limit.algorithm.engine().name(),
            "overridden": overridden,
            "key": explained.key(limit),
            "state_bytes": { "one": size.one, "most": size.most },
            "redis_bytes": { "one": redis.one, "most": redis.most },
        });
        if let Some((_, BanTerms { after, within, lasts })) = resolved.strategy.ban_of(place) {
            said["ban"] = json!({ "after": after, "within_us": within.0, "for_us": lasts.0 });
        }
        if let Some(key) = explained.held_key(limit).or_else(|| explained.parts_key(place)) {
            said["held_key"] = key.into();
        }
        costs::add_to(&mut said, resolved.strategy, place);
        if let Engine::Slots(slots) = limit.algorithm.engine() {
            said["parts"] = slots.parts().into();
        }
        said
    });
    let tag = resolved.listing.is_none().then(|| explained.tag());
    let limits: Option<Vec<Value>> = resolved.listing.is_none().then(|| limits.collect());
    let permits = resolved.strategy.permits().filter(|_| resolved.listing.is_none());
    let permits = permits.map(|rule| permits::value(rule, &explained.lease_keys()));
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
        "on_store_failure": policy(resolved.strategy.on_store_failure()),
        "local": local::value(resolved.strategy).filter(|_| resolved.listing.is_none()),
        "approximate": approximate::value(resolved.strategy).filter(|_| resolved.listing.is_none()),
        "tag": tag.map(|_| tagged(resolved.strategy.tag())),
        "slot": tag.map(key::slot),
        "part": tag.and_then(|tag| explained.placements.part(key::slot(tag))).map(|part| json!({
            "number": part.number,
            "shards": part.shards,
            "first_slot": part.slots.start(),
            "last_slot": part.slots.end(),
        })),
        "limits": limits,
        "hold": costs::value(resolved.strategy).filter(|_| resolved.listing.is_none()),
        "concurrency": permits,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
