//! The reference itself beside Weir: the same requests, the same answers, with all denied hits charged.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Ratelimit, files};
use crate::support::RedisServer;
use crate::support::clients::root;
use crate::support::command::WEIR;

/// Limits of a day and an hour: a run that crosses midnight in UTC begins both anew.
const FILE: &str = "domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 25 } }
  - { key: c, value: x, rate_limit: { unit: day, requests_per_unit: 4 }, shadow_mode: true }
  - { key: c, rate_limit: { unit: day, requests_per_unit: 7 } }
  - { key: z, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: u, rate_limit: { unlimited: true } }
";

/// The program; `None` only where SKIP_REFERENCE=1 asks for it.
fn program() -> Option<PathBuf> {
    if std::env::var_os("SKIP_REFERENCE").is_some_and(|value| value == "1") {
        let _ =
            writeln!(std::io::stderr(), "SKIP_REFERENCE=1: the comparison with the reference has NOT run");
        return None;
    }
    let cache = root().join(".cache/reference");
    assert!(
        cache.join("stamp").exists(),
        "the reference is not installed: run `make test-long`, or scripts/install-reference.sh, or go without it with SKIP_REFERENCE=1"
    );
    Some(cache.join("service_cmd"))
}

/// The answer: the code of the request, and of each descriptor the code, the limit and what remains.
fn answer(server: &Ratelimit, request: &str) -> Value {
    let (status, text) = server.post("/json", request);
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text));
    let statuses = answer["statuses"].as_array().into_iter().flatten();
    let each = statuses.map(|one| json!([one["code"], one["currentLimit"], one["limitRemaining"]]));
    json!([status, answer["overallCode"], each.collect::<Vec<_>>()])
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// One to three different descriptors with one number of hits.
fn request(numbers: &mut Numbers) -> String {
    let mut descriptors: Vec<Value> = Vec::new();
    for _ in 0..numbers.below(3) + 1 {
        let key = ["a", "a", "b", "b", "c", "c", "z", "u"][numbers.below(8)];
        let value = ["x", "y", "1", "2", "3", "4"][numbers.below(6)];
        let descriptor = json!({ "entries": [{ "key": key, "value": value }] });
        if !descriptors.contains(&descriptor) {
            descriptors.push(descriptor);
        }
    }
    let hits = [0, 1, 1, 2, 3, 5, 8, 13][numbers.below(8)];
    json!({ "domain": "d", "descriptors": descriptors, "hitsAddend": hits }).to_string()
}

/// Number of requests that are answered differently, and the first of them.
fn differences(more: &[(&str, &str)], count: usize) -> Option<(usize, String)> {
    let program = program()?;
    let (folder, stores) = (files(FILE), [RedisServer::start(), RedisServer::start()]);
    let root = folder.path().join("data").display().to_string();
    let start = |program: &Path, args: &[&str], redis: &RedisServer, more: &[(&str, &str)]| {
        let address = redis.addr();
        let own = [
            ("WEIR_STORE", ""),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &*address),
            ("RUNTIME_ROOT", &*root),
        ];
        Ratelimit::start_as(program, args, &[&own[..], more].concat())
    };
    let reference = start(&program, &[], &stores[0], &[]);
    let weir = start(Path::new(WEIR), &["ratelimit"], &stores[1], more);
    let mut numbers = Numbers(1);
    let (mut different, mut first) = (0, String::new());
    for _ in 0..count {
        let request = request(&mut numbers);
        let answers = [&reference, &weir].map(|server| answer(server, &request));
        if answers[0] != answers[1] {
            different += 1;
            if first.is_empty() {
                first = format!("{request}\nreference {}\nweir      {}", answers[0], answers[1]);
            }
        }
    }
    Some((different, first))
}

#[test]
fn mixed_hits_are_charged_as_in_the_reference() {
    let Some((different, first)) = differences(&[("WEIR_ENVOY_COUNT_REJECTED", "true")], 3_000) else {
        return;
    };
    println!("3000 requests with mixed hits: {different} are answered differently");
    assert_eq!(different, 0, "{first}");
    // By default denied hits are not charged.
    let (different, _) = differences(&[], 1_000).unwrap();
    println!("1000 requests without `count_rejected`: {different} are answered differently");
    assert!(different > 0);
}
