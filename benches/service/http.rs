//! The cost of a decision by HTTP: JSON and `/check` beside the gRPC call of the same process, a bare hyper server,
//! and throttlecrab's `/throttle`, in one run by turns. `cargo bench --bench service -- --http` writes
//! `target/bench/http.md`.

pub mod bare;

use std::fmt::Write as _;
use std::process::Command;

use tempfile::TempDir;
use weir_load::{CallMode, CallProtocol, Plan, UnaryMethod};
use weir_testing::ports;

use crate::Effort;
use crate::plan::{FEW, open, plan};
use crate::processes::{Process, ceiling, throttlecrab};
use crate::rows::{Row, Sample, row};

/// The argument for these rows in the place of all others.
pub const ARGUMENT: &str = "--http";

/// Connections, each with one call.
const CONNECTIONS: usize = 8;

/// The servers, all running from the beginning to the end.
pub struct HttpServers {
    weir: Process,
    http: u16,
    bare: Process,
    throttlecrab: Option<Process>,
    _files: TempDir,
}

const CONFIG: &str = "
strategies:
  allow: { limits: [{ name: each, per: [resource, consumer], token_bucket: { burst: 1000000000, rate: 1000000000/s } }] }
resources: [{ match: allow, strategy: allow }]
store: { memory: { budget: 1GiB } }
";

/// throttlecrab's `/throttle`: key, burst, so many per so many seconds.
const THROTTLE: UnaryMethod = UnaryMethod {
    path: "/throttle",
    message: |key| {
        let limit = r#""max_burst":1000000000,"count_per_period":1000000000,"period":60,"quantity":1"#;
        format!(r#"{{"key":"user_{key}",{limit}}}"#).into_bytes()
    },
};

/// `/check/bench`, as a proxy asks it.
const CHECK: UnaryMethod = UnaryMethod {
    path: "/check/bench",
    message: |key| {
        format!("x-user: user_{key}\r\nx-forwarded-for: 10.1.2.3\r\nx-forwarded-uri: /page\r\n").into_bytes()
    },
};

impl HttpServers {
    /// Starts the servers.
    pub fn start() -> Self {
        let files = tempfile::tempdir().expect("make a folder");
        let (port, http, admin) = (ports::free(), ports::free(), ports::free());
        let file = files.path().join("weir.yaml");
        let server = format!("server: {{ listen: 127.0.0.1:{port}, admin: 127.0.0.1:{admin} }}\n");
        let check = "{ proxy: haproxy, resource: allow, consumer: 'header:x-user' }";
        let listener = format!("http: {{ listen: 127.0.0.1:{http}, checks: {{ bench: {check} }} }}\n");
        std::fs::write(&file, format!("{server}{listener}{CONFIG}")).expect("write a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["serve", "--config"]).arg(file);
        let weir = Process::start(command, port);
        Self { weir, http, bare: ceiling(bare::ARGUMENT), throttlecrab: throttlecrab("http"), _files: files }
    }

    /// The rows, in the order of the table.
    pub fn rows(&self, effort: Effort) -> Vec<Row> {
        let grpc = plan(effort, &self.weir, &[], "allow", 100_000);
        let one_each = Plan { in_flight: CONNECTIONS, connections: CONNECTIONS, ..grpc.clone() };
        let by_http = |port: u16, pid: u32, mode| Plan {
            address: std::net::SocketAddr::from(([127, 0, 0, 1], port)).into(),
            authority: format!("127.0.0.1:{port}"),
            protocol: CallProtocol::Http,
            mode,
            pids: vec![pid],
            ..one_each.clone()
        };
        let json = by_http(self.http, self.weir.pid(), CallMode::Unary);
        let check = by_http(self.http, self.weir.pid(), CallMode::OtherGet(CHECK));
        let bare = by_http(self.bare.port, self.bare.pid(), CallMode::Unary);
        let mut rows = vec![
            row("grpc", "gRPC unary, a call on each of 8 connections", "memory", "grpc", one_each.clone()),
            row("grpc-128", "gRPC unary, 128 in flight", "memory", "grpc", grpc),
            row("json", "JSON by HTTP", "memory", "grpc", json.clone()),
            row("check", "/check", "memory", "grpc", check),
            row("bare", "JSON by HTTP, a constant answer", "bare hyper", "grpc", bare),
        ];
        if let Some(throttlecrab) = &self.throttlecrab {
            let plan = by_http(throttlecrab.port, throttlecrab.pid(), CallMode::Other(THROTTLE));
            rows.push(row("throttlecrab", "/throttle", "throttlecrab", "grpc", plan));
        }
        // Each connection has one call: more of them, or calls are made late.
        let many = |plan: &Plan| Plan { connections: 64, ..open(plan, FEW) };
        let grpc_open = many(&one_each);
        let json_open = Plan { in_flight: 64, ..many(&json) };
        rows.push(row("grpc-open", "gRPC unary, 10,000 calls/s", "memory", "grpc-open", grpc_open));
        rows.push(row("json-open", "JSON by HTTP, 10,000 calls/s", "memory", "grpc-open", json_open));
        rows
    }
}

/// Prints what was aimed at, what was reached in this run, and what a hyper server reaches that decides nothing: where that is
/// above a goal, no server on hyper reaches it.
pub fn goals(samples: &[Sample]) -> String {
    let cpu = |id: &str| samples.iter().find(|sample| sample.id == id).map(|sample| sample.server_us);
    let mut out =
        "| work | goal: CPU of the server | reached | bare hyper | |\n|---|---|---|---|---|\n".to_owned();
    for (work, id, than, against, most) in [
        ("JSON", "json", "the unary gRPC call, 128 in flight", "grpc-128", 4.0),
        ("JSON", "json", "the unary gRPC call, 8 in flight as here", "grpc", 4.0),
        ("JSON", "json", "bare hyper", "bare", 1.5),
        ("JSON", "json", "throttlecrab's /throttle", "throttlecrab", 0.5),
        ("/check", "check", "throttlecrab's /throttle", "throttlecrab", 0.5),
    ] {
        let (Some(mine), Some(other)) = (cpu(id), cpu(against)) else { continue };
        let ratio = mine / other;
        let verdict = if ratio <= most { "met" } else { "**missed**" };
        let bare = cpu("bare").map_or_else(|| "–".to_owned(), |bare| format!("{:.2} ×", bare / other));
        let _ = writeln!(out, "| {work} | ≤ {most} × {than} | {ratio:.2} × | {bare} | {verdict} |");
    }
    out
}
