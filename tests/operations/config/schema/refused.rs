//! Mistakes that a schema can see: both refuse them, each for what it is.

use super::super::{limit, section};
use super::{judge, mistakes, validator};
use crate::support::yaml::document;

/// The content of a file behind the part that has it, and the place where the schema finds the mistake.
const ROWS: &str = r#"
section: server: 5 => /server
section: store: { memory: {}, redis: { nodes: ['redis://a'] } } => /store
section: store: { memory: { budget: 1000 } } => /store/memory/budget
section: store: { memory: { when_full: drop } } => /store/memory/when_full
section: resources: [{ match: 'a*b', strategy: a }] => /resources/0/match
section: resources: [{ match: a }] => /resources/0
section: overrides: [{ consumer: bob, strategy: a, limits: {} }] => /overrides/0/limits
section: overrides: [{ consumer: bob, strategy: a, limits: { each: {} } }] => /overrides/0/limits/each
section: access: { deny: ['*x'] } => /access/deny/0
section: access: { denied: [] } => /access
server: listen: localhost => /server/listen
server: transport: quick => /server/transport
server: workers: 2000 => /server/workers
server: workers: -1 => /server/workers
server: reflection: 'true' => /server/reflection
server: drain_delay: 5 => /server/drain_delay
server: listen: 'unix:' => /server/listen
server: listen: unix:/run/ => /server/listen
server: listen: unix://run/weir.sock => /server/listen
server: listen_mode: '0668' => /server/listen_mode
server: listen_mode: rw => /server/listen_mode
server: drain_timeout: 10 => /server/drain_timeout
server: drain_timeout: 1s1m => /server/drain_timeout
limits: max_streams: 0 => /server/limits/max_streams
limits: max_connections: 1000001 => /server/limits/max_connections
limits: max_header_bytes: 1023 => /server/limits/max_header_bytes
limits: max_message_bytes: 64kb => /server/limits/max_message_bytes
redis:  => /store/redis
redis: nodes: [] => /store/redis/nodes
redis: nodes: ['redis://a', 'redis://a'], topology: cluster => /store/redis/nodes
redis: nodes: ['http://a'] => /store/redis/nodes/0
redis: nodes: ['redis://a/1/2'] => /store/redis/nodes/0
redis: nodes: ['redis://a'], topology: ring => /store/redis/topology
redis: nodes: ['redis://a'], max_waiting: 0 => /store/redis/max_waiting
redis: nodes: ['redis://a'], local_budget: 1000 => /store/redis/local_budget
redis: nodes: ['redis://a'], password: '' => /store/redis/password
strategy: limits: [] => /strategies/a/limits
strategy: limits: [{ name: a, per: [], uniform: { interval: 1s }, gcra: { rate: 1/s } }] => /strategies/a/limits/0
strategy: limits: [{ name: a, per: [] }] => /strategies/a/limits/0
strategy: limits: [{ name: a, uniform: { interval: 1s } }] => /strategies/a/limits/0
more: on_store_failure: local => /strategies/a/on_store_failure
more: on_store_failure: { local: { share: 0.25 } } => /strategies/a/on_store_failure
more: approximate: { max_over: 0, nodes: 2 } => /strategies/a/approximate/max_over
more: approximate: { max_over: 9 } => /strategies/a/approximate
limit: uniform: { interval: 1 } => /strategies/a/limits/0/uniform/interval
limit: token_bucket: { rate: 5 } => /strategies/a/limits/0/token_bucket/rate
limit: gcra: { rate: 1/s, burst: 4503599627370496 } => /strategies/a/limits/0/gcra/burst
limit: fixed_window: { limit: 5 } => /strategies/a/limits/0/fixed_window
limit: fixed_window: { limit: 5, calendar: day, window: 1d } => /strategies/a/limits/0/fixed_window/window
limit: fixed_window: { limit: 5, window: 1d, offset: '+01:00' } => /strategies/a/limits/0/fixed_window/offset
limit: fixed_window: { limit: 5, window: 1d, anchored: true, spread: true } => /strategies/a/limits/0/fixed_window
limit: fixed_window: { limit: 5, calendar: day, offset: 2h } => /strategies/a/limits/0/fixed_window/offset
limit: interval_refill: { capacity: 5, refill: 0, period: 1s } => /strategies/a/limits/0/interval_refill/refill
limit: sliding_window: { limit: 2251799813685248, window: 1s } => /strategies/a/limits/0/sliding_window/limit
limit: bucketed_window: { limit: 5, window: 1h, buckets: 3601 } => /strategies/a/limits/0/bucketed_window/buckets
limit: sliding_log: { limit: 10001, window: 1s } => /strategies/a/limits/0/sliding_log/limit
limit: sliding_log: { limit: 10000, window: 1s, count_denied: true } => /strategies/a/limits/0/sliding_log/limit
limit: sliding_log: { limit: 5, window: 1s, hold: true, max_held: 0 } => /strategies/a/limits/0/sliding_log/max_held
limit: sliding_log: { limit: 5, window: 1s, max_held: 5 } => /strategies/a/limits/0/sliding_log
"#;

const EACH: &str = "{ name: a, per: [], uniform: { interval: 1s } }";

/// Each file, and where the schema finds the mistake.
fn mistaken() -> Vec<(String, &'static str)> {
    let strategy = |text: &str| format!("strategies: {{ a: {{ {text} }} }}");
    let row = |line: &'static str| {
        let (text, place) = line.split_once(" => ").unwrap();
        let (part, text) = text.split_once(": ").unwrap();
        let file = match part {
            "section" => section(text),
            "server" => section(&format!("server: {{ {text} }}")),
            "limits" => section(&format!("server: {{ limits: {{ {text} }} }}")),
            "redis" => section(&format!("store: {{ redis: {{ {text} }} }}")),
            "strategy" => strategy(text),
            "more" => strategy(&format!("limits: [{EACH}], {text}")),
            _ => limit(text),
        };
        (file, place)
    };
    let mut files: Vec<_> = ROWS.trim().lines().map(row).collect();
    files.extend([
        (String::new(), ""),
        (section("resource: []"), ""),
        ("strategies: {}".to_owned(), "/strategies"),
        ("strategies: { 'a b': { limits: [] } }".to_owned(), "/strategies"),
        (strategy(&format!("limits: [{}]", [EACH; 9].join(", "))), "/strategies/a/limits"),
        (section(&format!("messages: {{ limited: {} }}", "a".repeat(513))), "/messages/limited"),
    ]);
    files
}

#[test]
fn mistakes_are_refused_by_both_where_they_stand() {
    let validator = validator();
    for (text, place) in mistaken() {
        assert_eq!(judge(&validator, &text), (false, false), "{text}\nthe parser, the schema");
        let found = mistakes(&validator, &document(&text).unwrap());
        assert!(found.iter().any(|mistake| mistake.starts_with(&format!("{place}: "))), "{text}\n{found:#?}");
    }
}
