//! `queues`: what a queue may hold, and what is wrong with one.

use weir_queues::configured_queues;
use weir_queues::model::{
    ArchiveRule, FullQueue, PayloadRule, QueueKind, QueueNumbers, QueueOrder, QueuePace,
};
use weir_units::Micros;

use super::{STRATEGIES, accepted, refused_rows, section};

#[test]
fn a_queue_has_defaults() {
    let config = accepted("queues: { jobs: { capacity: 1000 } }");
    let wanted = QueueNumbers {
        kind: QueueKind::Stream,
        capacity: 1000,
        max_bytes: 64 << 20,
        pace: None,
        visibility: Micros::from_secs(30),
        max_deliveries: Some(5),
        outcomes: ArchiveRule::new(Micros::from_secs(86_400)),
        max_age: None,
        when_full: FullQueue::Refuse,
        order: QueueOrder::Fifo,
    };
    assert_eq!(configured_queues(&config).all()[0].numbers(), &wanted);
    assert!(config.rules.strategies().is_empty(), "a service may have nothing but queues");
    let text = "queues: { a: { capacity: 1, rate: 10/1s, kind: list, visibility: 1ms, max_bytes: 1MiB }, \
                b: { capacity: 2, dead_letter: false, outcomes: 0s } }";
    let config = accepted(text);
    let queues = configured_queues(&config);
    let [a, b] = queues.all() else { panic!() };
    let a = a.numbers();
    assert_eq!(a.pace, Some(QueuePace { count: 10, period: Micros::from_secs(1) }));
    assert_eq!((a.kind, a.visibility, a.max_deliveries), (QueueKind::List, Micros(1_000), None));
    assert_eq!((b.numbers().max_deliveries, b.numbers().outcomes), (None, ArchiveRule::new(Micros::ZERO)));
    assert_eq!(configured_queues(&accepted(STRATEGIES)).all(), []);
}

#[test]
fn an_archive_has_a_duration_a_bound_and_payloads() {
    for (text, outcomes) in [
        ("24h", ArchiveRule::new(Micros::from_secs(86_400))),
        ("{ keep: 2h }", ArchiveRule::new(Micros::from_secs(7_200))),
        ("{}", ArchiveRule::new(Micros::from_secs(86_400))),
        (
            "{ keep: 30d, max: 10_000_000, payload: head }",
            ArchiveRule { keep: Micros::from_secs(30 * 86_400), max: 10_000_000, payload: PayloadRule::Head },
        ),
    ] {
        let config = accepted(&format!("queues: {{ jobs: {{ capacity: 1, outcomes: {text} }} }}"));
        assert_eq!(configured_queues(&config).all()[0].numbers().outcomes, outcomes, "{text}");
    }
}

#[test]
fn mistakes() {
    refused_rows(
        section,
        r#"
queues: 5 => 1:9: queues: must be a mapping of keys, not a single value
queues: { jobs: } => 1:11: queues.jobs.capacity: is missing; say how many items the queue may hold, such as 1000
queues: { jobs: { capacity: 0 } } => 1:29: queues.jobs.capacity: 0 is out of bounds: it must be from 1 to 1000000
queues: { jobs: { capacity: 1, kind: set } } => 1:38: queues.jobs.kind: "set" is not one of stream, list
queues: { jobs: { capacity: 1, kind: list, max_deliveries: 2 } }
    1:44: queues.jobs.max_deliveries: is for `kind: stream`; an item of a list is delivered once, and gone
queues: { jobs: { capacity: 1, dead_letter: false, max_deliveries: 2 } }
    1:52: queues.jobs.max_deliveries: cannot stand beside `dead_letter: false`: items are then delivered until they are acked
queues: { jobs: { capacity: 1, rate: 0/1s } }
    1:38: queues.jobs.rate: "0/1s" is out of bounds: it must be 1 to 1000000 items, in 1us to 100 years
queues: { jobs: { capacity: 1, visibility: 25h } }
    1:44: queues.jobs.visibility: 90000s is out of bounds: it must be from 1ms to 86400s
queues: { jobs: { capacity: 1, max_age: 0s } }
    1:41: queues.jobs.max_age: 0s is out of bounds: it must be from 1ms to 2592000s
queues: { jobs: { capacity: 1, when_full: drop } }
    1:43: queues.jobs.when_full: "drop" is not one of refuse, drop_oldest
queues: { jobs: { capacity: 1, order: lifo } }
    1:32: queues.jobs.order: is for `kind: list`; items of a stream come in the order of Enqueue
queues: { jobs: { capacity: 1, outcomes: 31d } }
    1:42: queues.jobs.outcomes: 2678400s is out of bounds: it must be from 0s to 2592000s
queues: { jobs: { capacity: 1, outcomes: { max: 0 } } }
    1:49: queues.jobs.outcomes.max: 0 is out of bounds: it must be from 1 to 10000000
queues: { jobs: { capacity: 1, outcomes: { payload: all } } }
    1:53: queues.jobs.outcomes.payload: "all" is not one of none, digest, head
queues: { jobs: { capacity: 1, outcomes: { kep: 1h } } }
    1:44: queues.jobs.outcomes.kep: unknown key; did you mean `keep`?
queues: { jobs: { capacity: 1, rat: 1/s } } => 1:32: queues.jobs.rat: unknown key; did you mean `rate`?
queues: { 'a:b': { capacity: 1 } }
    1:11: queues."a:b": the name `a:b` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /
"#,
    );
    let small = "queues: { jobs: { capacity: 1 } }\nserver: { limits: { max_buffered_bytes: 14MiB } }\n";
    assert!(super::parse(small).is_ok());
    let smaller = small.replace("14MiB", "13MiB");
    let refused = super::parse(&smaller).unwrap_err();
    let wanted = "queues: with queues, `server.limits.max_buffered_bytes` must be at least 14680064, twice the largest message";
    assert!(refused.contains(wanted), "{refused}");
}
