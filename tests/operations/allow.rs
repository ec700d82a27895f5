//! `weir allow` with the operations that shape traffic: `--reserve`, `--at-most`, `--debit`, `--refund`, `--id` and `--wait`.
//!
//! The clock of the server stands still, so every wait is the same on every machine.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_config::{Config, ConfigOverrides};

use crate::support::command::{Serve, text, weir, weir_command};
use crate::support::server::Server;

const CONFIG: &str = "
strategies:
  bucket: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 5/1s, burst: 1 } }], max_reservation: 1h }
  five: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1s, burst: 5 } }] }
  paced: { limits: [{ name: each, per: [consumer], leaky_queue: { rate: 5/1s, burst: 3 } }] }
  slow: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 1 } }], max_reservation: 1h }
resources:
  - { match: bucket, strategy: bucket }
  - { match: five, strategy: five }
  - { match: paced, strategy: paced }
  - { match: slow, strategy: slow }
";

fn serve() -> Server {
    Server::start(Config::parse(CONFIG, "weir.yaml", &ConfigOverrides::default()).unwrap())
}

fn run(server: &Server, args: &[&str]) -> Output {
    weir_command(&[&["allow"], args].concat())
        .env("WEIR_SERVER", format!("http://{}", server.grpc))
        .output()
        .unwrap()
}

/// The exit code and what is printed to stdout; nothing is printed to stderr.
fn allow(server: &Server, args: &[&str]) -> (i32, String) {
    let out = run(server, args);
    assert_eq!(text(&out.stderr), "", "{args:?}");
    (out.status.code().unwrap(), text(&out.stdout))
}

/// The exit code and what is printed to stderr; nothing is printed to stdout.
fn fails(server: &Server, args: &[&str]) -> (i32, String) {
    let out = run(server, args);
    assert_eq!(text(&out.stdout), "", "{args:?}");
    (out.status.code().unwrap(), text(&out.stderr))
}

/// The error was once `grpc-status header missing`.
#[test]
fn the_admin_port_is_recognised() {
    let server = serve();
    let admin = format!("http://{}", server.admin);
    let out = weir_command(&["allow", "five", "bob"]).env("WEIR_SERVER", admin).output().unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("this server does not speak gRPC; is that the admin port?"), "{error}");
    for command in [&["top", "--once"][..], &["usage"], &["queue", "stats", "work"], &["health"]] {
        let out = weir(&[command, &["--server", &format!("http://{}", server.admin)]].concat());
        let error = text(&out.stderr);
        assert!(
            error.contains("this server does not speak gRPC; is that the admin port?"),
            "{command:?}: {error}"
        );
    }
}

#[test]
fn a_reservation_says_when_the_call_starts() {
    let server = serve();
    let reserve =
        |within: &str, id: &str| allow(&server, &["bucket", "bob", "--reserve", within, "--id", id]);
    let (code, first) = reserve("5s", "a");
    assert_eq!((code, first.lines().next()), (0, Some("allowed")), "{first}");
    assert!(first.ends_with("\n  starts in 0s, reserved as a\n"), "{first}");
    let (code, second) = reserve("5s", "b");
    assert!(code == 0 && second.ends_with("\n  starts in 0.2s, reserved as b\n"), "{second}");
    let (code, again) = reserve("5s", "b");
    let known = "\n  starts in 0.2s, reserved as b, as it was answered before\n";
    assert!(code == 0 && again.ends_with(known), "{again}");
    let (code, late) = reserve("100ms", "c");
    assert!(code == 1 && late.starts_with("denied: ") && late.contains(", retry in 0.3s, "), "{late}");
    assert!(!late.contains("reserved"), "{late}");
    let (code, error) = fails(&server, &["bucket", "bob", "--reserve", "5s", "--id", "b", "--cost", "0"]);
    assert!(code == 2 && error.contains("ALREADY_EXISTS"), "{error}");
    let (code, error) = fails(&server, &["paced", "bob", "--reserve", "5s"]);
    assert!(code == 2 && error.contains("FAILED_PRECONDITION"), "{error}");
}

