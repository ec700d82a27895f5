//! The time for which a restart leaves clients unlimited that fail open: with the channel options of docs/clients.md,
//! below 3 s.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Process;
use crate::support::clients::{environment, node, python, root};
use crate::support::command::Serve;
use weir_testing::ports;

/// Calls that fail before the server comes back: by then the default backoff of gRPC is many seconds long.
const FAILURES: usize = 120;

/// The promise of the page.
const GAP: Duration = Duration::from_secs(3);

/// Times that it is tried. A machine may stop everything for longer than the gap.
const TRIES: usize = 3;

#[test]
fn a_python_client_is_limited_again_soon_after_a_restart() {
    let Some(environment) = environment() else { return };
    let mut client = python(&environment);
    client.arg("tests/clients/reconnect.py");
    is_limited_again(client, &[]);
}

#[test]
fn a_node_client_is_limited_again_soon_after_a_restart() {
    let Some(environment) = environment() else { return };
    let mut client = node(&environment);
    client.arg("tests/clients/reconnect.js");
    is_limited_again(client, &["proto"]);
}

/// The options of the clients are those of the page.
#[test]
fn the_page_has_the_options_of_the_clients() {
    let page = std::fs::read_to_string(root().join("docs/clients.md")).unwrap();
    for (client, row) in [("reconnect.py", "| grpcio (Python)"), ("reconnect.js", "| `@grpc/grpc-js` (Node)")]
    {
        let text = std::fs::read_to_string(root().join("tests/clients").join(client)).unwrap();
        let row = page.lines().find(|line| line.starts_with(row)).unwrap();
        let mut options = 0;
        for line in text.lines().filter(|line| line.contains("reconnect_backoff_ms")) {
            let words: Vec<&str> =
                line.split(['"', '\'', ' ', ',', ':', '(', ')']).filter(|it| !it.is_empty()).collect();
            assert!(row.contains(&format!("`{}` {}", words[0], words[1])), "{client}: {words:?}");
            options += 1;
        }
        assert_eq!(row.matches("_backoff_ms").count(), options, "{client}");
    }
}

fn is_limited_again(mut client: Command, more: &[&str]) {
    let listen = format!("127.0.0.1:{}", ports::free());
    let config = root().join("tests/clients/weir.yaml");
    let start = || Serve::start_at(&listen, &["--config", config.to_str().unwrap()]);
    let mut serve = start();
    client.arg(&listen).args(more).stdout(Stdio::piped());
    let mut client = Process::spawn(client).unwrap();
    let mut lines = BufReader::new(client.child().stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut wait_for = |word: &str, times: usize| {
        for _ in 0..times {
            assert!(lines.by_ref().any(|line| line == word), "the client ends");
        }
    };
    let mut gaps = Vec::new();
    for _ in 0..TRIES {
        wait_for("answered", 1);
        serve.kill();
        wait_for("failed open", FAILURES);
        serve = start();
        let back = Instant::now();
        wait_for("answered", 1);
        gaps.push(back.elapsed());
        println!("answered again {:?} after the restart", back.elapsed());
        if gaps.iter().any(|gap| *gap < GAP) {
            return;
        }
    }
    panic!("the client was unlimited for {gaps:?} after a restart");
}
