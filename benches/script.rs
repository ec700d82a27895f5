//! What a decision costs inside Redis: µs of the server's own CPU, strategy by strategy and by how
//! many decisions are ready at once. Needs `redis-server`.
//!
//! `cargo bench --bench script`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use weir::algorithm::{Algorithm, Op, Rate};
use weir::clock::Clock;
use weir::config::{RedisConfig, Topology};
use weir::key::{KeySecret, Subject};
use weir::store::redis::{RedisShared, RedisStore};
use weir::store::{Decision, Part, Store, Verdicts};
use weir::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir::units::Micros;

const DECISIONS: usize = 200_000;
const KEYS: usize = 10_000;

fn main() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let redis = Redis::start(port);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("{:<34}{:>10}{:>10}{:>10}", "µs of Redis CPU a decision, ready:", 1, 16, 64);
    for (name, strategy) in strategies() {
        let figures = [1, 16, 64].map(|ready| runtime.block_on(measure(&redis, &strategy, ready)));
        println!("{name:<34}{:>10.2}{:>10.2}{:>10.2}", figures[0], figures[1], figures[2]);
    }
}

fn strategies() -> Vec<(&'static str, Arc<Strategy>)> {
    let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
    let bucket = Algorithm::bucket(1_000_000, rate).unwrap();
    let gate = Algorithm::uniform(Micros::from_secs(3600)).unwrap();
    let window = Algorithm::fixed_window(1 << 40, Micros::from_secs(60), false, false).unwrap();
    let interval = Algorithm::interval_refill(1 << 30, 1_000, Micros::from_secs(1), false).unwrap();
    let log = Algorithm::sliding_log(100, Micros::from_millis(100)).unwrap();
    vec![
        ("token_bucket, allowed", strategy(&[bucket])),
        ("uniform, denied", strategy(&[gate])),
        ("fixed_window, allowed", strategy(&[window])),
        ("interval_refill, allowed", strategy(&[interval])),
        ("sliding_log of 100", strategy(&[log])),
        ("two limits: bucket and window", strategy(&[bucket, window])),
    ]
}

fn strategy(algorithms: &[Algorithm]) -> Arc<Strategy> {
    let limit = |(index, algorithm): (usize, &Algorithm)| Limit {
        name: format!("l{index}").into(),
        scope: Scope::of(&[Field::Resource, Field::Consumer]),
        algorithm: *algorithm,
    };
    let limits = algorithms.iter().enumerate().map(limit).collect();
    Arc::new(Strategy::new("bench", limits, false, FailurePolicy::Error).unwrap())
}

/// Keeps `ready` decisions in flight, so that about as many leave together.
async fn measure(redis: &Redis, strategy: &Arc<Strategy>, ready: usize) -> f64 {
    let config = RedisConfig {
        nodes: vec![redis.url()],
        topology: Topology::Single,
        deadline: Micros::from_secs(5),
        ..RedisConfig::default()
    };
    let store = Arc::new(RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System).store());
    run(&store, strategy, ready, 2_000).await;
    let before = redis.cpu();
    run(&store, strategy, ready, DECISIONS).await;
    (redis.cpu() - before) * 1e6 / DECISIONS as f64
}

async fn run(store: &Arc<RedisStore>, strategy: &Arc<Strategy>, ready: usize, decisions: usize) {
    let tasks: Vec<_> = (0..ready)
        .map(|task| {
            let (store, strategy) = (Arc::clone(store), Arc::clone(strategy));
            tokio::spawn(async move {
                for round in 0..decisions / ready {
                    let consumer = format!("user_{}", (round * ready + task) * 7919 % KEYS);
                    let subject = Subject { resource: "api", consumer: &consumer, ..Subject::default() };
                    let decision = Decision { strategy: &strategy, subject, deadline: None, part: Part::ALL };
                    let mut out = Verdicts::default();
                    store.decide(&decision, Op::Charge, &[1], &mut out).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    fn start(port: u16) -> Self {
        let arguments = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port"];
        let process = Command::new("redis-server")
            .args(arguments)
            .arg(port.to_string())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed (apt-get install redis-server)");
        let redis = Self { process, port };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return redis;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not answer on port {port}");
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Seconds of CPU that the server has used.
    fn cpu(&self) -> f64 {
        let mut connection = redis::Client::open(self.url()).unwrap().get_connection().unwrap();
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut connection).unwrap();
        let used = |name: &str| -> f64 {
            let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("INFO cpu tells it");
            line.trim().parse().expect("a number")
        };
        used("used_cpu_sys:") + used("used_cpu_user:")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
