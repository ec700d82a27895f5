//! Floods of batches: what is decided beside a control, and how long the calls of a stranger take meanwhile.
//!
//! `cargo test --profile tests --workspace --test operations -- --nocapture --test-threads=1 long_floods::` prints a row for
//! each cell. Each is measured with the default deadline and with one of 5 s, by turns, with a stranger of the same strategy
//! or of another one on a connection of its own. Figures of a busy machine vary, so a cell fails only at a third of its
//! control.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;
use weir_testing::is_short;

use crate::support::{Cluster, Process, RedisServer, SOON, eventually, ports, scratch};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

const LIMITS: &str = "
strategies:
  flooded: { limits: [{ name: each, per: [consumer], token_bucket: { burst: 1000000, rate: 1000000/s } }] }
  other: { limits: [{ name: each, per: [consumer], token_bucket: { burst: 1000000, rate: 1000000/s } }] }
resources:
  - { match: flooded, strategy: flooded }
  - { match: other, strategy: other }
";

/// The default deadline of a decision, and one that no flood reaches.
const DEADLINES: [&str; 2] = ["50ms", "5s"];

/// Questions of a batch, and batches in flight.
type Cell = (u32, u32);

/// The cell that says what can be decided.
const CONTROL: Cell = (100, 8);

/// The results of a flood, and of the stranger beside it.
struct Figures {
    decided: u64,
    failed: u64,
    /// Calls of the stranger, those that failed or were degraded, and its p99 in µs.
    stranger: (u64, u64, u64),
}

#[test]
fn on_redis() {
    let redis = RedisServer::start();
    let store = format!("nodes: ['{}']", redis.url());
    let all = [10, 100, 1000].iter().flat_map(|&size| [8, 32, 128, 512].map(|count| (size, count)));
    let cells = if is_short() { vec![(10, 8), (100, 128), (1000, 128), (1000, 512)] } else { all.collect() };
    flood("Redis", &store, &cells);
}

#[test]
fn on_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let store = format!("topology: cluster, nodes: ['{}']", cluster.urls().join("', '"));
    let cells: &[Cell] = if is_short() { &[(1000, 128)] } else { &[(100, 128), (1000, 8), (1000, 128)] };
    flood("Redis Cluster", &store, cells);
}

/// A turn of a worker is bounded by time, so a stranger does not wait for thousands of decisions.
#[test]
fn on_memory() {
    let server = Serving::start("memory: { budget: 256MiB }");
    let alone = server.stranger("other");
    let beside = server.beside((1000, 8), "other");
    println!(
        "| memory | stranger alone p99 | beside 1,000 × 8 p99 | decisions a second |\n|---|---|---|---|"
    );
    println!("| | {} µs | {} µs | {} |", alone.2, beside.stranger.2, beside.decided);
    assert_eq!((beside.stranger.1, beside.failed), (0, 0));
    assert!(
        beside.stranger.2 <= 3 * alone.2.max(3_000),
        "p99 {} µs, alone {} µs",
        beside.stranger.2,
        alone.2
    );
}

fn flood(name: &str, store: &str, cells: &[Cell]) {
    let servers = DEADLINES.map(|deadline| {
        Serving::start(&format!("redis: {{ {store}, deadline: {deadline}, max_waiting: 100000 }}"))
    });
    let [short, long] = &servers;
    let alone = short.stranger("other");
    let control = short.beside(CONTROL, "other");
    println!(
        "{name}: {} decisions a second with {CONTROL:?}; a stranger alone has p99 {} µs",
        control.decided, alone.2
    );
    println!(
        "| batch × in flight | stranger | decided/s | failed/s | with 5s | stranger: calls, failed, p99 µs |"
    );
    println!("|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for (number, &cell) in cells.iter().enumerate() {
        let stranger = ["flooded", "other"][number % 2];
        let (own, patient) = (short.beside(cell, stranger), long.beside(cell, stranger));
        println!(
            "| {} × {} | {stranger} | {} | {} | {} | {:?} |",
            cell.0, cell.1, own.decided, own.failed, patient.decided, own.stranger
        );
        if own.decided < patient.decided / 3 || (cell.0 >= 100 && own.decided < control.decided / 3) {
            wrong.push(format!(
                "{cell:?}: {} decided, {} with 5s, {} in the control",
                own.decided, patient.decided, control.decided
            ));
        }
        let (calls, failed, p99) = own.stranger;
        if p99 > 3 * alone.2.max(10_000) || failed * 20 > calls {
            wrong.push(format!("{cell:?}: the stranger's p99 is {p99} µs, and {failed} of {calls} failed"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `weir serve` with one worker.
struct Serving {
    _process: Process,
    _folder: tempfile::TempDir,
    port: u16,
}

impl Serving {
    fn start(store: &str) -> Self {
        let folder = scratch::dir("floods-");
        let (port, file) = (ports::free(), folder.path().join("weir.yaml"));
        let server =
            format!("server: {{ listen: \"127.0.0.1:{port}\", admin: \"127.0.0.1:0\", workers: 1 }}");
        std::fs::write(&file, format!("{server}\nstore: {{ {store} }}\n{LIMITS}")).unwrap();
        let mut command = Process::command(WEIR);
        command.args(["serve", "--config"]).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).unwrap();
        eventually(SOON, "it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _process: process, _folder: folder, port }
    }

    /// Calls of a stranger: how many, how many were not decided, and their p99 in µs.
    fn stranger(&self, resource: &str) -> (u64, u64, u64) {
        let calls = ["--mode", "unary", "--connections", "1", "--rate", "200", "--resource", resource];
        let report =
            report(self.load(&[&calls[..], &["--duration", "1200ms", "--warm-up", "200ms"]].concat()));
        let decisions = |name: &str| report["decisions"][name].as_u64().unwrap();
        let failed = decisions("failed") + decisions("degraded");
        (decisions("asked"), failed, report["latency_us"]["p99"].as_f64().unwrap() as u64)
    }

    /// A flood, and a stranger beside it.
    fn beside(&self, (size, in_flight): Cell, stranger: &str) -> Figures {
        let (size, in_flight) = (size.to_string(), in_flight.to_string());
        let flood = self.load(&[
            "--mode",
            "batch",
            "--batch",
            &size,
            "--in-flight",
            &in_flight,
            "--connections",
            "8",
            "--resource",
            "flooded",
            "--timeout",
            "30s",
            "--duration",
            "1600ms",
            "--warm-up",
            "300ms",
        ]);
        std::thread::sleep(std::time::Duration::from_millis(200));
        let stranger = self.stranger(stranger);
        let report = report(flood);
        let decisions = |name: &str| report["decisions"][name].as_u64().unwrap();
        let elapsed = report["elapsed_s"].as_f64().unwrap();
        let each_second = |count: u64| (count as f64 / elapsed) as u64;
        let failed = decisions("failed") + decisions("degraded");
        let decided = each_second(decisions("asked").saturating_sub(failed));
        Figures { decided, failed: each_second(failed), stranger }
    }

    fn load(&self, args: &[&str]) -> Process {
        let mut command = Process::command(WEIR);
        command.args([
            "load",
            "--quiet",
            "--output",
            "json",
            "--server",
            &format!("127.0.0.1:{}", self.port),
        ]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        Process::spawn(command).unwrap()
    }
}

/// The report of a load, at its end.
fn report(mut load: Process) -> Value {
    let mut text = String::new();
    load.child().stdout.take().unwrap().read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}
