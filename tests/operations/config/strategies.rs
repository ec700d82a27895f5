//! Strategies: their names, their limits, and scopes that must fit one slot.

use weir_core::strategy::{Field, Scope, Tag};

use super::{accepted, parse, refused, refused_rows, strategy};

#[test]
fn a_strategy_has_limits() {
    refused_rows(
        strategy,
        r#"
a: { } => 2:6: strategies.a.limits: is missing; list at least one limit
a: { limits: [] } => 2:16: strategies.a.limits: a strategy needs at least one limit
a: { limits: } => 2:8: strategies.a.limits: a strategy needs at least one limit
a: { limits: x } => 2:16: strategies.a.limits: must be a list, such as [a, b], not a single value
a: { limits: [x] } => 2:17: strategies.a.limits[0]: must be a mapping of keys, not a single value
a: { limits: [{ name: l, per: [consumer] }] }
    2:17: strategies.a.limits[0]: has no algorithm; give it one of uniform, token_bucket, gcra, leaky_bucket, leaky_queue, warm_up, fixed_window, interval_refill, sliding_window, bucketed_window, sliding_log
a: { limits: [{ per: [consumer], uniform: { interval: 1s } }] }
    2:17: strategies.a.limits[0].name: is missing; denied callers see it in `denied_by`
a: { limits: [{ name: l, uniform: { interval: 1s } }] }
    2:17: strategies.a.limits[0].per: is missing; say what has a counter of its own, such as [resource, consumer]
a: { limits: [{ name: l, per: [], uniform: { interval: 1s } }, { name: l, per: [], uniform: { interval: 1s } }] }
    2:74: strategies.a.limits[1].name: two limits are named `l`
"#,
    );
}

#[test]
fn names_are_plain() {
    refused_rows(
        strategy,
        r#"
a b: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:3: strategies."a b": the name `a b` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /
a: { limits: [{ name: "a:b", per: [], uniform: { interval: 1s } }] }
    2:25: strategies.a.limits[0].name: the name `a:b` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /
a: { limits: [{ name: "", per: [], uniform: { interval: 1s } }] }
    2:25: strategies.a.limits[0].name: the name `` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /
"#,
    );
}

#[test]
fn scopes() {
    refused_rows(
        strategy,
        r#"
a: { limits: [{ name: l, per: consumer, uniform: { interval: 1s } }] }
    2:33: strategies.a.limits[0].per: must be a list, such as [a, b], not a single value
a: { limits: [{ name: l, per: [consumer, consumer], uniform: { interval: 1s } }] }
    2:44: strategies.a.limits[0].per[1]: `consumer` is listed twice
a: { limits: [{ name: l, per: [region, region], uniform: { interval: 1s } }] }
    2:42: strategies.a.limits[0].per[1]: `region` is listed twice
a: { limits: [{ name: l, per: [resources], uniform: { interval: 1s } }] }
    2:34: strategies.a.limits[0].per[0]: "resources" would be an attribute that is easily taken for `resource`; write `resource`, or call the attribute something else
a: { limits: [{ name: l, per: ["a b"], uniform: { interval: 1s } }] }
    2:34: strategies.a.limits[0].per[0]: "a b" is no field of a request: resource, consumer, or the name of an attribute, which is 1 to 64 of the characters a-z 0-9 _ - and begins with a letter
a: { limits: [{ name: l, per: [Region, 1st], uniform: { interval: 1s } }] }
    2:34: strategies.a.limits[0].per[0]: "Region" is no field of a request: resource, consumer, or the name of an attribute, which is 1 to 64 of the characters a-z 0-9 _ - and begins with a letter
    2:42: strategies.a.limits[0].per[1]: "1st" is no field of a request: resource, consumer, or the name of an attribute, which is 1 to 64 of the characters a-z 0-9 _ - and begins with a letter
a: { limits: [{ name: l, per: [[]], uniform: { interval: 1s } }] }
    2:34: strategies.a.limits[0].per[0]: must be a single value, not a list
"#,
    );
}

/// Only a cluster is divided into slots. Elsewhere limits of different fields stand beside each other without a word.
#[test]
fn limits_without_a_common_field_need_a_word_on_a_cluster_alone() {
    let limits = "strategies: { a: { limits: [{ name: i, per: [ip], uniform: { interval: 1s } }, { name: c, per: [consumer], uniform: { interval: 1s } }], on_store_failure: error } }";
    for store in ["", "store: { redis: { nodes: [\"redis://a\"] } }\n"] {
        parse(&format!("{store}{limits}")).unwrap();
    }
    let cluster = "store: { redis: { topology: cluster, nodes: [\"redis://a\"] } }\n";
    let refused = parse(&format!("{cluster}{limits}")).unwrap_err();
    assert_eq!(
        refused,
        "weir.yaml:2:15: strategies.a: the scopes [ip] and [consumer] have no field in common, so their counters cannot be decided in one atomic step; add `single_slot: true` to keep everything of this strategy in one slot of one node, or give all limits a common field"
    );
    parse(&format!("{cluster}{}", limits.replace("limits:", "single_slot: true, limits:"))).unwrap();
}

