//! `weir check --diff`: what a change of the configuration does.

use super::{directory, shown};
use crate::support::command::{text, weir};

/// Two configurations, and what `weir check --diff` says of them.
fn differences(old: &str, new: &str) -> (Option<i32>, String, String) {
    let directory = directory(&[("old.yaml", old), ("new.yaml", new)]);
    let out = weir(&["check", "--diff", &shown(&directory, "old.yaml"), &shown(&directory, "new.yaml")]);
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn a_difference_says_what_changes_what_starts_full_and_what_needs_a_restart() {
    let old = "\
server: { workers: 2, inline_limits: false }
strategies:
  api:
    limits:
      - { name: burst, per: [consumer], token_bucket: { rate: 10/s, burst: 20 } }
      - { name: daily, per: [consumer], fixed_window: { limit: 100, window: 1h } }
      - { name: hourly, per: [consumer], fixed_window: { limit: 50, window: 1h } }
      - { name: old, per: [consumer], fixed_window: { limit: 9, window: 1h } }
  same: { limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
  gone: { limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
  policy: { limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
  moved: { limits: [{ name: a, per: [resource], uniform: { interval: 1s } }, { name: b, per: [resource, consumer], uniform: { interval: 1s } }] }
resources:
  - { match: a, strategy: api }
  - { match: b, strategy: same }
overrides:
  - { consumer: gold, strategy: api, limits: { burst: { token_bucket: { rate: 50/s, burst: 100 } } } }
  - { consumer: left, strategy: api, limits: { daily: { fixed_window: { limit: 7, window: 1h } } } }
";
    let new = "\
server: { workers: 3, inline_limits: true }
access: { deny: [eve] }
strategies:
  api:
    limits:
      - { name: burst, per: [consumer], token_bucket: { rate: 30/s, burst: 20 } }
      - { name: daily, per: [consumer], sliding_log: { limit: 100, window: 1h } }
      - { name: hourly, per: [consumer], fixed_window: { limit: 50, window: 1h } }
      - { name: new, per: [consumer], fixed_window: { limit: 9, window: 1h } }
  same: { limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
  policy: { on_store_failure: allow, limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
  moved: { single_slot: true, limits: [{ name: a, per: [resource], uniform: { interval: 1s } }, { name: b, per: [resource, consumer], uniform: { interval: 1s } }] }
  fresh: { limits: [{ name: l, per: [resource], uniform: { interval: 1s } }] }
resources:
  - { match: a, strategy: fresh }
  - { match: 'c/*', strategy: same }
overrides:
  - { consumer: gold, strategy: api, limits: { burst: { token_bucket: { rate: 60/s, burst: 100 } } } }
queues: { jobs: { capacity: 3 } }
";
    let (code, out, errors) = differences(old, new);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    for line in [
        "strategies.api.limits.burst: [consumer] token_bucket: { rate: 10/s, burst: 20 } -> [consumer] token_bucket: { rate: 30/s, burst: 20 }; it keeps what is used",
        "strategies.api.limits.old: removed",
        "strategies.gone: removed; its states expire",
        "strategies.fresh: added",
        "strategies.policy: changed, and keeps what is used",
        "strategies.moved: its keys move to other slots, so on Redis all of it starts full",
        "resources a: api -> fresh",
        "resources b: removed",
        "resources c/*: added: same",
        "access: changed",
        "queues.jobs: added",
        "server.workers: 2 -> 3 (needs a restart)",
        "server.inline_limits: false -> true (a reload applies it)",
        "note: a restart makes all limits full, because the store is memory",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\nin\n{out}");
    }
    let starts =
        |start: &str, end: &str| out.lines().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(starts("strategies.api.limits.daily: ", "; it starts full"), "{out}");
    assert!(starts("strategies.api.limits.new: added: ", "; it starts full"), "{out}");
    assert!(starts("overrides of api for gold: ", "; it keeps what is used"), "{out}");
    assert!(starts("overrides of api for left: ", "removed; it keeps what is used"), "{out}");
    assert!(!out.contains("hourly") && !out.contains("strategies.same"), "{out}");
    assert_eq!(
        differences(old, &format!("# a comment\n{old}")),
        (Some(0), "nothing differs\n".to_owned(), String::new())
    );
}

/// The numbers of the bound are a part of the keys' names; how often nodes push is not.
#[test]
fn a_strategy_that_is_counted_in_another_way_starts_full() {
    const SUMS: &str = ", approximate: { max_over: 90, nodes: 10 }";
    const OTHER_SUMS: &str = ", approximate: { max_over: 80, nodes: 10 }";
    const SYNC: &str = ", approximate: { max_over: 90, nodes: 10, sync: 1s }";
    let config = |counted: &str| {
        format!(
            "store: {{ redis: {{ nodes: ['redis://127.0.0.1:6379'] }} }}
strategies: {{ s: {{ limits: [{{ name: l, per: [consumer], fixed_window: {{ limit: 1000, window: 10s }} }}]{counted} }} }}
"
        )
    };
    let starts_full = "strategies.s: counts something else, so it starts full\n";
    let keeps = "strategies.s: changed, and keeps what is used\n";
    for (old, new, line) in [
        ("", SUMS, starts_full),
        (SUMS, "", starts_full),
        (SUMS, OTHER_SUMS, starts_full),
        (SUMS, SYNC, keeps),
        (SUMS, SUMS, "nothing differs\n"),
    ] {
        assert_eq!(differences(&config(old), &config(new)), (Some(0), line.to_owned(), String::new()));
    }
}

#[test]
fn a_difference_of_a_mistaken_configuration_is_its_mistakes() {
    let (code, out, errors) = differences("strategies: { s: {} }", "nonsense: 1");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        errors.contains("old.yaml:1:") && errors.contains("new.yaml:1:1: nonsense: unknown key"),
        "{errors}"
    );
    assert_eq!(weir(&["check", "--diff", "one"]).status.code(), Some(2));
}

/// Files in two folders differ by their paths, but `-` is standard output in both.
#[test]
fn the_audit_on_standard_output_is_the_same_in_every_folder() {
    let yaml = "server: { control: true, audit_file: '-' }
control: { cache_file: /tmp/entries }
strategies: { s: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] } }
";
    let (one, other) = (directory(&[("weir.yaml", yaml)]), directory(&[("weir.yaml", yaml)]));
    let out = weir(&["check", "--diff", &shown(&one, "weir.yaml"), &shown(&other, "weir.yaml")]);
    assert_eq!(text(&out.stdout), "nothing differs\n");
}
