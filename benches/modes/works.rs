//! A strategy of each mode, its server, and the load on it.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weir_testing::RedisServer;

use crate::served::{Served, WEIR};

/// A strategy that allows everything, and how it is counted.
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    limit: &'static str,
    more: &'static str,
    /// True if the CPU of the modes after this one is compared with its CPU.
    pub(crate) is_compared_with: bool,
}

const WINDOW: &str = "fixed_window: { limit: 1_000_000_000, window: 10s }";
const BUCKET: &str = "token_bucket: { rate: 1_000_000_000/s, burst: 1_000_000_000 }";

const MODES: [Mode; 4] = [
    Mode { name: "window, exact", limit: WINDOW, more: "", is_compared_with: true },
    Mode {
        name: "window, exact, `local`",
        limit: WINDOW,
        more: "on_store_failure: { local: { share: 1/4 } }",
        is_compared_with: false,
    },
    Mode {
        name: "window, `max_over`",
        limit: WINDOW,
        more: "approximate: { max_over: 9_000, nodes: 10 }",
        is_compared_with: false,
    },
    Mode { name: "bucket, exact", limit: BUCKET, more: "", is_compared_with: true },
];

/// Calls on one mode.
pub(crate) struct Work {
    pub(crate) mode: &'static Mode,
    pub(crate) keys: u64,
    server: usize,
}

/// All of them, on one Redis. Each mode has a node of its own.
pub(crate) struct Works {
    all: Vec<Work>,
    servers: Vec<Served>,
    redis: RedisServer,
    redis_pid: u32,
    _files: tempfile::TempDir,
}

/// The cost of a work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) node_us: f64,
    pub(crate) redis_us: f64,
    /// Calls of a script in 1,000 decisions.
    pub(crate) scripts: f64,
    /// The same at 10,000 calls a second.
    pub(crate) few_scripts: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Works {
    pub(crate) fn start() -> Self {
        let redis = RedisServer::start();
        let files = tempfile::tempdir().unwrap();
        let servers = MODES.iter().enumerate().map(|(number, mode)| {
            let file = files.path().join(format!("{number}.yaml"));
            let Mode { limit, more, .. } = mode;
            let text = format!(
                "store: {{ namespace: mode-{number}, redis: {{ nodes: [\"{}\"] }} }}
strategies:
  default:
    limits: [{{ name: each, per: [consumer], {limit} }}]
    {more}
",
                redis.url()
            );
            std::fs::write(&file, text).unwrap();
            Served::start(&file)
        });
        let servers = servers.collect();
        let works = |keys| {
            let of = move |(server, mode): (usize, &'static Mode)| Work { mode, keys, server };
            MODES.iter().enumerate().map(of)
        };
        let info: redis::InfoDict = redis.query(&["INFO", "server"]);
        let redis_pid = info.get("process_id").unwrap();
        // A node that has just got its place asks Redis about each key once in that window.
        eprintln!("waiting for two windows of 10 s, so that all nodes hold their places");
        std::thread::sleep(Duration::from_secs(20));
        Self { all: works(1).chain(works(100_000)).collect(), servers, redis, redis_pid, _files: files }
    }

    pub(crate) fn all(&self) -> &[Work] {
        &self.all
    }

    pub(crate) fn measure(&self, work: &Work, span: Duration) -> Figures {
        // Warm: its calls would count as the others.
        self.load(work, Duration::from_secs(1), &[]);
        let (report, scripts) = self.load(work, span, &["--in-flight", "128"]);
        let (few, few_scripts) = self.load(work, span, &["--rate", "10000"]);
        let cpu = |server: usize| report["cpu"]["servers"][server]["us_per_decision"].as_f64().unwrap();
        let latency = |name| few["latency_us"][name].as_f64().unwrap();
        Figures {
            per_second: report["decisions"]["per_s"].as_f64().unwrap(),
            node_us: cpu(0),
            redis_us: cpu(1),
            scripts,
            few_scripts,
            p50_us: latency("p50"),
            p99_us: latency("p99"),
        }
    }

    /// The report of a load, and the calls of a script in 1,000 of its decisions.
    fn load(&self, work: &Work, span: Duration, more: &[&str]) -> (Value, f64) {
        let server = &self.servers[work.server];
        let mut load = Command::new(WEIR);
        load.args(["load", "--server", &server.address.to_string(), "--strategy", "default"]);
        load.args(["--resource", "api", "--connections", "8", "--keys", &work.keys.to_string()]);
        load.args(["--warm-up", "0s", "--quiet", "--output", "json"]).args(more);
        for pid in [server.pid(), self.redis_pid] {
            load.args(["--pid", &pid.to_string()]);
        }
        load.args(["--duration", &format!("{}ms", span.as_millis())]);
        let before = self.redis.script_calls();
        let output = load.output().unwrap();
        let scripts = (self.redis.script_calls() - before) as f64;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |name: &str| report["decisions"][name].as_f64().unwrap();
        assert!(of("failed") + of("degraded") + of("denied") == 0.0, "{report}");
        let per_thousand = scripts / of("allowed") * 1_000.0;
        (report, per_thousand)
    }
}

impl Figures {
    /// Of each figure by itself.
    pub(crate) fn median(samples: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = samples.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        Self {
            per_second: of(|it| it.per_second),
            node_us: of(|it| it.node_us),
            redis_us: of(|it| it.redis_us),
            scripts: of(|it| it.scripts),
            few_scripts: of(|it| it.few_scripts),
            p50_us: of(|it| it.p50_us),
            p99_us: of(|it| it.p99_us),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, node_us, redis_us, scripts, few_scripts, p50_us, p99_us } = self;
        write!(
            f,
            "{per_second:>8.0}/s {node_us:>6.2} µs + redis {redis_us:>5.2} µs, {scripts:.2} and {few_scripts:.1} scripts, {p50_us:.0} and {p99_us:.0} µs"
        )
    }
}
