//! Memory of a key in Redis, by what Weir writes and by what other programs write.

use std::fmt::Write as _;
use std::time::Duration;

use redis::{Client, Connection, cmd};
use weir_load::{CallMode, Plan, PlanEnd, RunWatch};

use crate::Effort;
use crate::plan::plan;
use crate::servers::Servers;

const KEYS: u64 = 20_000;

/// The table: bytes of memory that Redis uses for a key with its state and its expiry.
pub fn table(servers: &Servers, effort: Effort) -> String {
    let client = Client::open(format!("redis://{}", servers.redis.address())).expect("an address");
    let mut redis = client.get_connection().expect("connect to Redis");
    let bucket = of_weir(&mut redis, servers, effort, "keep");
    let window = of_weir(&mut redis, servers, effort, "hour");
    let incr = each(&mut redis, |redis| {
        for number in 0..KEYS {
            let key = format!("user_{number:06}");
            cmd("INCRBY").arg(&key).arg(1).exec(redis).expect("count");
            cmd("EXPIRE").arg(&key).arg(3600).exec(redis).expect("let it expire");
        }
    });
    let mut out = "| key | bytes |\n|---|---|\n".to_owned();
    let rows = [
        ("memory, token bucket: RSS", servers.bytes_per_key),
        ("redis, token bucket", bucket),
        ("redis, fixed window", window),
        ("redis alone, INCRBY and EXPIRE, a name of 11 bytes", incr),
    ];
    for (name, bytes) in rows {
        let _ = writeln!(out, "| {name} | {bytes:.0} |");
    }
    out
}

fn of_weir(redis: &mut Connection, servers: &Servers, effort: Effort, resource: &str) -> f64 {
    let plan = Plan {
        mode: CallMode::Batch(100),
        in_flight: 16,
        warm_up: Duration::ZERO,
        end: PlanEnd::Calls(KEYS / 20),
        ..plan(effort, &servers.single, &[], resource, KEYS)
    };
    each(redis, |_| drop(weir_load::run(&plan, &RunWatch::default()).expect("fill Redis")))
}

/// Fills an empty Redis. Returns the memory of each key, in bytes.
fn each(redis: &mut Connection, fill: impl FnOnce(&mut Connection)) -> f64 {
    cmd("FLUSHALL").arg("SYNC").exec(redis).expect("empty it");
    let before = used(redis);
    fill(redis);
    let keys: u64 = cmd("DBSIZE").query(redis).expect("count its keys");
    (used(redis) - before) / keys as f64
}

fn used(redis: &mut Connection) -> f64 {
    let info: redis::InfoDict = cmd("INFO").arg("memory").query(redis).expect("ask it");
    info.get("used_memory").expect("it says that")
}
