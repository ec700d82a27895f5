//! `weir serve --test-clock`: an hour passes when a test says so.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::Value;

use crate::support::command::{text, weir, weir_command};
use crate::support::{SOON, eventually_some};

const HOURLY: &str = "
strategies:
  api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 1 } }] }
  permits: { concurrency: { limit: 1, per: [resource], ttl: 30s } }
resources:
  - { match: api, strategy: api }
  - { match: db, strategy: permits }
";

/// Ends with its stdin.
struct TestClock {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    server: String,
}

impl TestClock {
    fn start() -> Self {
        let folder = weir_testing::scratch::dir("clock-");
        let file = crate::support::scratch::file(folder.path(), "weir.yaml", HOURLY);
        let mut command = weir_command(&["serve", "--test-clock", "--config", file.to_str().unwrap()]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let server = format!("http://{}", first.strip_prefix("serving ").unwrap());
        Self { stdin: child.stdin.take().unwrap(), child, lines, server }
    }

    fn say(&mut self, line: &str) -> String {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.lines.next().unwrap().unwrap()
    }

    fn call(&self, args: &[&str]) -> Option<i32> {
        weir(&[args, &["--server", &self.server]].concat()).status.code()
    }

    /// Closes stdin: the exit code, and the log.
    fn end(self) -> (Option<i32>, String) {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        let status = eventually_some(SOON, "weir ends", || child.try_wait().unwrap());
        let mut log = String::new();
        child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status.code(), log)
    }
}

#[test]
fn an_hour_passes_when_the_test_says_so() {
    let mut weir = TestClock::start();
    let allow = ["allow", "api", "bob"];
    assert_eq!([weir.call(&allow), weir.call(&allow)], [Some(0), Some(1)]);
    assert_eq!(weir.say("advance 3599.999999"), "ok");
    assert_eq!(weir.call(&allow), Some(1), "a microsecond early");
    assert_eq!(weir.say("advance 0.000001"), "ok");
    assert_eq!([weir.call(&allow), weir.call(&allow)], [Some(0), Some(1)]);
    assert!(weir.say("advance an hour").starts_with("error "));
    let acquire = |id| ["lease", "acquire", "db", "bob", "--id", id];
    assert_eq!([weir.call(&acquire("a")), weir.call(&acquire("b"))], [Some(0), Some(1)]);
    assert_eq!(weir.say("advance 30"), "ok");
    assert_eq!(weir.call(&acquire("b")), Some(0), "leases end on the same clock");
    let (code, log) = weir.end();
    assert_eq!(code, Some(0), "it ends with its stdin: {log}");
    let mut events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let warns = |event: &Value| {
        event["level"] == "WARN" && event["message"].as_str().unwrap().starts_with("--test-clock: ")
    };
    assert!(events.any(|event| warns(&event)), "{log}");
}

#[test]
fn nobody_else_can_depend_on_a_clock_that_stands_still() {
    let folder = weir_testing::scratch::dir("clock-");
    let http = crate::support::scratch::file(
        folder.path(),
        "http.yaml",
        format!("{HOURLY}http: {{ listen: '0.0.0.0:0' }}\n"),
    );
    let remote: [&[&str]; 4] = [
        &["--config", http.to_str().unwrap()],
        &["--store", "redis://127.0.0.1:1"],
        &["--listen", "0.0.0.0:0"],
        &["--listen", "127.0.0.1:0", "--admin", "[::]:0"],
    ];
    for args in remote {
        let out = weir(&[&["serve", "--test-clock"], args].concat());
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains("--test-clock"), "{error}");
    }
}
