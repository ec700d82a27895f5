//! The binary as a shell sees it: exit codes, what it prints, signals.

use std::io::Read as _;
use std::process::{Command, Stdio};
use weir_testing::scratch;

use serde_json::Value;

use crate::support::command::{Serve, text, weir, weir_command};
use crate::support::{RedisServer, SOON, eventually, eventually_some};

#[test]
fn serving_says_where_and_what_to_type_next() {
    let serve = Serve::start(&[]);
    let line = serve.announced.lines().find(|line| line.contains("weir allow")).unwrap();
    assert!(
        line.ends_with(&format!("allow zewtopia.com/tigerfeeding bob --server {}", serve.server)),
        "{line}"
    );
    let pasted = Command::new("sh").args(["-c", line]).output().unwrap();
    assert_eq!(pasted.status.code(), Some(0), "{}", text(&pasted.stderr));
    assert!(text(&pasted.stdout).starts_with("allowed\n"));
    for signal in ["TERM", "INT"] {
        let serve = Serve::start(&[]);
        let (code, log) = serve.stop(signal);
        assert_eq!(code, Some(0), "{log}");
        let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.last().unwrap()["message"], "stopped");
    }
}

#[test]
fn the_exit_code_is_the_answer() {
    let serve = Serve::start(&[]);
    let look = serve.allow(&["zewtopia.com/tigerfeeding", "bob", "--peek"]);
    assert_eq!((look.status.code(), text(&look.stderr)), (Some(0), String::new()));
    let bob = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(bob.status.code(), Some(0));
    assert!(text(&bob.stdout).starts_with("allowed\n  0 of 1 remaining, full again in 10s\n"));
    let again = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stdout).starts_with("denied: Rate limit exceeded. Try again in "));
    let never = serve.allow(&["zewtopia.com/tigerfeeding", "eve", "--cost", "2"]);
    assert_eq!(never.status.code(), Some(1));
    assert!(text(&never.stdout).contains("can never pass"));
    let unknown = serve.allow(&["zewtopia.com/tigerfeeding", "bob", "--strategy", "tiger-fedding"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("NOT_FOUND"));
    assert!(text(&unknown.stderr).contains("tiger-feeding"));
    let nameless = serve.allow(&["zewtopia.com/tigerfeeding"]);
    assert_eq!(nameless.status.code(), Some(2));
    assert!(text(&nameless.stderr).contains("consumer"), "{}", text(&nameless.stderr));
}

