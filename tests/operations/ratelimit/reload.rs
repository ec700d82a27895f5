//! SIGHUP reads the files again, as in a native server.

use super::Ratelimit;
use crate::support::{SOON, eventually, scratch};

const LOADS: &str = "weir_envoy_config_loads_total{result=\"ok\"} ";

#[test]
fn sighup_reads_the_files_and_ends_nothing() {
    let mut started = Ratelimit::start(&[]);
    let loads = |started: &Ratelimit| -> u64 {
        let (_, page) = started.get(6070, "/metrics").unwrap();
        page.lines().find_map(|line| line.strip_prefix(LOADS)).unwrap().parse().unwrap()
    };
    let before = loads(&started);
    started.process.signal("HUP");
    // No file has changed: only the signal reads them.
    eventually(SOON, "the files are read", || loads(&started) == before + 1);
    assert_eq!(started.stop().0, Some(0));
}

/// The overlay on files follows its own file, without a restart and without a change of theirs.
#[test]
fn an_overlay_that_changes_is_laid_on_the_files() {
    let folder = scratch::dir("overlay-");
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, "envoy: { rules: [] }\n").unwrap();
    let started = Ratelimit::start(&[("WEIR_CONFIG", file.to_str().unwrap())]);
    let passed =
        |value: &str| (0..30).take_while(|_| started.json("d", &[("k", value)]).starts_with("OK")).count();
    assert_eq!(passed("before"), 20);
    let entry = "{ domain: d, path: k, algorithm: token_bucket, burst: 5 }";
    std::fs::write(&file, format!("envoy: {{ rules: [{entry}] }}\n")).unwrap();
    let mut tries = 0;
    eventually(SOON, "a burst of 5", || {
        tries += 1;
        passed(&format!("bucket-{tries}")) == 5
    });
    let (_, log) = started.stop();
    assert!(!log.contains("needs a restart"), "{log}");
}

/// While Redis is away, the node counts Envoy's rules by itself with its part of each.
#[test]
fn an_overlay_lets_the_node_count_by_itself() {
    let redis = crate::support::RedisServer::start();
    let folder = scratch::dir("overlay-");
    let file = folder.path().join("weir.yaml");
    let entry = "{ domain: d, path: k, on_store_failure: { local: { share: 1/4, when_full: deny } } }";
    std::fs::write(&file, format!("envoy: {{ rules: [{entry}] }}\n")).unwrap();
    let started = Ratelimit::start(&[
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis.addr()),
        ("WEIR_CONFIG", file.to_str().unwrap()),
    ]);
    eventually(SOON, "Redis counts", || started.json("d", &[("k", "warm")]).starts_with("OK"));
    redis.kill();
    let passed = (0..30).take_while(|_| started.json("d", &[("k", "away")]).starts_with("OK")).count();
    assert_eq!(passed, 5, "a quarter of 20");
    assert!(started.json("d", &[("k", "v")]).starts_with("503"), "a rule without an entry is an error");
    assert_eq!(started.get(8080, "/healthcheck").unwrap().0, 200);
}
