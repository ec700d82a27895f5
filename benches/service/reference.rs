//! envoyproxy/ratelimit, on a Redis of its own, beside Weir with Envoy's protocol on Redis.

use std::process::Command;

use tempfile::TempDir;
use weir_load::{CallMode, Plan};
use weir_testing::clients::root;
use weir_testing::ports;

use crate::Effort;
use crate::plan::plan;
use crate::processes::{Process, redis};
use crate::rows::{Row, row};
use crate::servers::{ENVOY, Servers};

/// The server and its Redis.
pub struct Reference {
    server: Process,
    redis: Process,
}

/// Starts it, if `make reference` has installed it.
pub fn start(files: &TempDir) -> Option<Reference> {
    let program = root().join(".cache/reference/service_cmd");
    if !program.exists() {
        println!("envoyproxy/ratelimit is not installed: its rows are left out (make reference)");
        return None;
    }
    let folder = files.path().join("reference/ratelimit/config");
    std::fs::create_dir_all(&folder).expect("make the folder of its limits");
    std::fs::write(folder.join("bench.yaml"), ENVOY).expect("write its limits");
    let (redis, port) = (redis(files, &[]), ports::free());
    let mut command = Command::new(program);
    command.env_clear().env("RUNTIME_ROOT", files.path().join("reference"));
    command.envs([
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("RUNTIME_WATCH_ROOT", "false"),
        ("USE_STATSD", "false"),
        ("USE_PROMETHEUS", "false"),
        ("LOG_LEVEL", "error"),
        ("BACKEND_TYPE", "redis"),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis.address()),
        ("HOST", "127.0.0.1"),
        ("PORT", &ports::free().to_string()),
        ("GRPC_HOST", "127.0.0.1"),
        ("GRPC_PORT", &port.to_string()),
        ("DEBUG_HOST", "127.0.0.1"),
        ("DEBUG_PORT", &ports::free().to_string()),
    ]);
    Some(Reference { server: Process::start(command, port), redis })
}

/// The rows: without it only those of Weir.
pub fn rows(servers: &Servers, effort: Effort) -> Vec<Row> {
    let envoy = |plan: Plan| Plan { mode: CallMode::Envoy, ..plan };
    let of_weir = |keys| envoy(plan(effort, &servers.single, &[&servers.redis], "allow", keys));
    let (work, hot) = ("unary, Envoy's protocol", "unary, Envoy's protocol, one key");
    let mut rows = vec![
        row("redis-envoy", work, "redis", "redis-envoy", of_weir(100_000)),
        row("redis-envoy-hot", hot, "redis", "redis-envoy-hot", of_weir(1)),
    ];
    if let Some(Reference { server, redis }) = &servers.reference {
        let its = |keys| envoy(plan(effort, server, &[redis], "allow", keys));
        rows.push(row("reference", work, "envoyproxy/ratelimit", "redis-envoy", its(100_000)));
        rows.push(row("reference-hot", hot, "envoyproxy/ratelimit", "redis-envoy-hot", its(1)));
    }
    rows
}