/// A reservation without `--id` gets a random one, so two of them are two reservations.
#[test]
fn a_reservation_without_an_id_gets_its_own() {
    let server = serve();
    let id = || {
        let (_, printed) = allow(&server, &["bucket", "eve", "--reserve", "5s"]);
        let (_, id) = printed.trim_end().rsplit_once("reserved as ").unwrap();
        id.to_owned()
    };
    let (first, second) = (id(), id());
    assert_ne!(first, second);
    assert!([&first, &second].iter().all(|id| id.len() == 16), "{first}, {second}");
    let (_, third) = allow(&server, &["bucket", "eve", "--reserve", "5s", "--id", "third"]);
    assert!(third.contains("starts in 0.4s, "), "{third}");
}

#[test]
fn wait_sleeps_until_the_call_starts_and_says_so() {
    let server = serve();
    let waits = "  waiting 0.2s until the call starts\n  the call starts\n";
    for args in [&["bucket", "bob", "--reserve", "5s", "--wait"][..], &["paced", "bob", "--wait"]] {
        let (code, first) = allow(&server, args);
        assert_eq!(code, 0);
        assert!(!first.contains("waiting") && !first.contains("the call starts"), "{first}");
        let started = Instant::now();
        let (code, second) = allow(&server, args);
        assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
        assert!(code == 0 && second.contains("starts in 0.2s") && second.ends_with(waits), "{second}");
    }
    // A call that is denied has nothing to wait for.
    let (code, denied) = allow(&server, &["bucket", "bob", "--reserve", "100ms", "--wait"]);
    assert!(code == 1 && !denied.contains("waiting"), "{denied}");
}

/// The announcement is printed before the sleep, and the process sleeps: here for an hour, until it is killed.
#[test]
fn wait_is_announced_before_it_begins() {
    let server = serve();
    allow(&server, &["slow", "bob", "--reserve", "60m"]);
    let mut command = weir_command(&["allow", "slow", "bob", "--reserve", "60m", "--wait"]);
    command.env("WEIR_SERVER", format!("http://{}", server.grpc)).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let last = lines.take_while(|line| !line.contains("until the call starts")).last();
    assert!(last.unwrap().starts_with("  starts in 1h, reserved as "));
    assert!(child.try_wait().unwrap().is_none(), "it sleeps");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// JSON on stdout stays one document: the announcement goes to stderr.
#[test]
fn wait_beside_json_is_announced_on_stderr() {
    let server = serve();
    let args = ["bucket", "bob", "--reserve", "5s", "--wait", "--output", "json"];
    run(&server, &args);
    let started = Instant::now();
    let out = run(&server, &args);
    assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&answer["wait"], &answer["applied"]), (&"0.200s".into(), &true.into()));
    assert_eq!(text(&out.stderr), "  waiting 0.2s until the call starts\n  the call starts\n");
}

#[test]
fn at_most_takes_what_is_left() {
    let server = serve();
    let at_most = |args: &[&str]| allow(&server, &[&["five", "bob", "--at-most"], args].concat());
    let (code, first) = at_most(&["--cost", "3"]);
    assert!(code == 0 && first.contains("\n  3 granted\n"), "{first}");
    let (code, rest) = at_most(&["--cost", "3", "--id", "rest"]);
    assert!(code == 0 && rest.contains("\n  2 granted\n"), "{rest}");
    let (code, again) = at_most(&["--cost", "3", "--id", "rest"]);
    assert!(code == 0 && again.contains("\n  2 granted, as it was answered before\n"), "{again}");
    let (code, none) = at_most(&["--cost", "3"]);
    assert!(code == 1 && none.starts_with("denied: ") && !none.contains("granted"), "{none}");
    assert!(none.contains(", retry in 1s, "), "{none}");
}

