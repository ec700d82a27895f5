//! Costs of limits, and `hold` of a strategy: what is refused, at which place, and with what to write instead.

use super::{accepted, parse};

/// A strategy with `hold` and these limits.
fn held(limits: &str) -> String {
    format!("strategies: {{ llm: {{ hold: {{ max: 10m }}, limits: [{limits}] }} }}")
}

fn limit(keys: &str) -> String {
    format!("{{ name: out, per: [consumer], {keys} }}")
}

fn refused(text: &str, path: &str, reason: &str) {
    let errors = parse(text).map(drop).expect_err(text).to_string();
    let is_said = errors.lines().any(|line| line.contains(&format!(" {path}: ")) && line.contains(reason));
    assert!(is_said, "{text}\nis refused for another reason:\n{errors}");
}

const WINDOW: &str = "fixed_window: { limit: 10, window: 1m }";

#[test]
fn what_cannot_be_held_needs_a_fixed_cost() {
    for (algorithm, why) in [
        ("sliding_log: { limit: 5, window: 1m, count_denied: true }", "`count_denied`"),
        ("sliding_log: { limit: 5, window: 1m, min_gap: 1s }", "`min_gap`"),
        ("sliding_log: { limit: 5, window: 1m, hold: true }", "`hold: true`"),
        ("token_bucket: { rate: 1/1s, charge_after: true }", "`charge_after`"),
        ("leaky_queue: { rate: 1/1s, burst: 5 }", "`leaky_queue`"),
        ("warm_up: { rate: 10/1s, period: 10s }", "`warm_up`"),
    ] {
        let named = held(&limit(&format!("cost: output, {algorithm}")));
        refused(&named, "strategies.llm.limits[0]", why);
        refused(
            &named,
            "strategies.llm.limits[0]",
            "give this limit a fixed cost, such as `cost: 1`, or remove `hold`",
        );
        accepted(&held(&limit(&format!("cost: 1, {algorithm}"))));
        // An override would make the same limit of it.
        let overridden = format!(
            "{}\noverrides: [{{ consumer: bob, strategy: llm, limits: {{ out: {{ {algorithm} }} }} }}]",
            held(&limit(&format!("cost: output, {WINDOW}")))
        );
        refused(&overridden, "overrides[0].limits.out", why);
    }
}

#[test]
fn keys_of_costs_have_bounds() {
    let of_limit = |key: &str| held(&limit(&format!("{key}, {WINDOW}")));
    for (key, path, reason) in [
        ("cost: 4503599627370496", "cost", "4503599627370495"),
        ("cost: -1", "cost", "write a whole number"),
        ("cost: 1.5", "cost", "write a whole number"),
        ("cost: a b", "cost", "or a name of 1 to 64"),
        ("charge: later", "charge", "at_once"),
        ("near_limit: 0%", "near_limit", "write 1% to 100%"),
        ("near_limit: 101%", "near_limit", "write 1% to 100%"),
        ("near_limit: +80%", "near_limit", "write 1% to 100%"),
        ("near_limit: 80", "near_limit", "write 1% to 100%"),
        ("unit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "unit", "32"),
    ] {
        refused(&of_limit(key), &format!("strategies.llm.limits[0].{path}"), reason);
    }
    for (hold, path, reason) in [
        ("{ }", "hold.max", "is missing; say how long"),
        ("{ max: 10ms }", "hold.max", "1s"),
        ("{ max: 2h }", "hold.max", "1s to 3600s"),
        ("{ max: 1m, known_for: 48h }", "hold.known_for", "60s to 86400s"),
    ] {
        let text = format!("strategies: {{ llm: {{ hold: {hold}, limits: [{}] }} }}", limit(WINDOW));
        refused(&text, &format!("strategies.llm.{path}"), reason);
    }
}

#[test]
fn neighbours_are_named() {
    let at_once = limit(&format!("cost: input, charge: at_once, {WINDOW}"));
    let text = format!("strategies: {{ llm: {{ limits: [{at_once}] }} }}");
    refused(&text, "strategies.llm.limits[0].charge", "add `hold: { max: 10m }`");
    let redis = "store: { redis: { nodes: [\"redis://127.0.0.1:6379\"] } }";
    let counted = |keys: &str, cost: &str| {
        let own = limit(&format!("{cost} {WINDOW}"));
        let approximate = "approximate: { nodes: 2, max_over: 5 }";
        format!("{redis}\nstrategies: {{ llm: {{ {approximate}, {keys} limits: [{own}] }} }}")
    };
    let named = "a named cost cannot stand beside `approximate`";
    refused(&counted("", "cost: output,"), "strategies.llm.limits[0]", named);
    refused(&counted("hold: { max: 1m },", ""), "strategies.llm.hold", "cannot stand beside `approximate`");
    accepted(&counted("", "cost: 2,"));
    let other = format!("other: {{ limits: [{}] }}", limit(WINDOW));
    let plain = limit(WINDOW);
    let shadowed = format!(
        "strategies: {{ llm: {{ hold: {{ max: 1m }}, shadow: [other], limits: [{plain}] }}, {other} }}"
    );
    refused(&shadowed, "strategies.llm.hold", "cannot stand beside `shadow`");
    let is_shadow = format!(
        "strategies: {{ llm: {{ hold: {{ max: 1m }}, limits: [{plain}] }}, live: {{ shadow: [llm], limits: [{plain}] }} }}"
    );
    refused(&is_shadow, "strategies.live.shadow[0]", "has holds");
}

#[test]
fn a_shadow_has_costs_that_its_live_strategy_names() {
    let pair = |live: &str, shadow: &str| {
        let [live, shadow] = [live, shadow].map(|cost| limit(&format!("{cost} {WINDOW}")));
        format!(
            "strategies: {{ live: {{ shadow: [next], limits: [{live}] }}, next: {{ limits: [{shadow}] }} }}"
        )
    };
    for (live, shadow) in [
        ("cost: output,", "cost: output,"),
        ("cost: output,", ""),
        ("cost: output,", "cost: 2,"),
        ("", "cost: 2,"),
        ("cost: 2,", ""),
    ] {
        accepted(&pair(live, shadow));
    }
    for live in ["", "cost: 2,", "cost: input,"] {
        let reason = "\"next\" needs the cost \"output\", which no limit of \"live\" has";
        refused(&pair(live, "cost: output,"), "strategies.live.shadow[0]", reason);
    }
}
