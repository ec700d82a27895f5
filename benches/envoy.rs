//! The time of a request through a real Envoy, with Weir asked and without, at a steady rate; and how often Envoy's
//! default time-out of 20 ms is hit. Needs what scripts/install-envoy.sh installs.
//!
//! `cargo bench --bench envoy`, or with a rate and seconds: `cargo bench --bench envoy -- 2000 30`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval_at};
use weir_testing::Process;
use weir_testing::http::Http;

const CONNECTIONS: u32 = 20;

/// As in the example, but never denied.
const LIMITS: &str = "domain: edge\n\
    descriptors: [{ key: remote_address, rate_limit: { unit: hour, requests_per_unit: 4294967295 } }]\n";

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let rate = numbers.next().unwrap_or(2_000);
    let seconds = numbers.next().unwrap_or(30);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(rate, seconds));
}

async fn run(rate: u32, seconds: u32) {
    let dir = tempfile::tempdir().unwrap();
    let limits = dir.path().join("limits");
    std::fs::create_dir(&limits).unwrap();
    std::fs::write(limits.join("edge.yaml"), LIMITS).unwrap();
    let [weir, front, app, admin] = [(); 4].map(|()| free());
    let mut service = Command::new(env!("CARGO_BIN_EXE_weir"));
    service.arg("serve").arg("--envoy-config").arg(&limits);
    service.args(["--listen", &weir.to_string(), "--admin", "127.0.0.1:0"]);
    let _weir = started(service, weir);

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = std::fs::read_to_string(root.join("deploy/envoy/envoy.yaml")).unwrap();
    for (shipped, address) in [(8_081, weir), (10_000, front), (10_001, app), (9_901, admin)] {
        let port = |port: u16| format!("port_value: {port} ");
        config = config.replace(&port(shipped), &port(address.port()));
    }
    let file = dir.path().join("envoy.yaml");
    std::fs::write(&file, config).unwrap();
    let mut envoy = Command::new(root.join(".cache/envoy/envoy"));
    envoy.args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "error", "--config-path"]);
    let _envoy = started(
        {
            envoy.arg(&file);
            envoy
        },
        front,
    );

    println!("{rate} requests a second for {seconds} s, µs from when each was due");
    println!("{:<16}{:>8}{:>8}{:>8}{:>8}{:>12}", "", "50 %", "99 %", "99.9 %", "worst", "time-outs");
    for (name, path) in [("Envoy alone", "/health"), ("Envoy and Weir", "/hello")] {
        load(front, path, rate, 1).await; // connections, caches
        let before = time_outs(admin).await;
        let waits = load(front, path, rate, seconds).await;
        let time_outs = time_outs(admin).await - before;
        let of = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_micros();
        println!("{name:<16}{:>8}{:>8}{:>8}{:>8}{time_outs:>12}", of(0.5), of(0.99), of(0.999), of(1.0));
    }
}

/// Asks at an even pace; how long each answer took, sorted.
async fn load(front: SocketAddr, path: &'static str, rate: u32, seconds: u32) -> Vec<Duration> {
    let start = Instant::now() + Duration::from_millis(50);
    let one = |connection: u32| async move {
        let mut client = Http::connect(front).await;
        let second = Duration::from_secs(1);
        let mut due = interval_at((start + second * connection / rate).into(), second * CONNECTIONS / rate);
        due.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut waits = Vec::new();
        for _ in 0..rate / CONNECTIONS * seconds {
            let due = due.tick().await;
            assert_eq!(client.get(path, &[]).await.status, 200);
            waits.push(due.elapsed());
        }
        waits
    };
    let clients: Vec<_> = (0..CONNECTIONS).map(|connection| tokio::spawn(one(connection))).collect();
    let mut waits = Vec::new();
    for client in clients {
        waits.extend(client.await.unwrap());
    }
    waits.sort_unstable();
    waits
}

/// Returns the number of requests that Envoy let pass because their answers were late.
async fn time_outs(admin: SocketAddr) -> u64 {
    let name = "cluster.app.ratelimit.failure_mode_allowed";
    let stats = Http::connect(admin).await.get(&format!("/stats?filter={name}"), &[]).await.body;
    stats.trim().rsplit_once(": ").map_or(0, |(_, value)| value.parse().unwrap())
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A process that ends with the benchmark, once it listens.
fn started(mut command: Command, listens: SocketAddr) -> Process {
    command.stdout(Stdio::null());
    let process = Process::spawn(command).unwrap();
    while TcpStream::connect(listens).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}
