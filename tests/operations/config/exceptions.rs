//! `access` and `overrides`: the consumers with other rules.

use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::Listed;
use weir_units::Micros;

use super::{accepted, configured, parse, refused_rows, section};

/// Two strategies with limits that can be overridden and some that cannot, from line 2 on.
fn with_strategies(text: &str) -> String {
    format!(
        "{text}\n\
         strategies:\n\
         \x20 feeding:\n\
         \x20   limits:\n\
         \x20     - {{ name: everyone, per: [resource], sliding_log: {{ limit: 100, window: 10s }} }}\n\
         \x20     - {{ name: each, per: [resource, consumer], uniform: {{ interval: 10s }} }}\n\
         \x20     - {{ name: regional, per: [resource, consumer, region], uniform: {{ interval: 1s }} }}\n\
         \x20 all: {{ limits: [{{ name: all, per: [], uniform: {{ interval: 1s }} }}] }}\n"
    )
}

#[test]
fn lists_hold_consumers_and_patterns() {
    refused_rows(
        section,
        r#"
access: [bob] => 1:9: access: must be a mapping of keys, not a list
access: { alow: [] } => 1:11: access.alow: unknown key; did you mean `allow`?
access: { block: [] } => 1:11: access.block: unknown key; known are: allow, deny
access: { allow: bob } => 1:18: access.allow: must be a list, such as [a, b], not a single value
access: { deny: [''] } => 1:18: access.deny[0]: must not be empty
access: { deny: [{ }] } => 1:18: access.deny[0]: must be a single value, not a mapping
access: { deny: ['*.example', 'a*b*'] }
    1:18: access.deny[0]: "*.example": a * can stand only at the end of a pattern
    1:31: access.deny[1]: "a*b*": a * can stand only at the end of a pattern
access: { deny: [bob, bot-*, bob], allow: [bob, bot-*, bot-*] }
    1:30: access.deny[2]: "bob" is given twice; the first is at 1:18
    1:56: access.allow[2]: "bot-*" is given twice; the first is at 1:49
"#,
    );
    let own = "strategies:\n  a: { limits: [{ name: l, per: [], uniform: { interval: 1s } }], access: { denied: [], deny: [a, a] } }";
    let expected = "weir.yaml:2:77: strategies.a.access.denied: unknown key; known are: allow, deny\n\
                    weir.yaml:2:99: strategies.a.access.deny[1]: \"a\" is given twice; the first is at 2:96";
    assert_eq!(parse(own).unwrap_err(), expected);
    let long = |length| section(&format!("access: {{ allow: [{}] }}", "x".repeat(length)));
    accepted(&long(512));
    assert!(parse(&long(513)).unwrap_err().ends_with(" is 513 bytes long: at most 512"));
}

#[test]
fn deny_goes_before_allow_wherever_they_stand() {
    let rules = accepted(
        "access: { deny: [mallory, both, 10.0.*], allow: [keeper, both, own-denied, 10.*] }\n\
         strategies:\n\
         \x20 a:\n\
         \x20   limits: [{ name: l, per: [], uniform: { interval: 1s } }]\n\
         \x20   access: { deny: [own-denied], allow: [mallory, own-allowed] }\n\
         \x20 b: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] }\n",
    )
    .rules;
    let listed = |consumer, strategy| {
        let listing = rules.resolve_for("x", consumer, strategy).unwrap().listing?;
        Some((listing.listed, listing.own, listing.pattern.to_string()))
    };
    let listed_as = |listed, own, pattern: &str| Some((listed, own, pattern.to_owned()));
    for (consumer, strategy, expected) in [
        ("mallory", "a", listed_as(Listed::Deny, false, "mallory")),
        ("both", "a", listed_as(Listed::Deny, false, "both")),
        ("own-denied", "a", listed_as(Listed::Deny, true, "own-denied")),
        ("own-denied", "b", listed_as(Listed::Allow, false, "own-denied")),
        ("own-allowed", "a", listed_as(Listed::Allow, true, "own-allowed")),
        ("own-allowed", "b", None),
        ("keeper", "b", listed_as(Listed::Allow, false, "keeper")),
        ("keeper-2", "b", None),
        ("10.0.0.9", "b", listed_as(Listed::Deny, false, "10.0.*")),
        ("10.1.0.9", "b", listed_as(Listed::Allow, false, "10.*")),
        ("", "a", None),
    ] {
        assert_eq!(listed(consumer, strategy), expected, "{consumer} under {strategy}");
    }
}

