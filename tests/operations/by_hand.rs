//! The commands that ask and change a running server by hand: count, debit, cancel, reset, usage, health, lease list.

use std::process::Output;

use crate::support::command::{Serve, text, weir};
use crate::support::{SOON, eventually, scratch};

const CONFIG: &str = "
server: { admin_service: true }
strategies:
  counted: { limits: [{ name: l, per: [consumer], bucketed_window: { limit: 100, window: 1h, buckets: 60 } }] }
  paced: { limits: [{ name: gap, per: [consumer], token_bucket: { rate: 1/30s, burst: 1 } }] }
  exports: { concurrency: { per: [consumer], limit: 3, ttl: 30s } }
resources:
  - { match: api, strategy: counted }
  - { match: jobs, strategy: paced }
  - { match: 'exports/*', strategy: exports }
";

struct ByHand {
    serve: Serve,
    _folder: tempfile::TempDir,
}

impl ByHand {
    fn start(config: &str) -> Self {
        let folder = scratch::dir("by-hand-");
        let file = scratch::file(folder.path(), "weir.yaml", config);
        Self { serve: Serve::start(&["--config", file.to_str().unwrap()]), _folder: folder }
    }

    /// Exit code, stdout and stderr.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = weir(&[args, &["--server", &self.serve.server]].concat());
        (status.code(), text(&stdout), text(&stderr))
    }

    /// The output of a command that succeeds.
    fn says(&self, args: &[&str]) -> String {
        let (code, out, errors) = self.run(args);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    }
}

#[test]
fn what_was_used_is_counted_debited_and_reset() {
    let it = ByHand::start(CONFIG);
    assert_eq!(it.says(&["count", "api", "bob", "--over", "5m"]).split(' ').next(), Some("0"));
    let debited = it.says(&["debit", "api", "bob", "--cost", "130", "--id", "a"]);
    assert!(debited.starts_with("charged: the cost did not fit"), "{debited}");
    assert!(it.says(&["debit", "api", "bob", "--cost", "130", "--id", "a"]).starts_with("known: "));
    let counted = it.says(&["count", "api", "bob", "--over", "5m", "--limit", "l"]);
    assert!(counted.starts_with("130 used in the last "), "{counted}");
    let json = it.says(&["count", "api", "bob", "--over", "1h", "--output", "json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["used"], "130");
    assert_eq!(it.run(&["allow", "api", "bob"]).0, Some(1));
    let reset = it.says(&["reset", "api", "bob"]);
    assert_eq!(reset, "reset\n    l  100 of 100 remaining, full again in 0s\n");
    assert_eq!(it.run(&["allow", "api", "bob"]).0, Some(0));
    let (code, _, errors) = it.run(&["reset", "api", "bob", "--limit", "m"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("INVALID_ARGUMENT"), "{errors}");
}

#[test]
fn a_reservation_is_cancelled_once() {
    let it = ByHand::start(CONFIG);
    let _ = it.says(&["allow", "jobs", "bob"]);
    let _ = it.says(&["allow", "jobs", "bob", "--reserve", "1m", "--id", "job-1"]);
    let cancel = ["cancel", "jobs", "bob", "--id", "job-1"];
    assert!(it.says(&cancel).starts_with("cancelled\n    gap  "));
    assert!(it.says(&cancel).starts_with("cancelled before\n"));
    let (code, out, _) = it.run(&["cancel", "jobs", "bob", "--id", "nobody"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.starts_with("not cancelled: there is no reservation of this id"), "{out}");
}

#[test]
fn leases_are_listed_and_released_by_hand() {
    let it = ByHand::start(CONFIG);
    assert_eq!(it.says(&["lease", "list", "exports", "exports/acme", "acme"]), "no leases\n");
    for id in ["a", "bb", "c"] {
        let _ = it.says(&["lease", "acquire", "exports/acme", "acme", "--id", id]);
    }
    let listed = it.says(&["lease", "list", "exports", "exports/acme", "acme"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 3 && lines[1].starts_with("bb  1 permit, held for "), "{listed}");
    assert!(lines[0].contains(", ends in "), "{listed}");
    let one = it.says(&["lease", "release", "exports/acme", "acme", "--id", "a", "--id", "x"]);
    assert_eq!(one, "1 released, 2 left\n  a\n");
    let all = it.says(&["lease", "release", "exports/acme", "acme"]);
    assert_eq!(all, "2 released, 0 left\n  bb\n  c\n");
    assert_eq!(it.run(&["lease", "release", "exports/acme", "acme"]).0, Some(1));
    let (code, _, errors) = it.run(&["lease", "release", "exports/acme", "acme", "--outcome", "dropped"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("--outcome and --rtt are about one lease"), "{errors}");
}

#[test]
fn an_operators_command_without_the_service_names_the_setting() {
    let it = ByHand::start(&CONFIG.replace("server: { admin_service: true }", ""));
    for args in [&["reset", "api", "bob"][..], &["lease", "list", "exports", "exports/a", "a"]] {
        let (code, _, errors) = it.run(args);
        assert_eq!(code, Some(2));
        assert!(errors.contains("server.admin_service: true"), "{errors}");
    }
}

#[test]
fn usage_is_a_table_or_csv_or_json() {
    let it = ByHand::start(CONFIG);
    for _ in 0..3 {
        let _ = it.says(&["allow", "api", "bob", "--cost", "2"]);
    }
    let csv = || it.says(&["usage", "--csv", "--strategy", "counted"]);
    eventually(SOON, "the calls are counted", || csv().contains(",counted,api,allowed,3,6"));
    assert!(csv().starts_with("start,strategy,resource_pattern,outcome,calls,cost,cost_name,unit\n"));
    let table = it.says(&["usage", "--step", "1s", "--last", "10m"]);
    assert!(table.lines().count() >= 2 && table.contains("counted"), "{table}");
    let json = it.says(&["usage", "--output", "json", "--outcome", "allowed"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["series"][0]["calls"], "3");
    assert_eq!(it.says(&["usage", "--strategy", "paced"]), "no decisions in this time\n");
}

#[test]
fn health_says_whether_a_server_is_ready() {
    let it = ByHand::start(CONFIG);
    for args in [&["health"][..], &["health", ""], &["health", "weir.v1.ConcurrencyService"]] {
        assert_eq!(it.says(args), "serving\n");
    }
    let (code, out, _) = it.run(&["health", "weir.v1.NoService"]);
    assert_eq!((code, out.as_str()), (Some(1), "not serving: the server has no such service\n"));
    let away = weir(&["health", "--server", "127.0.0.1:1"]);
    assert_eq!(away.status.code(), Some(2));
}