#[test]
fn json_is_the_proto_json_of_the_response() {
    let serve = Serve::start(&[]);
    let json = |args: &[&str]| -> (Option<i32>, Value) {
        let out = serve.allow(&[&["--output", "json"], args].concat());
        (out.status.code(), serde_json::from_slice(&out.stdout).unwrap())
    };
    let (code, allowed) = json(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(code, Some(0));
    assert_eq!(allowed["allowed"], true);
    assert_eq!(allowed["remaining"], "0");
    assert_eq!(allowed["resetAfter"], "10s");
    assert_eq!(allowed["reason"], "REASON_OK");
    assert_eq!(allowed["degraded"], false);
    assert_eq!(allowed["deniedBy"], Value::Array(vec![]));
    assert_eq!(allowed.get("retryAfter"), None);
    let (code, denied) = json(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(code, Some(1));
    assert_eq!(denied["allowed"], false);
    assert_eq!(denied["deniedBy"][0], "each");
    assert!(denied["retryAfter"].as_str().unwrap().ends_with('s'));
    assert_eq!(denied["limits"][0].get("retryAfter"), None);
    assert_eq!(denied["limits"][1]["retryAfter"], denied["retryAfter"]);
}

#[test]
fn a_refused_connection_is_an_error_that_says_what_to_do() {
    // The port was bound and closed again, so connections to it are refused.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let out = weir(&["allow", "x", "bob", "--server", &format!("http://{address}")]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("weir serve"), "{}", text(&out.stderr));
    let out = weir(&["allow", "x", "bob", "--server", "not a url"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("http://HOST:PORT"), "{}", text(&out.stderr));
}

#[test]
fn a_server_that_says_nothing_is_given_up_on() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let out = weir(&["allow", "x", "bob", "--server", &server, "--timeout", "100ms"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no answer within 100ms"), "{}", text(&out.stderr));
}

#[test]
fn wrong_usage_exits_2_and_help_exits_0() {
    for args in [
        &["allow"][..],
        &["allow", "x", "bob", "--cost", "-1"],
        &["allow", "x", "bob", "--timeout", "soon"],
        &["check"],
        &["serve", "--nonsense"],
        &["nonsense"],
    ] {
        let out = weir(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(!out.stderr.is_empty(), "{args:?}");
    }
    let version = weir(&["--version"]);
    assert_eq!(text(&version.stdout), format!("weir {}\n", env!("CARGO_PKG_VERSION")));
    let help = weir(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).starts_with("Examples:"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let serve = Serve::start(&[]);
    let mut command = weir_command(&["allow", "zewtopia.com/tigerfeeding", "bob", "--server", &serve.server]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()));
}

#[test]
fn every_option_has_its_variable() {
    let serve = Serve::start(&[]);
    let mut command = weir_command(&["allow", "zewtopia.com/tigerfeeding", "bob"]);
    let out = command.env("WEIR_SERVER", &serve.server).env("WEIR_OUTPUT", "json").output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["allowed"], true);
    for command in ["serve", "allow", "explain"] {
        let help = text(&weir(&[command, "--help"]).stdout);
        let options = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
        for option in options {
            let name = option.split("--").nth(1).unwrap().split(' ').next().unwrap();
            let variable = format!("WEIR_{}", name.to_uppercase().replace('-', "_"));
            // `test-clock` is for tests alone: no deployment sets it by accident.
            let of_one_call = "help peek headers attribute envoy merge-domains entry at-most inline reserve debit \
                               refund id wait hold queue insecure-token test-clock";
            let belongs_to_one_call = of_one_call.split(' ').any(|option| option == name);
            assert!(
                belongs_to_one_call || help.contains(&variable),
                "--{name} of {command} has {variable}\n{help}"
            );
        }
    }
}

#[test]
fn flags_go_before_the_file_and_their_mistakes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        "server: { listen: 'not an address' }",
        "strategies:",
        "  calls: { limits: [{ name: all, per: [], token_bucket: { rate: 1/1h, burst: 1 } }] }",
    ];
    let file = scratch::file(directory.path(), "weir.yaml", lines.join("\n"));
    let bad = weir(&["serve", "--config", file.to_str().unwrap(), "--workers", "many"]);
    assert_eq!(bad.status.code(), Some(1));
    let errors = text(&bad.stderr);
    assert!(errors.contains("--workers"), "{errors}");

    std::fs::write(&file, lines[1..].join("\n")).unwrap();
    let serve = Serve::start(&["--config", file.to_str().unwrap()]);
    assert!(serve.announced.contains(" --strategy calls"), "{}", serve.announced);
    assert!(serve.announced.contains(file.to_str().unwrap()));
    let args = ["anything", "--strategy", "calls"];
    assert_eq!([serve.allow(&args).status.code(), serve.allow(&args).status.code()], [Some(0), Some(1)]);
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = std::net::TcpListener::bind(taken).unwrap();
    let out = weir(&["serve", "--listen", &taken.to_string(), "--admin", "127.0.0.1:0"]);
    drop(listener);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains(&format!("cannot listen on {taken} (gRPC)")), "{}", text(&out.stderr));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut serve = Serve::start(&[]);
    // An open connection that never closes keeps the drain going.
    let address = serve.server.strip_prefix("http://").unwrap();
    let mut hung = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut hung, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut settings = [0; 9];
    hung.read_exact(&mut settings).unwrap();
    serve.process.signal("TERM");
    let closed = || std::net::TcpStream::connect(serve.server.strip_prefix("http://").unwrap()).is_err();
    eventually(SOON, "it stops listening", closed);
    serve.process.signal("TERM");
    let status = eventually_some(SOON, "it ends at once", || serve.process.exited());
    assert_eq!(status.code(), Some(130));
}

/// SIGTERM leaves the time in which load balancers notice, SIGINT does not, and a second signal ends either.
#[test]
fn signals_during_the_drain_delay() {
    let long = [("WEIR_DRAIN_DELAY", "10m")];
    let mut serve = Serve::start_with(&[], &long);
    serve.process.signal("TERM");
    eventually(SOON, "it is not ready", || {
        let answer = serve.get("/readyz");
        answer.contains(" 503 ") && answer.contains("shutting down")
    });
    let served = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(served.status.code(), Some(0), "{}", text(&served.stderr));
    assert_eq!(serve.stop("TERM").0, Some(130));

    let serve = Serve::start_with(&[], &long);
    assert_eq!(serve.stop("INT").0, Some(0));
}

/// SIGQUIT and the user's signals ended the process at once, with all its calls.
#[test]
fn other_signals_are_ignored_or_drain() {
    let mut serve = Serve::start_with(&[], &[("WEIR_DRAIN_DELAY", "10m"), ("WEIR_LOG", "info")]);
    for signal in ["USR1", "USR2"] {
        serve.process.signal(signal);
    }
    let served = serve.allow(&["zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(served.status.code(), Some(0), "{}", text(&served.stderr));
    serve.process.signal("QUIT");
    eventually(SOON, "it is not ready", || serve.get("/readyz").contains("shutting down"));
    let served = serve.allow(&["zewtopia.com/tigerfeeding", "ann"]);
    assert_eq!(served.status.code(), Some(0), "it drains: {}", text(&served.stderr));
    let (code, log) = serve.stop("QUIT");
    assert_eq!(code, Some(130));
    for signal in ["SIGUSR1", "SIGUSR2"] {
        let ignored = log.lines().any(|line| line.contains("ignoring a signal") && line.contains(signal));
        assert!(ignored, "{signal}: {log}");
    }
}

/// The password is a variable and no flag; with a wrong one the process lives, and its log, at its most
/// talkative, has the reason but not the secret.
#[test]
fn a_password_comes_from_a_variable_and_is_not_logged() {
    let redis = RedisServer::start();
    redis.cli(&["CONFIG", "SET", "requirepass", "hunter2"]);
    for (password, right) in [("hunter2", true), ("hunter3", false)] {
        let variables =
            [("WEIR_REDIS_PASSWORD", password), ("WEIR_LOG", "info,weir=trace,redis=trace,rustls=trace")];
        let serve = Serve::start_with(&["--store", &redis.url()], &variables);
        let allowed = || serve.allow(&["zewtopia.com/tigerfeeding", "bob", "--peek"]).status.success();
        eventually(SOON, "the answer", || allowed() == right);
        let (code, log) = serve.stop("TERM");
        assert_eq!(code, Some(0));
        assert!(!log.contains("hunter"), "{log}");
        assert_eq!(log.contains("WRONGPASS"), !right, "{log}");
    }
    let refused = weir(&["serve", "--redis-password", "hunter2"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--redis-password-file"), "{refused:?}");
}
