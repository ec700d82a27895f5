//! The service at saturation: no error, no growth, and on the recorded trace no limit was exceeded.
//!
//! `make test` runs it for some seconds, `make soak` for minutes (`WEIR_SOAK_SECONDS`).

mod trace;

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_testing::usage;

use parking_lot::Mutex;
use serde_json::Value;

use self::trace::{Admission, Bucket, Log};
use crate::support::{Process, RedisServer, SOON, eventually, eventually_some, ports, scratch, seconds_of};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Both limits bind: the log in the first ten seconds, the bucket from then on.
const LIMITS: &str = "
strategies:
  both:
    limits:
      - { name: bucket, per: [resource, consumer], token_bucket: { burst: 20, rate: 5/s } }
      - { name: log, per: [resource, consumer], sliding_log: { limit: 60, window: 10s } }
resources:
  - { match: soak, strategy: both }
";
const BUCKET: Bucket = Bucket { burst: 20, per_second: 5 };
const LOG: Log = Log { limit: 60, window_us: 10_000_000 };

fn span() -> Duration {
    seconds_of("WEIR_SOAK_SECONDS", 4)
}

#[test]
fn the_memory_store_soaks() {
    soak("memory: { budget: 256MiB }", &[]);
}

#[test]
fn a_redis_soaks() {
    let redis = RedisServer::start();
    soak(&on(&redis), &[]);
}

/// The same over streams: the record tells one decision a message.
#[test]
fn a_redis_soaks_over_streams() {
    let redis = RedisServer::start();
    let stream = ["--mode", "stream", "--batch", "1"];
    soak(&on(&redis), &stream);
}

/// The time-out is long, because a loaded machine runs processes of low priority rarely.
fn on(redis: &RedisServer) -> String {
    format!("redis: {{ nodes: [\"{}\"], deadline: 60s, connect_timeout: 60s }}", redis.url())
}

fn soak(store: &str, more: &[&str]) {
    // One after the other, and after all other tests: they are to feel none of it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let folder = scratch::dir("soak-");
    let (server, port) = serve(folder.path(), store);
    let fifo = folder.path().join("record");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let checked = check(fifo.clone());
    let mut load = load(port, &fifo, more);

    // By the middle, every key has its state and every buffer its size.
    let (begin, half) = (Instant::now(), span() / 2);
    eventually(half * 2, "half of the time is over", || begin.elapsed() > half);
    let before = usage::resident_bytes(server.pid());
    let status = eventually_some(span() + SOON, "the run ends", || load.exited());
    let after = usage::resident_bytes(server.pid());
    let report: Value = serde_json::from_reader(load.child().stdout.take().unwrap()).unwrap();
    let checked = checked.join().expect("the record is one");

    assert_eq!((status.code(), &report["errors"]), (Some(0), &serde_json::json!({})), "{report}");
    assert_eq!((&report["decisions"]["failed"], &report["decisions"]["degraded"]), (&0.into(), &0.into()));
    let decisions =
        report["decisions"]["asked"].as_u64().unwrap() + report["warm_up_calls"].as_u64().unwrap();
    assert_eq!(checked.decisions, decisions, "every decision is in the record");
    checked.assert_none_over();
    checked.assert_busiest_got_its_due(span());
    println!(
        "{store}: {} decisions, {} allowed, p99 {} µs; RSS {} KiB, then {} KiB",
        checked.decisions,
        checked.allowed,
        report["latency_us"]["p99"],
        before >> 10,
        after >> 10
    );
    let grown = after.saturating_sub(before);
    assert!(grown < before / 20 + (4 << 20), "RSS has grown by {grown} bytes from {before}");
}

/// `weir serve` on this store.
fn serve(folder: &Path, store: &str) -> (Process, u16) {
    let (port, file) = (ports::free(), folder.join("weir.yaml"));
    let server = format!("server: {{ listen: \"127.0.0.1:{port}\", admin: \"127.0.0.1:0\" }}");
    std::fs::write(&file, format!("{server}\nstore: {{ {store} }}\n{LIMITS}")).unwrap();
    let mut command = Process::command("nice");
    command
        .args(["-n", "19", WEIR, "serve", "--config"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let process = Process::spawn(command).unwrap();
    eventually(SOON, "it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port)
}

/// As many calls as are answered, on some keys that are always exhausted and many that hardly ever are.
fn load(port: u16, fifo: &Path, more: &[&str]) -> Process {
    let seconds = span().as_secs().to_string() + "s";
    let mut command = Process::command("nice");
    command.args([
        "-n",
        "19",
        WEIR,
        "load",
        "--server",
        &format!("127.0.0.1:{port}"),
        "--resource",
        "soak",
        "--quiet",
    ]);
    command.args(["--keys", "5000", "--spread", "zipf", "--output", "json", "--duration", &seconds]);
    command.args(["--warm-up", "500ms", "--timeout", "60s", "--record"]).arg(fifo).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    Process::spawn(command).unwrap()
}

/// Reads the record while it is written.
fn check(fifo: PathBuf) -> JoinHandle<Admission> {
    std::thread::spawn(move || {
        let mut admission = Admission::new(BUCKET, LOG);
        let record = BufReader::new(std::fs::File::open(fifo).unwrap());
        for line in record.lines().skip(1) {
            admission.read(&line.unwrap());
        }
        admission
    })
}