#[test]
fn overrides_name_what_exists() {
    const EACH: &str = "limits: { each: { uniform: { interval: 1s } } }";
    refused_rows(
        |text| with_strategies(&text.replace("EACH", EACH)),
        r#"
overrides: { } => 1:12: overrides: must be a list, with `-` before each item, not a mapping
overrides: [x] => 1:13: overrides[0]: must be a mapping of keys, not a single value
overrides: [{ }]
    1:13: overrides[0].consumer: is missing; give it a consumer, or the beginning of many and a final *
    1:13: overrides[0].limits: is missing; say which limits have other numbers
    1:13: overrides[0].strategy: is missing; name one of `strategies`
overrides: [{ consumer: '*-gold', strategy: feding, resource: 'a*b', limit: { }, EACH }]
    1:25: overrides[0].consumer: "*-gold": a * can stand only at the end of a pattern
    1:45: overrides[0].strategy: there is no strategy "feding"; did you mean `feeding`?
    1:63: overrides[0].resource: "a*b": a * can stand only at the end of a pattern
    1:70: overrides[0].limit: unknown key; did you mean `limits`?
overrides: [{ consumer: a, strategy: feeding, limits: { } }]
    1:55: overrides[0].limits: an override says which limits have other numbers; name at least one
overrides: [{ consumer: a, strategy: feeding, limits: { each: x } }]
    1:63: overrides[0].limits.each: must be a mapping of keys, not a single value
overrides: [{ consumer: a, strategy: feeding, limits: { each: { uniform: { interval: 0s, period: 1s } } } }]
    1:86: overrides[0].limits.each.uniform.interval: 0 is out of bounds: it must be at least 1 microsecond
    1:90: overrides[0].limits.each.uniform.period: unknown key; known are: interval
overrides: [{ consumer: a, strategy: feeding, limits: { eahc: { uniform: { interval: 1s } } } }]
    1:57: overrides[0].limits.eahc: strategy `feeding` has no limit of this name; it has `everyone`, `each`, `regional`
overrides: [{ consumer: a, strategy: feeding, limits: { everyone: { uniform: { interval: 1s } } } }, { consumer: a, strategy: all, limits: { all: { gcra: { rate: 0/s } } } }]
    1:57: overrides[0].limits.everyone: limit `everyone` of strategy `feeding` counts by [resource], so that consumers share its counters; only limits that count by consumer can differ between consumers
    1:142: overrides[1].limits.all: limit `all` of strategy `all` counts by [], so that consumers share its counters; only limits that count by consumer can differ between consumers
    1:163: overrides[1].limits.all.gcra.rate: 0 is out of bounds: a rate of 0 never refills; it must be at least 1 per period
overrides: [{ consumer: a, strategy: feeding, limits: { each: { uniform: { interval: 1s } }, each: { uniform: { interval: 1s } } } }]
    1:94: overrides[0].limits.each: is given twice; the first is at 1:57
overrides: [{ consumer: a, strategy: feeding, EACH }, { consumer: a, strategy: feeding, resource: x, EACH }, { consumer: a, strategy: feeding, resource: '*', EACH }, { consumer: a, strategy: feeding, resource: x, EACH }]
    1:208: overrides[2].consumer: an override of `feeding` for "a" is given twice; the first is at 1:25
    1:308: overrides[3].consumer: an override of `feeding` for "a" on "x" is given twice; the first is at 1:110
"#,
    );
}

/// A strategy with a mistake of its own still exists for those that refer to it, and so do its limits.
#[test]
fn a_mistaken_strategy_takes_no_override_down() {
    let text =
        "overrides: [{ consumer: a, strategy: feeding, limits: { nothing: { uniform: { interval: 0s } } } }]";
    let file = with_strategies(text).replace("limit: 100,", "limit: x,");
    let expected = "weir.yaml:1:57: overrides[0].limits.nothing: strategy `feeding` has no limit of this name; it has `everyone`, `each`, `regional`\n\
                    weir.yaml:1:89: overrides[0].limits.nothing.uniform.interval: 0 is out of bounds: it must be at least 1 microsecond\n\
                    weir.yaml:5:66: strategies.feeding.limits[0].sliding_log.limit: \"x\" is not a whole number of at least 0";
    assert_eq!(parse(&file).unwrap_err(), expected);
}

#[test]
fn the_most_particular_override_applies() {
    let number =
        |burst: u64| format!("limits: {{ each: {{ token_bucket: {{ rate: 1/s, burst: {burst} }} }} }}");
    let one = |who: &str, burst| format!("{{ consumer: {who}, strategy: feeding, {} }}", number(burst));
    let all = [
        one("'*', resource: zoo/*", 1),
        one("gold-*", 2),
        one("gold-*, resource: zoo/*", 3),
        one("gold-*, resource: zoo/lion", 4),
        one("gold-vip-*", 5),
        one("gold-vip-bob, resource: zoo/bear", 6),
    ];
    let rules = accepted(&with_strategies(&format!("overrides: [{}]", all.join(", ")))).rules;
    let base = rules.resolve("zoo/bear", "feeding").unwrap().strategy;
    for (consumer, resource, expected) in [
        ("bob", "shop", None),
        ("bob", "zoo/bear", Some((1, "*", "zoo/*"))),
        ("gold-1", "shop", Some((2, "gold-*", "*"))),
        ("gold-1", "zoo/bear", Some((3, "gold-*", "zoo/*"))),
        ("gold-1", "zoo/lion", Some((4, "gold-*", "zoo/lion"))),
        ("gold-vip-1", "zoo/lion", Some((5, "gold-vip-*", "*"))),
        ("gold-vip-bob", "zoo/bear", Some((6, "gold-vip-bob", "zoo/bear"))),
        ("gold-vip-bob", "zoo/lion", Some((5, "gold-vip-*", "*"))),
    ] {
        let resolved = rules.resolve_for(resource, consumer, "feeding").unwrap();
        assert_eq!(resolved.index, 0, "metrics know the base only");
        let applied = resolved.applied.map(|one| (one.consumer.to_string(), one.resource.to_string()));
        let wanted = expected.map(|(_, consumer, resource)| (consumer.to_owned(), resource.to_owned()));
        assert_eq!(applied, wanted, "{consumer} on {resource}");
        let strategy = resolved.strategy;
        assert_eq!((strategy.name(), strategy.tag()), (base.name(), base.tag()));
        let [everyone, each, regional] = strategy.algorithms() else { panic!("three limits") };
        let second = Micros::from_secs(1);
        let bucket = |burst| configured(Algorithm::bucket(burst, Rate { count: 1, period: second }).unwrap());
        let own = expected.map_or(base.algorithms()[1], |(burst, ..)| bucket(burst));
        assert_eq!([*everyone, *each, *regional], [base.algorithms()[0], own, base.algorithms()[2]]);
        assert_eq!(strategy.limits()[1].algorithm, own, "keys and verdicts know the same");
    }
}
