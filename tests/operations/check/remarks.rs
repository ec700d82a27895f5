//! Remarks of `weir check` on valid files, and on files with words of other systems.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{check, directory, mistakes, shown};
use crate::support::command::{text, weir};

/// The lines on stderr for a valid file.
fn remarks(config: &str) -> Vec<String> {
    let directory = directory(&[("weir.yaml", config)]);
    let (code, _, errors) = check(&shown(&directory, "weir.yaml"));
    assert_eq!(code, Some(0), "{errors}");
    let file = shown(&directory, "weir.yaml");
    errors.lines().map(|line| line.replace(&file, "weir.yaml")).collect()
}

#[test]
fn a_file_that_may_not_be_meant_is_told_of() {
    let said = remarks(
        "store: { redis: { nodes: [\"redis://a\"] } }
strategies:
  api:
    limits:
      - { name: ip, per: [ip], sliding_log: { limit: 10, window: 1s } }
      - { name: user, per: [user], uniform: { interval: 1s } }
  tight:
    limits:
      - { name: second, per: [consumer], token_bucket: { rate: 1/s, burst: 1 } }
      - { name: minute, per: [consumer], token_bucket: { rate: 100/m, burst: 100 } }
    on_store_failure: error
access: { deny: [bob, eve], allow: [bob] }
",
    );
    let expected = [
        "note: weir.yaml:3:3: strategies.api: has no `on_store_failure`: if Redis is away, its callers get UNAVAILABLE; write allow, deny or error",
        "note: weir.yaml:3:3: strategies.api: the scopes [ip] and [user] have no field in common; on Redis Cluster this strategy needs `single_slot: true`",
        "warning: weir.yaml: access: `bob` is on both lists, and so denied",
        "warning: weir.yaml: strategy `api`: callers must send the attributes `ip`, `user`; if `user` is who calls, write `consumer`, which every request has",
        "warning: weir.yaml: strategy `tight`: limit `minute` is never reached by calls, because `second` denies first",
    ];
    assert_eq!(said, expected);
}

/// The same file with what it lacks.
#[test]
fn a_file_that_says_everything_is_met_with_silence() {
    let said = remarks(
        "strategies: { api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 5/s, burst: 5 } }] } }\n",
    );
    assert_eq!(said, [""; 0]);
}

#[test]
fn what_people_write_first_is_answered_with_what_they_mean() {
    for (written, meant) in [
        ("fixed_window: \"5/minute\"", "write fixed_window: { limit: 5, window: 1m }"),
        ("token_bucket: 50/s", "write token_bucket: { rate: 50/1s, burst: 50 }"),
        ("token_bucket: { rate: 50/min }", "write 50/m"),
        ("fixed_window: { limit: 5, window: 1min }", "write 1m"),
        ("fixed_window: { limit: 5, window: 1month }", "`calendar: month`"),
        ("fixed_window: { limit: ${N}, window: 1m }", "put a variable in quotes"),
    ] {
        let found = mistakes(&format!(
            "strategies: {{ a: {{ limits: [{{ name: l, per: [consumer], {written} }}] }} }}"
        ));
        assert!(found.iter().any(|line| line.contains(meant)), "{written}: {found:#?}");
    }
    let found = mistakes("store: redis://:secret@localhost\nstrategies: {}");
    assert!(found.iter().any(|line| line.contains("write store: { redis: { nodes:")), "{found:#?}");
    assert!(!found.concat().contains("secret"), "{found:#?}");
}

#[test]
fn several_files_and_standard_input_are_checked_each_by_itself() {
    let directory =
        directory(&[("a.yaml", super::GOOD), ("b.yaml", "strategies: 5\n"), ("c.yaml", super::GOOD)]);
    let files = ["a.yaml", "b.yaml", "c.yaml"].map(|name| shown(&directory, name));
    let out = weir(&["check", &files[0], &files[1], &files[2]]);
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(text(&out.stdout).lines().count(), 2, "{}", text(&out.stdout));
    assert!(text(&out.stderr).contains(&format!("{}:1:13: strategies:", files[1])), "{}", text(&out.stderr));

    for (given, code) in [(super::GOOD, 0), ("strategies: 5\n", 1)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let command = command.args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(given.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{given}");
    }
}

#[test]
fn a_first_file_is_written_once() {
    let directory = directory(&[]);
    let file = shown(&directory, "weir.yaml");
    let made = weir(&["init", &file]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains(&format!("weir serve --config {file}")), "{}", text(&made.stdout));
    assert_eq!(check(&file).0, Some(0));
    std::fs::write(&file, "mine").unwrap();
    let again = weir(&["init", &file]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("exists, and stays as it is"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&weir(&["completions", shell]).stdout);
        assert!(script.contains("serve") && script.contains("simulate"), "{shell}: {script}");
    }
}

/// `weir serve mine.yaml` is what people type first.
#[test]
fn serve_takes_a_file_without_its_flag() {
    let directory = directory(&[("mine.yaml", "strategies: 5\n")]);
    let file = shown(&directory, "mine.yaml");
    let out = weir(&["serve", &file]);
    assert_ne!(out.status.code(), Some(0));
    assert!(text(&out.stderr).contains(&format!("{file}:1:13: strategies:")), "{}", text(&out.stderr));
}
