//! The memory of open calls: the memory of a process under each kind of them, and after its callers have gone.

use std::time::Duration;

use weir_testing::is_short;

use super::floods::Attacked;
use super::requests::{BATCH, ONE, STREAM, data, head};
use crate::support::frames::{DATA, END_STREAM, Raw, frame};
use crate::support::{RedisServer, eventually};

/// Memory that the process may have on each transport, whatever its callers open.
const MOST: [(&str, u64); 2] = [("fast", 160 << 20), ("tonic", 512 << 20)];

const CONNECTIONS: usize = 40;
const STREAMS: u32 = 1024;

const WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const SUBSCRIBE: &str = "/weir.v1.QueueService/Subscribe";
const TAKE: &str = "/weir.v1.QueueService/Take";
const STATS: &str = "/weir.v1.QueueService/Stats";

/// The bytes after the headers of each call, and whether they end the stream.
type Body = (&'static [u8], bool);

const SILENT: Body = (&[], false);
const EMPTY: Body = (&[0; 5], false);
const PREFIX: Body = (&[0, 0, 0, 128, 0], false);

/// `queue: jobs`, `consumer: c`, `credit: 1`.
const SUBSCRIPTION: Body = (b"\0\0\0\0\x0b\x0a\x04jobs\x12\x01c\x18\x01", false);

/// The same, with `max_wait: 30s`.
const LONG_POLL: Body = (b"\0\0\0\0\x0d\x0a\x04jobs\x12\x01c\x22\x02\x08\x1e", true);

/// A list of services.
const LIST: Body = (&[0, 0, 0, 0, 2, 0x3a, 0], false);

const KINDS: [(&str, &str, Body); 14] = [
    ("reflection", REFLECTION, LIST),
    ("reflection without a message", REFLECTION, SILENT),
    ("Subscribe", SUBSCRIBE, SUBSCRIPTION),
    ("Subscribe without a message", SUBSCRIBE, SILENT),
    ("Watch", WATCH, (&[0; 5], true)),
    ("Watch without a message", WATCH, SILENT),
    ("ShouldAllowStream", STREAM, EMPTY),
    ("ShouldAllowStream without a message", STREAM, SILENT),
    ("ShouldAllow without a message", ONE, SILENT),
    ("ShouldAllow with a prefix", ONE, PREFIX),
    ("a batch without a message", BATCH, SILENT),
    ("Take", TAKE, LONG_POLL),
    ("Stats without a message", STATS, SILENT),
    ("no method", "/weir.v1.QueueService/None", SILENT),
];

fn open(attacked: &Attacked, path: &str, (body, ends): Body) -> Raw {
    let raw = Raw::open(attacked.address);
    let calls: Vec<u8> = (0..STREAMS)
        .flat_map(|at| {
            let id = 1 + 2 * at;
            let rest = if ends { frame(DATA, END_STREAM, id, body) } else { data(id, body) };
            [head(id, path), rest].concat()
        })
        .collect();
    // The other side may refuse to read all of it.
    raw.try_send(&calls);
    raw
}

/// Each kind by itself, and then all of them at once. After each, the process has at most 1.5 times of what it had at first.
/// In a short run only the first kind is alone.
#[test]
fn open_calls_hold_little_memory_and_give_it_back() {
    let redis = RedisServer::start();
    let alone = if is_short() { 1 } else { KINDS.len() };
    println!("{alone} of {} kinds by themselves", KINDS.len());
    for (transport, most) in MOST {
        let attacked = Attacked::with_queue(transport, &redis);
        let kept = attacked.idle() / 2 * 3;
        for (name, path, body) in KINDS.into_iter().take(alone) {
            let paths = std::iter::repeat_n((path, body), CONNECTIONS);
            hold(&attacked, &format!("{transport}: {name}"), (most, kept), paths);
        }
        let all = KINDS.into_iter().map(|(_, path, body)| (path, body)).cycle().take(CONNECTIONS);
        hold(&attacked, &format!("{transport}: all"), (most, kept), all);
    }
}

fn hold<'a>(
    attacked: &Attacked,
    name: &str,
    (most, kept): (u64, u64),
    calls: impl Iterator<Item = (&'a str, Body)>,
) {
    let before = attacked.idle();
    let held: Vec<Raw> = calls.map(|(path, body)| open(attacked, path, body)).collect();
    let memory = attacked.idle();
    attacked.serves();
    println!("{name}: resident {} MiB, from {}", memory >> 20, before >> 20);
    assert!(memory < most, "{name}: {memory}");
    drop(held);
    let what = format!("{name}: the memory goes back to {} MiB", kept >> 20);
    eventually(Duration::from_secs(10), &what, || attacked.memory() <= kept);
}
