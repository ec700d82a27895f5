//! The cost of a change in large configurations: the time until it is in force, CPU and memory, with 10,000
//! strategies in the files, with 50,000 overrides in them, and with 100,000 entries of live control; and decisions
//! beside a hundred changes a second. It prints the figures of docs/control.md, and checks that the change is in
//! force.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_testing::usage;

use prost::Message as _;
use tonic::transport::{Channel, Endpoint};
use weir_config::Topology;
use weir_control::model::ControlRecord;
use weir_core::key::KeySecret;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    ControlEntry, ControlOverride, EntryPut, ListEntriesRequest, PutManyRequest, PutOverrideRequest,
    ReloadRequest, ShouldAllowRequest, entry_put,
};
use weir_store::redis::RedisShared;
use weir_testing::{RedisServer, redis_config};
use weir_time::clock::Clock;

use crate::support::command::Serve;
use crate::support::server::ask;
use crate::support::{SOON, eventually, scratch, watched};

const MANY: usize = 10_000;

/// As many entries as there may be, with room for those that tests add.
const ENTRIES: usize = 99_000;

/// Changes that are timed.
const TIMED: usize = 21;

fn files(folder: &Path, store: &str, strategies: usize, limit: u64) -> String {
    let mut text = format!(
        "{store}server: {{ control: true, audit_file: {} }}\ncontrol: {{ cache_file: {} }}\nstrategies:\n",
        folder.join("audit").display(),
        folder.join("entries").display(),
    );
    for number in 0..strategies {
        let _ = writeln!(
            text,
            "  s{number}: {{ limits: [{{ name: l, per: [consumer], token_bucket: {{ rate: {limit}/s }} }}] }}"
        );
    }
    let file = scratch::file(folder, "weir.yaml", text + "resources: [{ match: '*', strategy: s0 }]\n");
    file.display().to_string()
}

async fn channel(server: &Serve) -> Channel {
    Endpoint::from_shared(server.server.clone()).unwrap().connect().await.unwrap()
}

async fn control_of(server: &Serve) -> ControlServiceClient<Channel> {
    ControlServiceClient::new(channel(server).await)
}

async fn limit(server: &Serve, consumer: &str) -> Option<u64> {
    let mut client = RateLimitServiceClient::new(channel(server).await);
    let request = ShouldAllowRequest { cost: Some(0), ..ask("x", consumer) };
    client.should_allow(request).await.unwrap().into_inner().limit
}

/// The middle one.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn overridden(consumer: &str, numbers: String) -> ControlOverride {
    let limits = std::iter::once(("l".to_owned(), numbers)).collect();
    ControlOverride {
        consumer: consumer.to_owned(),
        resource: "*".to_owned(),
        strategy: "s0".to_owned(),
        limits,
    }
}

/// Changes whose CPU time is measured together.
const CPU_MEASURED: usize = 300;

