//! docs/deploy.md says what Redis is asked for a decision: counted by Redis itself.

use crate::support::command::{Serve, text, weir};
use crate::support::{RedisServer, SOON, eventually};
use weir_testing::scratch;

const TEXT: &str = include_str!("../../../docs/deploy.md");

#[test]
fn redis_is_asked_what_is_documented() {
    let table = TEXT.split_once("\n| limits of the strategy |").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let [algorithm, outcome, commands] =
            row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("three cells: {row}")
        };
        let redis = RedisServer::start();
        let directory = tempfile::tempdir().unwrap();
        let algorithm = algorithm.trim_matches('`');
        let limits = format!("[{{ name: each, per: [consumer], {algorithm} }}]");
        let file = scratch::file(
            directory.path(),
            "weir.yaml",
            format!("strategies: {{ a: {{ limits: {limits} }} }}\n"),
        );
        let serve = Serve::start(&["--config", file.to_str().unwrap(), "--store", &redis.url()]);
        let load = |calls: &str, key: &str| {
            let load = ["load", "--server", &serve.server, "--strategy", "a", "--requests", calls, "--quiet"];
            let lone = ["--warm-up", "0s", "--connections", "1", "--in-flight", "1"];
            let out = weir(&[&load[..], &lone, &["--consumer", key, "--keys", "100000000"]].concat());
            assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
            text(&out.stdout)
        };
        let answers = || serve.allow(&["x", "ready", "--strategy", "a", "--peek"]).status.code() != Some(2);
        eventually(SOON, "Redis is reached", answers);
        // The script is known, and what is asked at the beginning has been asked.
        load("10", "first_{key}");
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let report = load("100", "then_{key}");
        assert!(report.contains(&format!("\n  {outcome}")) && report.contains("100 (100.00 %)"), "{report}");
        let stats: String = redis.query(&["INFO", "commandstats"]);
        let mut counted: Vec<String> = stats
            .lines()
            .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
            .map(|(command, rest)| (command, rest.split(',').next().unwrap().parse::<f64>().unwrap()))
            // To the next hundred: Weir also looks after its connections meanwhile.
            .map(|(command, calls)| (command, (calls / 100.0).round() as u64 * 100))
            .filter(|(_, calls)| *calls > 0)
            .map(|(command, calls)| format!("{command} {calls}"))
            .collect();
        counted.sort_unstable();
        assert_eq!(counted.join(", "), commands, "{algorithm}");
    }
}
