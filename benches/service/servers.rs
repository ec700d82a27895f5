//! The measured servers: the service on each store, and its peers, all running from the beginning to the end.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use weir_load::{CallMode, Plan, PlanEnd, RunWatch};
use weir_testing::ports;

use crate::plan::plan;
use crate::processes::{Process, ceiling, redis, throttlecrab};
use crate::reference::{self, Reference};
use crate::{Effort, bare, cluster, h2_alone, limits};

pub struct Servers {
    pub memory: Process,
    /// The same by `transport: tonic`.
    pub by_tonic: Process,
    /// With 10,000 strategies and as many patterns.
    pub many_strategies: Process,
    /// With a state for most of as many keys as the effort says.
    pub many_keys: Process,
    /// Memory of one state in bytes.
    pub bytes_per_key: f64,
    pub redis: Process,
    pub single: Process,
    /// The same, and nothing stands before the Redis.
    pub unaided: Process,
    /// The same as `single`, and decisions wait for others.
    pub gathering: Process,
    pub cluster: Process,
    pub nodes: Vec<Process>,
    /// On a cluster of one primary: what there is to a cluster besides that it is several servers.
    pub cluster_of_one: Process,
    pub only_node: Process,
    pub bare: Process,
    pub h2: Process,
    pub throttlecrab: Option<Process>,
    pub reference: Option<Reference>,
    _files: TempDir,
}

/// `allow` never denies; `keep` and `hour` neither, and their states stay for an hour; `second` lets 1,000 a second pass for each key; `deny` one an hour.
const STRATEGIES: &str = "
strategies:
  allow: { limits: [{ name: each, per: [resource, consumer], token_bucket: { burst: 1000000000, rate: 1000000000/s } }] }
  keep: { limits: [{ name: each, per: [resource, consumer], token_bucket: { burst: 1000000, rate: 1/1h } }] }
  hour: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 1000000000, window: 1h } }] }
  second: { limits: [{ name: each, per: [resource, consumer], token_bucket: { burst: 1000, rate: 1000/s } }] }
  deny: { limits: [{ name: each, per: [resource, consumer], uniform: { interval: 1h } }] }
";

const PATTERNS: &str = "
resources:
  - { match: allow, strategy: allow }
  - { match: keep, strategy: keep }
  - { match: hour, strategy: hour }
  - { match: second, strategy: second }
  - { match: deny, strategy: deny }
";

/// Envoy's limits: one for each user, which never denies.
pub const ENVOY: &str = "domain: bench
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 4294967295 } }]
";

impl Servers {
    pub fn start(effort: Effort) -> Self {
        let files = tempfile::tempdir().expect("make a folder");
        let redis = redis(&files, &[]);
        let nodes = cluster::start(&files, &["0-5460", "5461-10922", "10923-16383"]);
        let only_node = cluster::start(&files, &["0-16383"]).remove(0);
        let urls: Vec<String> = nodes.iter().map(url).collect();
        let memory = "{ memory: { budget: 4GiB } }";
        let on_redis =
            |nodes: &str, more: &str| format!("{{ redis: {{ nodes: [{nodes}], {more}, deadline: 1s }} }}");
        let single = on_redis(&url(&redis), "topology: single");
        let unaided = on_redis(&url(&redis), "coalesce: false, denials_max_age: 0s");
        let clustered = on_redis(&urls.join(", "), "topology: cluster");
        let clustered_alone = on_redis(&url(&only_node), "topology: cluster");
        let gathering = on_redis(&url(&redis), "gather: 1ms");
        let plain = format!("{STRATEGIES}{}{PATTERNS}{}", limits::strategies(), limits::patterns());
        let many_keys = filled(weir(&files, memory, &plain), effort);
        let bytes_per_key = bytes_per_key(&weir(&files, memory, &plain), effort);
        Self {
            many_keys,
            bytes_per_key,
            memory: weir(&files, memory, &plain),
            by_tonic: weir_by("tonic", &files, memory, &plain),
            many_strategies: weir(&files, memory, &many(10_000)),
            single: weir(&files, &single, &plain),
            unaided: weir(&files, &unaided, &plain),
            gathering: weir(&files, &gathering, &plain),
            cluster: weir(&files, &clustered, &plain),
            cluster_of_one: weir(&files, &clustered_alone, &plain),
            bare: ceiling(bare::ARGUMENT),
            h2: ceiling(h2_alone::ARGUMENT),
            throttlecrab: throttlecrab("grpc"),
            reference: reference::start(&files),
            redis,
            nodes,
            only_node,
            _files: files,
        }
    }
}