/// A strategy with these limits, whose nodes have `share` of each.
fn local(share: &str, limit: &str) -> String {
    let limits = format!("limits: [{{ name: l, per: [consumer], {limit} }}]");
    let redis = "store: { redis: { nodes: [\"redis://a\"] } }";
    format!("{redis}\nstrategies:\n  a: {{ on_store_failure: {{ local: {share} }}, {limits} }}")
}

#[test]
fn a_part_of_each_limit_for_nodes_by_themselves() {
    let window = "fixed_window: { limit: 3, window: 1s }";
    let wide = "fixed_window: { limit: 5000, window: 1s }";
    for (share, limit, reason) in [
        (
            "{ share: 1/4, when_full: drop }",
            wide,
            "60: strategies.a.on_store_failure.local.when_full: \"drop\" is not one of allow, deny, error",
        ),
        (
            "{ share: 0.25 }",
            wide,
            "44: strategies.a.on_store_failure.local.share: \"0.25\" is not a share; write A/B, such as 1/4",
        ),
        (
            "{ share: 5/4 }",
            wide,
            "44: strategies.a.on_store_failure.local.share: 5/4 is out of bounds: in a share A/B, A must be from 1 to B, and B at most 1000",
        ),
        (
            "{ share: 1/1001 }",
            wide,
            "44: strategies.a.on_store_failure.local.share: 1/1001 is out of bounds: in a share A/B, A must be from 1 to B, and B at most 1000",
        ),
        (
            "{ when_full: deny }",
            wide,
            "35: strategies.a.on_store_failure.local.share: is missing; say which part of each limit a node has, such as 1/4",
        ),
        (
            "{ share: 1/4 }",
            window,
            "26: strategies.a.on_store_failure: limit 3 of limit `l` is 0 at a share of 1/4, so a node by itself would never admit anything; the nearest share that works is 1/3",
        ),
        (
            "{ share: 1/4 }",
            "token_bucket: { rate: 1/s, burst: 2 }",
            "26: strategies.a.on_store_failure: burst 2 of limit `l` is 0 at a share of 1/4, so a node by itself would never admit anything; the nearest share that works is 1/2",
        ),
        (
            "{ share: 1/4 }",
            "warm_up: { rate: 9/s, period: 1s }",
            "26: strategies.a.on_store_failure: limit `l` is a warm_up, of which a node cannot have a part; `local` is for every other algorithm: write allow, deny or error",
        ),
    ] {
        refused(&[(&local(share, limit), &format!("3:{reason}"))], str::to_owned);
    }
    for (share, limit, part) in [
        ("{ share: 1/3 }", window, "fixed_window: { limit: 1, window: 1s }"),
        ("{ share: 2/4, when_full: allow }", "uniform: { interval: 1s }", "uniform: { interval: 2s }"),
        ("{ share: 1/4 }", "token_bucket: { rate: 9/s, burst: 8 }", "token_bucket: { rate: 9/4s, burst: 2 }"),
    ] {
        let strategies = accepted(&local(share, limit)).rules.strategies().to_vec();
        let own = strategies[0].local().unwrap().strategy().algorithms()[0];
        let parsed =
            accepted(&strategy(&format!("a: {{ limits: [{{ name: l, per: [consumer], {part} }}] }}")));
        assert_eq!(own.with_max_debt(None), parsed.rules.strategies()[0].algorithms()[0].with_max_debt(None));
    }
    let overridden = local("{ share: 1/3 }", window)
        + "\noverrides: [{ consumer: c, strategy: a, limits: { l: { fixed_window: { limit: 2, window: 1s } } } }]";
    let reason = "limit 2 of limit `l` is 0 at a share of 1/3, so a node by itself would never admit anything; the nearest \
                  share that works is 1/2";
    refused(&[(&overridden, &format!("4:51: overrides[0].limits.l: {reason}"))], str::to_owned);
    let permits = "store: { redis: { nodes: [\"redis://a\"] } }\nstrategies: { a: { on_store_failure: { local: { share: 1/4 } }, \
                   concurrency: { limit: 3, per: [] } } }";
    let reason = "`local` is for strategies of rate limits; a node by itself cannot know who holds permits: write allow, deny \
                  or error";
    refused(&[(permits, &format!("2:38: strategies.a.on_store_failure: {reason}"))], str::to_owned);
}

