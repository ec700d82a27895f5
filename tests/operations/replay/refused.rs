//! Logs from which nothing exact could be computed are refused, with line, column and reason.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::command::{text, weir};

const RULES: &str = "
strategies:
  api: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 1, window: 1s } }] }
  all: { limits: [{ name: everyone, per: [resource], fixed_window: { limit: 1, window: 1s } }] }
";

/// A line of a log of all keys.
fn line(incarnation: &str, sequence: u64, time_us: u64, consumer: &str) -> Value {
    json!({
        "log": "decisions", "keys": 1, "incarnation": incarnation, "sequence": sequence, "time_us": time_us,
        "operation": "charge", "strategy": "api", "resource": "r", "consumer": consumer, "cost": 1,
        "granted": 1, "outcome": "allowed", "limits": [],
    })
}

fn with(mut line: Value, name: &str, value: impl Into<Value>) -> Value {
    line[name] = value.into();
    line
}

/// Exit code, stdout and stderr of a replay of `log`.
fn replay(folder: &Path, log: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let (config, file) = (folder.join("weir.yaml"), folder.join("log"));
    std::fs::write(&config, RULES).unwrap();
    std::fs::write(&file, log).unwrap();
    let begin = ["simulate", "--config", config.to_str().unwrap(), "--replay", file.to_str().unwrap()];
    let out = weir(&[&begin[..], args].concat());
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn log_of(lines: &[Value]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

#[track_caller]
fn is_refused(lines: &[Value], number: u64, field: &str, reason: &str) {
    let folder = tempfile::tempdir().unwrap();
    let log = log_of(lines);
    let (code, out, err) = replay(folder.path(), &log, &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    let text = log.lines().nth(usize::try_from(number).unwrap() - 1).unwrap();
    let column = if field.is_empty() { 1 } else { text.find(&format!("\"{field}\":")).unwrap() + 1 };
    let place = format!("log, line {number}, column {column}: ");
    assert!(err.contains(&place) && err.contains(reason), "{place}{reason}: {err}");
}

#[test]
fn a_whole_log_is_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Numbers need not begin at 1, times may be a little out of order, and a restart begins again.
    let lines = [
        line("a", 7, 1_000_000, "bob"),
        line("a", 8, 999_999, "ann"),
        line("b", 1, 1_000_000, "bill"),
        line("a", 9, 1_500_000, "bob"),
    ];
    let lines = lines.map(|line| with(line, "resource", "r"));
    let mut lines = lines.to_vec();
    lines[2]["resource"] = "s".into();
    let (code, out, err) = replay(folder.path(), &log_of(&lines), &[]);
    assert_eq!(code, Some(0), "{err}");
    let earlier =
        "log, line 1 is not the first of its process: 6 earlier lines are in files that were not given";
    assert!(err.contains(earlier), "{err}");
    let expected = "\
strategy  compared  now denied  now allowed  granted otherwise  refused  not compared  not judged
api              4           1            0                  0        0             0           0

first decisions that differ
line 4: api r bob cost 1: allowed 1, now denied
";
    assert_eq!(out, expected);
    let (_, csv, _) = replay(folder.path(), &log_of(&lines), &["--output", "csv"]);
    assert!(csv.ends_with("\napi,4,1,0,0,0,0,0\n"), "{csv}");
}

/// A failure policy let a call pass, and another one got an error: under the same configuration they were counted as
/// changes, and what they may have charged made others look changed.
#[test]
fn what_the_store_did_not_answer_is_counted_and_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = ["degraded_denied", "error", "degraded_allowed", "allowed"];
    let lines = (1..).zip(outcomes).map(|(number, outcome)| {
        let granted = u64::from(outcome == "allowed");
        with(with(line("a", number, 1_000_000 + number, "bob"), "outcome", outcome), "granted", granted)
    });
    let (code, csv, err) = replay(folder.path(), &log_of(&lines.collect::<Vec<_>>()), &["--output", "csv"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(csv.ends_with("\napi,1,0,0,0,0,0,3\n"), "{csv}");
    assert!(err.contains("note: 3 lines cannot be judged: the store did not answer those calls"), "{err}");
}

/// Nodes on one Redis write a log each, which may be given in any order.
#[test]
fn lines_of_several_nodes_are_decided_in_the_order_of_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let later = with(with(line("a", 1, 3_900_000, "bob"), "outcome", "denied"), "granted", 0);
    let lines = [later, line("b", 1, 3_100_000, "bob")];
    let (code, csv, err) = replay(folder.path(), &log_of(&lines), &["--output", "csv"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(csv.ends_with("\napi,2,0,0,0,0,0,0\n"), "{csv}");
}

#[test]
fn gaps_and_lost_order_are_refused() {
    let first = || line("a", 1, 1_000_000, "bob");
    is_refused(&[first(), line("a", 3, 1_000_000, "bob")], 2, "sequence", "1 lines are missing: 3 follows 1");
    is_refused(&[first(), line("a", 1, 1_000_000, "bob")], 2, "sequence", "the order is lost: 1 follows 1");
    is_refused(
        &[first(), line("b", 5, 1_000_000, "ann")],
        2,
        "sequence",
        "the lines 1 to 4 of incarnation b",
    );
    let late = line("a", 2, 5_000_000, "bob");
    is_refused(&[first(), late, line("a", 3, 3_000_000, "bob")], 3, "time_us", "was set back by 2s");
    let same = [first(), line("b", 1, 1_000_000, "bob")];
    is_refused(&same, 2, "", "the order is lost: incarnation b has decided about \"r\" at the same time");
}

/// A full disk cut a line off, and the lines after it were dropped. The rest is replayed, and says so.
#[test]
fn a_torn_line_is_named_and_the_rest_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let first = line("a", 1, 1_000_000, "bob").to_string();
    let torn = line("a", 2, 1_000_100, "ann").to_string();
    let after = line("a", 6, 1_000_200, "eve").to_string();
    let last = line("a", 7, 1_000_300, "joe").to_string();
    let name = folder.path().join("log").display().to_string();
    for cut in [1, 9, torn.len() - 1] {
        let log = format!("{first}\n{}\n{after}\n{last}\n", &torn[..cut]);
        let (code, out, err) = replay(folder.path(), &log, &[]);
        assert_eq!(code, Some(0), "{err}");
        assert!(
            err.contains(&format!("note: {name}, line 2 is cut off, and 4 decisions are lost there")),
            "{err}"
        );
        assert!(out.contains("\napi              3 "), "{out}");
        let (code, out, err) = replay(folder.path(), &log, &["--strict"]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains("log, line 2, column "), "{err}");
    }
    // The process was killed: its last line is cut off, and the next process begins anew.
    let next = line("b", 1, 1_000_500, "eve").to_string();
    let log = format!("{first}\n{}\n{next}\n{}", &torn[..40], &torn[..50]);
    let (code, out, err) = replay(folder.path(), &log, &["--output", "csv"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("\napi,2,0,0,0,0,0,0\n"), "{out}");
    assert!(
        err.contains("line 2 is cut off, and 1 decisions are lost") && err.contains("line 4 is cut off"),
        "{err}"
    );
    // Lines that are missing elsewhere are a gap, as before.
    let log = format!("{first}\n{}\n{after}\n{}\n", &torn[..9], line("a", 9, 1_000_400, "joe"));
    let (code, _, err) = replay(folder.path(), &log, &[]);
    assert!(
        code == Some(2)
            && err.contains("line 4, column ")
            && err.contains("2 lines are missing: 9 follows 6"),
        "{err}"
    );
}

#[test]
fn what_is_sampled_otherwise_is_refused() {
    let first = || line("a", 1, 1_000_000, "bob");
    is_refused(&[with(first(), "log", "denied")], 1, "log", "this is a log of denials");
    is_refused(&[with(first(), "keys", 0.000_001)], 1, "resource", "are not among the 0.000001 of all keys");
    is_refused(&[with(first(), "keys", 2)], 1, "keys", "`keys` must say which part of all keys the log has");
    let halved = with(line("a", 2, 1_000_001, "bob"), "keys", 0.5);
    is_refused(&[first(), halved], 2, "keys", "`keys` is 0.5, and 1 on the lines before");
    let folder = tempfile::tempdir().unwrap();
    // A counter that callers share is not computed from some of them.
    let sampled = (0..1_000).map(|index| format!("bob-{index}"));
    let share = weir_config::KeyShare::new(0.5).unwrap();
    let in_share = sampled.filter(|consumer| share.has("r", consumer)).take(3);
    let lines: Vec<Value> = (1..)
        .zip(in_share)
        .map(|(number, consumer)| {
            with(with(line("a", number, 1_000_000 + number, &consumer), "keys", 0.5), "strategy", "all")
        })
        .collect();
    let (code, _, err) = replay(folder.path(), &log_of(&lines), &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("limit `everyone` of strategy `all` counts by [resource]"), "{err}");
    let lines: Vec<Value> = lines.into_iter().map(|line| with(line, "strategy", "api")).collect();
    assert_eq!(replay(folder.path(), &log_of(&lines), &[]).0, Some(0));
}

#[test]
fn what_is_no_line_is_refused() {
    let first = || line("a", 1, 1_000_000, "bob");
    is_refused(&[with(first(), "cost", -1)], 1, "cost", "`cost` must be a whole number from 0");
    is_refused(&[with(first(), "operation", "steal")], 1, "operation", "\"steal\" is no operation");
    is_refused(&[with(first(), "operation", "reserve")], 1, "", "`max_wait_us` must be a whole number");
    is_refused(&[json!([1])], 1, "", "no JSON object");
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = replay(folder.path(), "{\"log\": decisions}\n", &[]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("log, line 1, column 9: this is no line of a decision log: expected value"),
        "{err}"
    );
    let (_, _, err) = replay(folder.path(), "", &[]);
    assert!(err.contains("there is no line: the log is empty"), "{err}");
    let (_, _, err) = replay(folder.path(), &log_of(&[first()]), &["--strategy", "apis"]);
    assert!(err.contains("the log has no decision of a strategy `apis`"), "{err}");
    let (code, _, err) = replay(folder.path(), &log_of(&[first()]), &["--pattern", "constant:1/s"]);
    assert_eq!((code, err.contains("cannot be used with")), (Some(2), true), "{err}");
}