/// The same strategies among so many others. They are written tersely: a configuration has at most 1 MiB.
fn many(count: usize) -> String {
    let (mut strategies, mut patterns) = (STRATEGIES.to_owned(), PATTERNS.to_owned());
    for index in 0..count {
        let limits = "{limits: [{name: e, per: [], uniform: {interval: 1s}}]}";
        let _ = writeln!(strategies, "  o{index}: {limits}");
        let _ = writeln!(patterns, "  - {{match: \"{index}*\", strategy: o{index}}}");
    }
    strategies + &patterns
}

/// Asks about keys at random, one and a half times as often as there are keys: four of five get a state.
fn filled(process: Process, effort: Effort) -> Process {
    println!("filling a memory store with states of {} keys", effort.many_keys);
    let plan = plan(effort, &process, &[], "keep", effort.many_keys);
    let calls = effort.many_keys * 3 / 2 / 1_000;
    let plan = Plan {
        mode: CallMode::Batch(1_000),
        in_flight: 16,
        warm_up: Duration::ZERO,
        end: PlanEnd::Calls(calls),
        ..plan
    };
    weir_load::run(&plan, &RunWatch::default()).expect("fill a store");
    process
}

/// The mean over stores of 0.6 to 1.8 million states, of what the process has grown by. A table that doubles
/// at some size is measured before and after.
fn bytes_per_key(process: &Process, effort: Effort) -> f64 {
    const KEYS: u64 = 2_000_000;
    let resident = |resource, keys, calls| {
        let plan = Plan {
            mode: CallMode::Batch(1_000),
            in_flight: 16,
            warm_up: Duration::ZERO,
            end: PlanEnd::Calls(calls),
            ..plan(effort, process, &[], resource, keys)
        };
        let report = weir_load::run(&plan, &RunWatch::default()).expect("fill a store");
        report.cpu.servers.first().map_or(0, |server| server.rss_bytes) as f64
    };
    // The same calls about next to nothing: connections and their buffers are there, and no states whose room
    // those that are measured would take.
    let before = resident("allow", 1_000, 100);
    // The generator asks about the same keys in the same order each time, and then about more.
    let each = [700, 1_400, 2_400, 4_600].map(|calls| {
        let live = KEYS as f64 * (1.0 - (-(calls as f64 * 1_000.0) / KEYS as f64).exp());
        (resident("keep", KEYS, calls) - before) / live
    });
    each.iter().sum::<f64>() / each.len() as f64
}

fn weir(files: &TempDir, store: &str, rest: &str) -> Process {
    weir_by("fast", files, store, rest)
}

fn weir_by(transport: &str, files: &TempDir, store: &str, rest: &str) -> Process {
    let (port, admin) = (ports::free(), ports::free());
    let file = files.path().join(format!("{port}.yaml"));
    let server = format!("{{ listen: 127.0.0.1:{port}, admin: 127.0.0.1:{admin}, transport: {transport} }}");
    std::fs::write(&file, format!("server: {server}\nstore: {store}\n{rest}"))
        .expect("write a configuration");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["serve", "--config"]).arg(file);
    command.arg("--envoy-config").arg(envoy(files));
    let process = Process::start(command, port);
    // It answers before it has found its Redis.
    for _ in 0..500 {
        if is_ready(admin) {
            return process;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("weir is not ready within 10 s");
}

fn envoy(files: &TempDir) -> PathBuf {
    let folder = files.path().join("envoy");
    std::fs::create_dir_all(&folder).expect("make the folder of Envoy's limits");
    std::fs::write(folder.join("bench.yaml"), ENVOY).expect("write Envoy's limits");
    folder
}

fn is_ready(admin: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", admin)) else { return false };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n");
    asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.ends_with("\r\n\r\nready\n")
}

fn url(redis: &Process) -> String {
    format!("\"redis://{}\"", redis.address())
}
