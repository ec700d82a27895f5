//! Strategies that nodes count on their own: which can be, and the numbers.

use super::{accepted, refused};

#[test]
fn at_most_so_much_above_a_limit() {
    let strategy = |numbers: &str, limits: &str, more: &str| {
        format!(
            "store: {{ redis: {{ nodes: [\"redis://a\"] }} }}\nstrategies: {{ a: {{ approximate: {numbers}, limits: [{limits}] }} }}{more}"
        )
    };
    let window = |limit: u64| {
        format!("{{ name: l, per: [consumer], fixed_window: {{ limit: {limit}, window: 1m }} }}")
    };
    let numbers = "{ max_over: 50, nodes: 11 }";
    let made = accepted(&strategy(numbers, &window(6), "")).rules.strategies()[0].clone();
    let rule = made.approximate().unwrap();
    assert_eq!((rule.bound.share(), rule.sync.0), (5, 100_000));
    let kind = "`approximate` is for a strategy of exactly one limit, which is a fixed_window with `window`, and without \
                `anchored`, `spread`, `calendar` and `count_denied`: only there all nodes know without asking when a counter \
                starts again; ";
    let bucket = "{ name: l, per: [consumer], token_bucket: { rate: 9/s } }";
    let denied = "{ name: l, per: [consumer], fixed_window: { limit: 9, window: 1m, count_denied: true } }";
    let month = "{ name: l, per: [consumer], fixed_window: { limit: 9, calendar: month } }";
    let short = "{ name: l, per: [consumer], fixed_window: { limit: 9, window: 100ms } }";
    let share = "each node may admit 5 units that the others have not seen (`max_over` divided by `nodes` − 1), which must be \
                 less than the limit of 5";
    for (numbers, limits, reason) in [
        (numbers, bucket, format!("33: strategies.a.approximate: {kind}limit `l` is another one")),
        (numbers, denied, format!("33: strategies.a.approximate: {kind}limit `l` is another one")),
        (numbers, month, format!("33: strategies.a.approximate: {kind}limit `l` is another one")),
        (numbers, &window(5), format!("33: strategies.a.approximate: {share}")),
        (
            numbers,
            short,
            "33: strategies.a.approximate: `approximate` needs a window of at least 1s, in which nodes hear of their places \
             several times; that of limit `l` is 100ms"
                .to_owned(),
        ),
        (
            "{ max_over: 9, nodes: 11 }",
            &window(6),
            "33: strategies.a.approximate: `max_over` is 9; with 11 nodes it must be from 10 to 2^52: one unit for each other \
             node"
                .to_owned(),
        ),
        (
            "{ max_over: 9, nodes: 1 }",
            &window(6),
            "55: strategies.a.approximate.nodes: 1 is out of bounds: it must be from 2 to 1000".to_owned(),
        ),
        (
            "{ max_over: 9, nodes: 2, sync: 9ms }",
            &window(60),
            "64: strategies.a.approximate.sync: 9ms is out of bounds: it must be from 10ms to 10s".to_owned(),
        ),
    ] {
        refused(&[(&strategy(numbers, limits, ""), &format!("2:{reason}"))], str::to_owned);
    }
    let overridden = strategy(
        numbers,
        &window(6),
        "\noverrides: [{ consumer: c, strategy: a, limits: { l: { fixed_window: { limit: 5, window: 1m } } } }]",
    );
    refused(&[(&overridden, &format!("3:51: overrides[0].limits.l: {share}"))], str::to_owned);
    let memory =
        strategy(numbers, &window(6), "").replace("store: { redis: { nodes: [\"redis://a\"] } }", "");
    let reason =
        "is for store.redis: a node with the memory store shares its counters with no other, and asks nobody";
    refused(&[(&memory, &format!("2:33: strategies.a.approximate: {reason}"))], str::to_owned);
}