#[test]
fn options() {
    refused_rows(
        strategy,
        r#"
a: { on_store_failure: local, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:26: strategies.a.on_store_failure: `local` needs the share of each limit; write { local: { share: 1/4 } }
a: { on_store_failure: { remote: { share: 1/4 } }, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:26: strategies.a.on_store_failure.local: is missing; a policy without numbers is a word: allow, deny or error
    2:28: strategies.a.on_store_failure.remote: unknown key; known are: local
a: { on_store_failure: { local: { share: 1/4 } }, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:35: strategies.a.on_store_failure.local: is for store.redis: the memory store is in this process already, and does not go away
a: { on_store_failure: panic, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:26: strategies.a.on_store_failure: "panic" is not one of allow, deny, error
a: { single_slot: 1, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:21: strategies.a.single_slot: "1" is neither true nor false
a: { on_failure: deny, limits: [{ name: l, per: [], uniform: { interval: 1s } }] }
    2:8: strategies.a.on_failure: unknown key; known are: concurrency, limits, on_store_failure, approximate, single_slot, max_reservation, access, shadow, hold
"#,
    );
    refused(
        &[(
            "a: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] }\n  a: {}",
            "3:3: strategies.a: is given twice; the first is at 2:3",
        )],
        strategy,
    );
}

fn attribute(name: &str) -> Field {
    Field::Attribute(name.into())
}

#[test]
fn scopes_that_are_taken() {
    for (scopes, single_slot, tag) in [
        (&["[resource]", "[resource, consumer]"][..], false, Tag::Fields(Scope::new(&[Field::Resource]))),
        (&["[consumer]", "[consumer, resource]"], false, Tag::Fields(Scope::new(&[Field::Consumer]))),
        (&["[zone, region]", "[resource, region]"], false, Tag::Fields(Scope::new(&[attribute("region")]))),
        (
            &["[resource_id, resource]"],
            false,
            Tag::Fields(Scope::new(&[Field::Resource, attribute("resource_id")])),
        ),
        (&["[]", "[]"], false, Tag::Strategy("a".into())),
        (&["[resource]", "[consumer]", "[]"], true, Tag::Strategy("a".into())),
    ] {
        let limit = |(index, per)| format!("{{ name: l{index}, per: {per}, uniform: {{ interval: 1s }} }}");
        let limits: Vec<String> = scopes.iter().enumerate().map(limit).collect();
        let text = format!("a: {{ single_slot: {single_slot}, limits: [{}] }}", limits.join(", "));
        assert_eq!(*accepted(&strategy(&text)).rules.strategies()[0].tag(), tag, "{text}");
    }
}

#[test]
fn names_and_limits_are_bounded() {
    let limit = |name: &str| format!("{{ name: {name}, per: [], uniform: {{ interval: 1s }} }}");
    let long = |length: usize| "x".repeat(length);
    let refusal = |place: &str| {
        let shown = format!("{}…", long(64));
        format!(
            "weir.yaml:{place}: the name `{shown}` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /"
        )
    };
    let file = |length| strategy(&format!("{}: {{ limits: [{}] }}", long(length), limit("l")));
    accepted(&file(128));
    let shown = format!("2:3: strategies.{}…", long(64));
    assert_eq!(parse(&file(129)).unwrap_err(), refusal(&shown));

    let file = |length| strategy(&format!("a: {{ limits: [{}] }}", limit(&long(length))));
    accepted(&file(128));
    assert_eq!(parse(&file(129)).unwrap_err(), refusal("2:25: strategies.a.limits[0].name"));

    let per = |length: usize| {
        strategy(&format!("a: {{ limits: [{}] }}", limit("l").replace("[]", &format!("[{}]", long(length)))))
    };
    accepted(&per(64));
    assert!(parse(&per(65)).unwrap_err().contains("limits[0].per[0]: "));

    let file = |count: usize| {
        let names: Vec<String> = (0..count).map(|index| format!("attribute-{index}")).collect();
        let limit = limit("l").replace("[]", &format!("[{}]", names.join(", ")));
        strategy(&format!("a: {{ limits: [{limit}] }}"))
    };
    accepted(&file(16));
    let expected = "weir.yaml:2:3: strategies.a: a request has at most 16 attributes; the limits of this strategy count by 17";
    assert_eq!(parse(&file(17)).unwrap_err(), expected);

    let file = |count: usize| {
        let limits: Vec<String> = (0..count).map(|index| limit(&format!("l{index}"))).collect();
        strategy(&format!("a: {{ limits: [{}] }}", limits.join(", ")))
    };
    accepted(&file(8));
    let expected = "weir.yaml:2:16: strategies.a.limits: a strategy has at most 8 limits; this one has 9";
    assert_eq!(parse(&file(9)).unwrap_err(), expected);
}