/// CPU time of the server for a change by live control.
async fn cpu_of_changes(server: &Serve) -> Duration {
    let mut control = control_of(server).await;
    let before = usage::cpu_time(server.pid());
    for number in 0..CPU_MEASURED {
        let one = overridden(&format!("consumer-{:06}", 331 * number), format!("{}/s", 700 + number));
        control.put_override(PutOverrideRequest { r#override: Some(one), options: None }).await.unwrap();
    }
    (usage::cpu_time(server.pid()) - before) / CPU_MEASURED as u32
}

/// Time of changes by live control, each until its answer, when it is in force on this node.
async fn changes(server: &Serve) -> Duration {
    let mut control = control_of(server).await;
    let mut times = Vec::new();
    for number in 0..TIMED {
        let numbers = format!("{}/s", 1_000 + number);
        let request = PutOverrideRequest { r#override: Some(overridden("vip", numbers)), options: None };
        let start = Instant::now();
        control.put_override(request).await.unwrap();
        times.push(start.elapsed());
        assert_eq!(limit(server, "vip").await, Some(1_000 + number as u64));
    }
    median(times)
}

#[tokio::test]
async fn with_ten_thousand_strategies() {
    for strategies in [1, MANY] {
        let folder = scratch::dir("swap-");
        let file = files(folder.path(), "", strategies, 1);
        let server = Serve::start(&["--config", &file]);
        let memory = server.metric("process_resident_memory_bytes") as f64;
        let mut control = control_of(&server).await;
        let mut times = Vec::new();
        for number in 0..TIMED as u64 / 3 {
            files(folder.path(), "", strategies, 2 + number);
            let start = Instant::now();
            let report = control.reload(ReloadRequest {}).await.unwrap().into_inner();
            times.push(start.elapsed());
            assert_eq!(report.mistakes, [""; 0]);
            assert_eq!(limit(&server, "bob").await, Some(2 + number));
        }
        println!(
            "{strategies} strategies: a reload takes {:?}, a change by live control {:?}; {:.1} MiB before, {:.1} MiB after",
            median(times),
            changes(&server).await,
            memory / f64::from(1 << 20),
            server.metric("process_resident_memory_bytes") as f64 / f64::from(1 << 20),
        );
    }
}

/// A change does not make the overrides of the files again.
#[tokio::test]
async fn with_fifty_thousand_overrides_in_the_files() {
    const OVERRIDES: usize = 50_000;
    for count in [0, OVERRIDES] {
        let folder = scratch::dir("swap-");
        let file = files(folder.path(), "", 1, 1);
        let mut text = fs::read_to_string(&file).unwrap() + "overrides:\n";
        for number in 0..count.max(1) {
            let _ = writeln!(
                text,
                "  - {{ consumer: 'own-{number}', strategy: s0, limits: {{ l: {{ token_bucket: {{ rate: 7/s }} }} }} }}"
            );
        }
        fs::write(&file, text).unwrap();
        let server = Serve::start(&["--config", &file]);
        let time = changes(&server).await;
        assert_eq!(limit(&server, "own-0").await, Some(7));
        println!("{count} overrides in the files: a change takes {time:?}");
    }
}

/// Records of so many overrides.
fn records(count: usize) -> Vec<ControlRecord> {
    let record = |number: usize| {
        let consumer = format!("consumer-{number:06}");
        let entry = Entry::Override(overridden(&consumer, "500/s".to_owned()));
        let entry = ControlEntry { entry: Some(entry), by: "ops".to_owned(), ..ControlEntry::default() };
        ControlRecord {
            key: format!("os0:1:*:{consumer}").into(),
            version: 1_700_000_000_000_000 + number as u64,
            change: 1 + number as u64,
            expires_at: 0,
            deleted: false,
            body: entry.encode_to_vec().into(),
        }
    };
    (0..count).map(record).collect()
}

async fn entries(server: &Serve) -> usize {
    let mut control = control_of(server).await.max_decoding_message_size(256 << 20);
    control.list_entries(ListEntriesRequest {}).await.unwrap().into_inner().entries.len()
}

#[tokio::test]
async fn with_a_hundred_thousand_entries() {
    for count in [0, MANY, ENTRIES] {
        let redis = RedisServer::start();
        let config = redis_config(vec![redis.url()], Topology::Single);
        let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System);
        watched(&shared).await;
        weir_control::store::ControlLink::open(&shared.scripts()).merge(7, &records(count)).await.unwrap();
        let folder = scratch::dir("swap-");
        let on_redis = format!("store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url());
        let server = Serve::start(&["--config", &files(folder.path(), &on_redis, 1, 1)]);
        eventually(SOON, "the service is ready", || server.get("/readyz").contains("200 OK"));
        assert_eq!(entries(&server).await, count);
        let memory = server.metric("process_resident_memory_bytes") as f64 / f64::from(1 << 20);
        let (wall, cpu) = (changes(&server).await, cpu_of_changes(&server).await);
        println!("Redis, {count} entries: a change takes {wall:?}, {cpu:?} of CPU; {memory:.1} MiB");
        let (code, log) = server.stop("TERM");
        assert_eq!(code, Some(0), "{log}");
        // On the memory store the entries live in the file that was just written.
        let file = files(folder.path(), "", 1, 1);
        let server = Serve::start(&["--config", &file]);
        let there = entries(&server).await;
        assert!(there > count, "{there}");
        let memory = server.metric("process_resident_memory_bytes") as f64 / f64::from(1 << 20);
        let (own, cpu) = (changes(&server).await, cpu_of_changes(&server).await);
        let mut control = control_of(&server).await;
        files(folder.path(), "", 1, 9);
        let start = Instant::now();
        let report = control.reload(ReloadRequest {}).await.unwrap().into_inner();
        let swap = start.elapsed();
        assert_eq!((report.mistakes, limit(&server, "bob").await), (vec![], Some(9)));
        println!(
            "memory, {there} entries: a change takes {own:?}, {cpu:?} of CPU, a reload {swap:?}; {memory:.1} MiB"
        );
        assert!(cpu < Duration::from_millis(5), "the goal is 1 ms");
    }
}

/// Decisions of a load generator of 20,000 a second.
struct LoadFigures {
    decided: f64,
    p50: f64,
    p99: f64,
}

fn load(server: &Serve) -> std::process::Child {
    let arguments = ["load", "--quiet", "--output", "json", "--server", &server.server];
    let rate =
        ["--rate", "20000", "--duration", "5s", "--warm-up", "1s", "--keys", "100000", "--resource", "x"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).args(rate).args(["--connections", "4", "--in-flight", "32"]);
    command.stdout(std::process::Stdio::piped()).spawn().unwrap()
}

fn figures(load: std::process::Child) -> LoadFigures {
    let out = load.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert_eq!(report["decisions"]["failed"], 0);
    LoadFigures {
        decided: number(&report["decisions"]["asked"]) / number(&report["elapsed_s"]),
        p50: number(&report["latency_us"]["p50"]),
        p99: number(&report["latency_us"]["p99"]),
    }
}

/// A hundred changes a second beside 20,000 decisions a second, with 99,000 entries. The control is the same load without
/// changes.
#[tokio::test]
async fn decisions_beside_a_hundred_changes_a_second() {
    for on_redis in [false, true] {
        let redis = on_redis.then(RedisServer::start);
        let store =
            redis.as_ref().map(|redis| format!("store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url()));
        let folder = scratch::dir("swap-");
        let server =
            Serve::start(&["--config", &files(folder.path(), &store.unwrap_or_default(), 1, 1_000_000)]);
        eventually(SOON, "the service is ready", || server.get("/readyz").contains("200 OK"));
        let mut control = control_of(&server).await;
        let began = Instant::now();
        for part in 0..ENTRIES / 1_000 {
            let put = |number: usize| {
                let one = overridden(&format!("consumer-{number:06}"), "500/s".to_owned());
                EntryPut { entry: Some(entry_put::Entry::Override(one)), ..EntryPut::default() }
            };
            let changes = (part * 1_000..(part + 1) * 1_000).map(put).collect();
            let made =
                control.put_many(PutManyRequest { changes, options: None }).await.unwrap().into_inner();
            assert_eq!((made.applied, made.created), (true, 1_000));
        }
        let filled = began.elapsed();
        let alone = figures(load(&server));
        let (beside, mut ticks) = (load(&server), tokio::time::interval(Duration::from_millis(10)));
        let (mut made, began) = (0_u32, Instant::now());
        for number in 0..550_usize {
            ticks.tick().await;
            let one = overridden(&format!("consumer-{:06}", 171 * number), format!("{}/s", 1 + number));
            control.put_override(PutOverrideRequest { r#override: Some(one), options: None }).await.unwrap();
            made += 1;
        }
        let changes_took = began.elapsed();
        let beside = figures(beside);
        println!(
            "{}: {ENTRIES} entries in {filled:?}; {:.0} decisions/s alone: p50 {} µs, p99 {} µs; {:.0}/s beside {made} \
             changes in {changes_took:?}: p50 {} µs, p99 {} µs",
            if on_redis { "Redis" } else { "memory" },
            alone.decided,
            alone.p50,
            alone.p99,
            beside.decided,
            beside.p50,
            beside.p99,
        );
    }
}
