//! An error that concerns every call is said at once. Other errors are counted.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::run;
use crate::support::command::text;
use crate::support::server::{Server, config};
use crate::support::{Process, SOON, eventually, eventually_some, ports, scratch, shared_redis};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Asserts that the load ends without a report, and says why.
pub(super) fn refused(out: &Output, reason: &str) {
    let said = text(&out.stderr);
    assert!(said.contains(reason), "{reason:?} is missing in {said:?}");
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{said}");
}

#[test]
fn other_machines_are_left_alone() {
    refused(&run("192.0.2.1:8081", &[]), "--i-own-this-target");
    refused(&run("https://192.0.2.1:8081", &[]), "--i-own-this-target");
    refused(&run("nowhere", &[]), "expected HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH");
}

#[test]
fn what_is_no_weir_is_recognised() {
    let nobody = format!("127.0.0.1:{}", ports::free());
    refused(&run(&nobody, &[]), "start one with `weir serve`");
    refused(&run(&shared_redis().addr(), &[]), "does not speak HTTP/2");
    let server = Server::start(config());
    refused(&run(&server.admin.to_string(), &[]), "is that the port for gRPC?");
    refused(&run(&pretender(b"HTTP/1.1 400 Bad Request\r\n\r\n"), &[]), "is that the admin port?");
    refused(&run(&pretender(b"\x15\x03\x03\0\x02\x02\x46"), &[]), "expects TLS");
    refused(&run(&pretender(b""), &["--timeout", "200ms"]), "says nothing");
}

/// A server that sends these bytes to each client, and nothing more.
fn pretender(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(words);
            kept.push(stream);
        }
    });
    address
}

#[test]
fn calls_that_all_would_fail_are_not_made() {
    let server = Server::start(config());
    let address = server.grpc.to_string();
    refused(&run(&address, &["--strategy", "tiger-fedding"]), "NOT_FOUND");
    refused(&run(&address, &["--strategy", "tiger-fedding"]), "--resource or --strategy");
    refused(&run(&address, &["--strategy", "tiger-fedding", "--mode", "batch"]), "NOT_FOUND");
    refused(&run(&address, &["--strategy", "regional"]), "INVALID_ARGUMENT");
    refused(&run(&address, &["--pid", "4194305"]), "no process 4194305");
    refused(&run(&address, &["--mode", "batch", "--record", "x"]), "--record needs another --mode");
    refused(&run(&address, &["--record", "/nowhere/record.csv"]), "the record cannot be written");
}

/// `weir serve` on this port, with the built-in example.
fn serve(port: u16) -> Process {
    let mut command = Process::command(WEIR);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::spawn(command).unwrap();
    eventually(SOON, "it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

/// A run that is under way, with its record.
struct Running {
    process: Process,
    record: PathBuf,
}

impl Running {
    fn start(port: u16, args: &[&str]) -> Self {
        let record = scratch::dir("load-").keep().join("record.csv");
        let mut command = Process::command(WEIR);
        command.args(["load", "--server", &format!("127.0.0.1:{port}"), "--output", "json", "--quiet"]);
        command.args(["--warm-up", "0s", "--record", record.to_str().unwrap()]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Self { process: Process::spawn(command).unwrap(), record };
        running.until_it_goes_on();
        running
    }

    /// Until further decisions have been made.
    fn until_it_goes_on(&self) {
        let length = || std::fs::metadata(&self.record).map_or(0, |it| it.len());
        let before = length();
        eventually(SOON, "decisions are made", || length() > before + 100_000);
    }

    fn report(mut self) -> (Value, Option<i32>) {
        let status = eventually_some(SOON, "the run ends", || self.process.exited());
        let report = serde_json::from_reader(self.process.child().stdout.take().unwrap()).unwrap();
        (report, status.code())
    }
}

#[test]
fn a_server_that_dies_is_counted_and_reported() {
    let port = ports::free();
    let mut server = serve(port);
    let running = Running::start(port, &["--duration", "60s", "--timeout", "2s"]);
    server.kill();
    let (report, code) = running.report();
    assert_eq!(code, Some(1));
    assert!(report["ended_early"].as_str().unwrap().contains("no connection"), "{report}");
    assert!(report["elapsed_s"].as_f64().unwrap() < 50.0);
    let lost = report["errors"]["connection lost"]["count"].as_u64().unwrap();
    let decisions = &report["decisions"];
    let number = |name: &str| decisions[name].as_u64().unwrap();
    assert!((1..=128).contains(&lost), "{lost}");
    // On a busy machine some calls may have waited too long as well.
    let errors = report["errors"].as_object().unwrap().values().map(|it| it["count"].as_u64().unwrap());
    assert_eq!(number("failed"), errors.sum::<u64>());
    assert_eq!(number("asked"), number("allowed") + number("denied") + number("failed"));
}

/// A server that leaves answers all that it has got, so nothing failed: 1,996 calls were due and never made, and the
/// exit code was 0.
#[test]
fn a_server_that_leaves_in_good_order_is_no_success() {
    let port = ports::free();
    let mut server = serve(port);
    let pace = ["--rate", "20000", "--duration", "60s", "--timeout", "50s"];
    let mut running = Running::start(port, &pace);
    server.signal("INT");
    eventually_some(SOON, "the server is gone", || server.exited());
    running.process.signal("INT");
    let (report, code) = running.report();
    assert_eq!((code, &report["decisions"]["failed"]), (Some(1), &Value::from(0)), "{report}");
    assert!(report["ended_early"].as_str().unwrap().starts_with("no connection for the last "), "{report}");
    assert!(report["open_loop"]["missed"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_server_that_comes_back_is_loaded_again() {
    let port = ports::free();
    let mut server = serve(port);
    let mut running = Running::start(port, &["--duration", "60s", "--timeout", "20s"]);
    server.kill();
    let _server = serve(port);
    running.until_it_goes_on();
    running.process.signal("INT");
    let (report, code) = running.report();
    assert_eq!((code, &report["ended_early"]), (Some(1), &Value::Null));
    assert!(report["errors"]["connection lost"]["count"].as_u64().unwrap() <= 128);
}

#[test]
fn a_stopped_load_still_reports() {
    let port = ports::free();
    let _server = serve(port);
    let mut running = Running::start(port, &["--duration", "60s"]);
    running.process.signal("INT");
    let (report, code) = running.report();
    assert_eq!((code, &report["errors"]), (Some(0), &serde_json::json!({})));
    assert!(report["elapsed_s"].as_f64().unwrap() < 50.0);
}

/// Some requests are refused, others are not: they are counted by what they failed with.
#[test]
fn errors_are_counted_by_their_status() {
    let server = Server::start(config());
    let address = server.grpc.to_string();
    let long = "x".repeat(500);
    // Keys of four digits and more make the name too long for the server.
    let args = [
        "--strategy",
        "burst",
        "--resource",
        &format!("{long}{{key}}{{key}}{{key}}{{key}}"),
        "--keys",
        "1001",
    ];
    let more = ["--requests", "20000", "--warm-up", "0s", "--seed", "3"];
    let out = run(&address, &[&args[..], &more].concat());
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1));
    let invalid = &report["errors"]["INVALID_ARGUMENT"];
    assert!(invalid["example"].as_str().unwrap().contains("resource"), "{invalid}");
    assert_eq!(invalid["count"], report["decisions"]["failed"]);
}