#[test]
fn a_debit_charges_above_the_limit_up_to_its_debt() {
    let server = serve();
    let debit = |args: &[&str]| allow(&server, &[&["five", "bob", "--debit"], args].concat());
    assert_eq!(
        debit(&["--cost", "4"]),
        (0, "charged\n    each  charged 4, 1 of 5 remaining, full again in 4s\n".to_owned())
    );
    let above = "charged: the cost did not fit, and nothing passes until the debt has drained\n";
    let (code, printed) = debit(&["--cost", "3", "--id", "bill"]);
    let line = "    each  charged 3, 0 of 5 remaining, full again in 7s\n";
    assert_eq!((code, printed), (0, format!("{above}{line}")));
    let (code, again) = debit(&["--cost", "3", "--id", "bill"]);
    let known = "known: a debit with this id was made before, and nothing is charged again\n    each  charged 3, 0 of 5 ";
    assert!(code == 0 && again.starts_with(known), "{again}");
    // The default debt is as large as the limit: three of these ten units fit below it.
    let (code, printed) = debit(&["--cost", "10"]);
    let line = "    each  charged 3, 0 of 5 remaining, full again in 10s\n";
    assert_eq!((code, printed), (0, format!("{above}{line}")));
    let (code, error) = fails(&server, &["five", "bob", "--debit", "--cost", "2", "--id", "bill"]);
    assert!(code == 2 && error.contains("ALREADY_EXISTS"), "{error}");
    let (code, denied) = allow(&server, &["five", "bob"]);
    assert!(code == 1 && denied.contains(", retry in 6s, "), "{denied}");
}

#[test]
fn a_refund_gives_back_once_per_id() {
    let server = serve();
    allow(&server, &["five", "bob", "--cost", "4"]);
    let refund = || allow(&server, &["five", "bob", "--refund", "--cost", "3", "--id", "unused"]);
    assert_eq!(refund(), (0, "given back\n    each  4 of 5 remaining, full again in 1s\n".to_owned()));
    let known = "known: a refund with this id was made before, and nothing was given back\n";
    assert_eq!(refund(), (0, format!("{known}    each  4 of 5 remaining, full again in 1s\n")));
}

#[test]
fn an_id_is_charged_once() {
    let server = serve();
    let ask = |args: &[&str]| allow(&server, &[&["five", "bob", "--id", "order"], args].concat());
    let (code, first) = ask(&[]);
    assert!(
        code == 0 && first.contains("  4 of 5 remaining") && first.contains("\n  1 granted\n"),
        "{first}"
    );
    let (code, again) = ask(&[]);
    let known = "\n  1 granted, as it was answered before\n";
    assert!(code == 0 && again.contains("  4 of 5 remaining") && again.contains(known), "{again}");
    let (code, error) = fails(&server, &["five", "bob", "--id", "order", "--cost", "2"]);
    assert!(code == 2 && error.contains("ALREADY_EXISTS"), "{error}");
}

/// The same on a server process with a real clock, with waits that are too long to end during the test.
#[test]
fn a_server_process_answers_them_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), CONFIG).unwrap();
    let serve = Serve::start(&["--config", file.path().to_str().unwrap()]);
    let lines = |args: &[&str]| {
        let out = serve.allow(args);
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (code, first, errors) = lines(&["slow", "bob", "--reserve", "60m", "--id", "a"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(first.ends_with("starts in 0s, reserved as a\n"), "{first}");
    let (code, second, _) = lines(&["slow", "bob", "--reserve", "60m", "--id", "b"]);
    assert!(
        code == Some(0) && (second.contains("  starts in 1h,") || second.contains("  starts in 59m")),
        "{second}"
    );
    let (code, debit, _) = lines(&["slow", "eve", "--debit", "--id", "c"]);
    assert!(code == Some(0) && debit.starts_with("charged\n    each  charged 1, 0 of 1 "), "{debit}");
    let (code, none, _) = lines(&["slow", "eve", "--at-most", "--cost", "9"]);
    assert!(code == Some(1) && none.starts_with("denied: "), "{none}");
}

#[test]
fn options_that_exclude_each_other_are_wrong_usage() {
    for args in [
        &["--peek", "--wait"][..],
        &["--peek", "--at-most"],
        &["--peek", "--reserve", "5s"],
        &["--peek", "--id", "a"],
        &["--debit", "--wait"],
        &["--debit", "--at-most"],
        &["--debit", "--reserve", "5s"],
        &["--reserve", "5s", "--at-most"],
        &["--refund", "--debit"],
        &["--refund", "--wait"],
        &["--envoy", "--wait"],
        &["--reserve", "soon"],
    ] {
        let out = weir_command(&[&["allow", "five", "bob"], args].concat()).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let errors = text(&out.stderr);
        assert!(
            errors.contains("cannot be used with") || errors.contains("invalid value"),
            "{args:?}: {errors}"
        );
    }
}
