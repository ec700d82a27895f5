//! A service that is started again with another file finds in Redis what the one before has spent.

use serde_json::Value;

use crate::support::command::{Serve, text};
use crate::support::{RedisServer, scratch};

/// A strategy for each engine: so many in so many hours.
fn file(redis: &RedisServer, limit: u64, hours: u64) -> String {
    let strategy = |name: &str, algorithm: String| {
        format!("  {name}: {{ limits: [{{ name: each, per: [consumer], {algorithm} }}] }}\n")
    };
    let (counted, window) = (format!("limit: {limit}"), format!("window: {hours}h"));
    let strategies = [
        ("bucket", format!("token_bucket: {{ rate: {limit}/{hours}h }}")),
        ("window", format!("fixed_window: {{ {counted}, {window}, anchored: true }}")),
        ("refill", format!("interval_refill: {{ capacity: {limit}, refill: {limit}, period: {hours}h }}")),
        ("log", format!("sliding_log: {{ {counted}, {window} }}")),
        ("sliding", format!("sliding_window: {{ {counted}, {window} }}")),
        ("buckets", format!("bucketed_window: {{ {counted}, {window}, buckets: 10 }}")),
    ];
    let strategies: String = strategies.into_iter().map(|(name, one)| strategy(name, one)).collect();
    format!(
        "store: {{ redis: {{ nodes: [\"{}\"], deadline: 60s, connect_timeout: 60s }} }}\nstrategies:\n{strategies}",
        redis.url()
    )
}

const STRATEGIES: [&str; 6] = ["bucket", "window", "refill", "log", "sliding", "buckets"];

fn ask(serve: &Serve, strategy: &str, cost: &str) -> Value {
    let args = ["--output", "json", "--strategy", strategy, "--cost", cost, "zoo", "bob"];
    let out = serve.allow(&args);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{strategy}: {e}: {}", text(&out.stderr)))
}

fn seconds(answer: &Value, name: &str) -> f64 {
    let duration = answer[name].as_str().unwrap_or_else(|| panic!("no {name}: {answer}"));
    duration.trim_end_matches('s').parse().unwrap()
}

#[test]
fn with_another_file() {
    let (redis, dir) = (RedisServer::start(), scratch::dir("restarted-"));
    let path = dir.path().join("weir.yaml");
    let serve = |limit, hours| {
        std::fs::write(&path, file(&redis, limit, hours)).unwrap();
        Serve::start(&["--config", path.to_str().unwrap()])
    };
    let served = serve(10, 10);
    for strategy in STRATEGIES {
        let answer = ask(&served, strategy, "8");
        assert_eq!((&answer["allowed"], &answer["remaining"]), (&true.into(), &"2".into()), "{answer}");
    }
    served.stop("TERM");

    // Half of it: what is spent is above the limit, and what is above it can be waited for.
    let served = serve(5, 10);
    for strategy in STRATEGIES {
        let answer = ask(&served, strategy, "1");
        assert_eq!((&answer["allowed"], &answer["remaining"]), (&false.into(), &"0".into()), "{answer}");
        assert_eq!(answer["reason"], "REASON_LIMITED", "{answer}");
        let retry = seconds(&answer, "retryAfter");
        assert!(retry > 0.0 && retry <= 20.0 * 3600.0, "{strategy}: {answer}");
        assert_eq!(ask(&served, strategy, "6")["reason"], "REASON_NEVER");
    }
    served.stop("TERM");

    // Twice as much in three times the time: as much more as it was raised by.
    let served = serve(20, 30);
    for strategy in STRATEGIES {
        let answer = ask(&served, strategy, "0");
        assert_eq!((&answer["allowed"], &answer["remaining"]), (&true.into(), &"12".into()), "{answer}");
        assert!(seconds(&answer, "resetAfter") <= 60.0 * 3600.0, "{strategy}: {answer}");
        assert_eq!(ask(&served, strategy, "12")["remaining"], "0");
        assert_eq!(ask(&served, strategy, "1")["allowed"], false);
    }
    served.stop("TERM");
    assert_eq!(redis.state_keys().len(), STRATEGIES.len());
}
