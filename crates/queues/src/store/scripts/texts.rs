//! The scripts of queues, and what they need of Redis.

use std::sync::OnceLock;

use weir_store::scripts::{Script, ScriptSpec, ScriptText};

/// The scripts of queues.
pub static QUEUES: ScriptSpec = ScriptSpec {
    name: NAME,
    does: DOES,
    scripts: &SCRIPTS,
    rights: &[
        ("hget", "HGET @ f"),
        ("hset", "HSET @ f x"),
        ("hmget", "HMGET @ f"),
        ("hdel", "HDEL @ x"),
        ("zadd", "ZADD @ XX 0 x"),
        ("zrem", "ZREM @ x"),
        ("zcard", "ZCARD @"),
        ("zrange", "ZRANGE @ 0 0"),
        ("zrangebyscore", "ZRANGEBYSCORE @ 0 0"),
        ("xadd", "XADD @ NOMKSTREAM * f x"),
        ("xlen", "XLEN @"),
        ("xrange", "XRANGE @ - +"),
        ("xrevrange", "XREVRANGE @ + -"),
        ("xtrim", "XTRIM @ MAXLEN 0"),
        ("xdel", "XDEL @ 0-1"),
        ("xack", "XACK @ weir 0-1"),
        ("xclaim", "XCLAIM @ weir weir 0 0-1"),
        ("xreadgroup", "XREADGROUP GROUP weir weir COUNT 1 STREAMS @ >"),
        ("xgroup|create", "XGROUP CREATE @ weir 0"),
        ("lpop", "LPOP @"),
        ("get", "GET @"),
        ("set", "SET @ x XX PX 1000"),
        ("llen", "LLEN @"),
        ("rpop", "RPOP @"),
        ("lrange", "LRANGE @ 0 0"),
        ("lindex", "LINDEX @ 0"),
        ("rpush", "RPUSH @ x"),
    ],
    slot: None,
    probe: None,
};

/// Additional needs of queues that drop items or let them age: their scripts read the last delivered id.
pub static QUEUES_THAT_DROP: ScriptSpec = ScriptSpec {
    name: NAME,
    does: DOES,
    scripts: &[],
    rights: &[("xinfo|groups", "XINFO GROUPS @")],
    slot: None,
    probe: None,
};

const NAME: &str = "queues";
const DOES: &str = "serve queues";

macro_rules! queue_files {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../../lua/queues/", $name, ".lua"))),*]
    };
}

/// The scripts of queues: one per operation for streams, and for lists where that one differs.
const SCRIPTS: [ScriptText; 18] = [
    ("enqueue-stream", queue_files!("start" "stream" "entries" "put_stream" "enqueue" "finish")),
    (
        "take-stream",
        queue_files!("start" "stream" "entries" "pace" "archive" "dead" "member" "take" "finish"),
    ),
    ("settle-stream", queue_files!("start" "stream" "entries" "archive" "dead" "settle" "finish")),
    ("stats-stream", queue_files!("start" "stream" "entries" "archived" "stats" "finish")),
    ("enqueue-list", queue_files!("start" "list" "entries" "put_list" "enqueue" "finish")),
    ("take-list", queue_files!("start" "list" "pace" "take_list" "finish")),
    ("stats-list", queue_files!("start" "list" "entries" "archived" "stats" "finish")),
    ("browse-stream", queue_files!("start" "stream" "entries" "member" "score" "browse" "finish")),
    ("browse-list", queue_files!("start" "list" "browse_list" "finish")),
    ("purge-stream", queue_files!("start" "stream" "totals" "purge" "finish")),
    ("purge-list", queue_files!("start" "list" "totals" "purge" "finish")),
    ("redrive", queue_files!("start" "stream" "entries" "member" "score" "totals" "redrive" "finish")),
    (
        "enqueue-stream-room",
        queue_files!("start" "stream" "entries" "member" "totals" "archive" "dead" "room" "make_room" "put_stream" "enqueue" "finish"),
    ),
    (
        "take-stream-room",
        queue_files!("start" "stream" "entries" "pace" "totals" "archive" "dead" "member" "room" "take" "finish"),
    ),
    (
        "enqueue-list-room",
        queue_files!("start" "list" "entries" "totals" "room_list" "make_room" "put_list" "enqueue" "finish"),
    ),
    ("take-list-room", queue_files!("start" "list" "pace" "totals" "room_list" "take_list" "finish")),
    ("outcomes-stream", queue_files!("start" "stream" "entries" "archived" "outcomes" "finish")),
    ("outcomes-list", queue_files!("start" "list" "entries" "archived" "outcomes" "finish")),
];

/// The scripts of queues, in the order of [`SCRIPTS`].
static QUEUE_SCRIPTS: [OnceLock<Script>; SCRIPTS.len()] = [const { OnceLock::new() }; SCRIPTS.len()];

/// The kind of script for a queue operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueScript {
    /// Enqueues items.
    Enqueue,
    /// Delivers items.
    Take,
    /// Acks or nacks items.
    Settle,
    /// Reads statistics.
    Stats,
    /// Shows items.
    Browse,
    /// Removes all items.
    Purge,
    /// Moves dead letters back.
    Redrive,
    /// Looks for outcomes.
    Outcomes,
}

/// Returns the script of a queue operation. Items of a list are not settled, and have no dead letters. A script that
/// `makes_room` lets items age out, or drops them for new ones.
pub(super) fn queue_script(does: QueueScript, is_list: bool, makes_room: bool) -> &'static Script {
    let number = match (does, is_list) {
        (QueueScript::Enqueue, false) if makes_room => 12,
        (QueueScript::Take, false) if makes_room => 13,
        (QueueScript::Enqueue, true) if makes_room => 14,
        (QueueScript::Take, true) if makes_room => 15,
        (QueueScript::Enqueue, false) => 0,
        (QueueScript::Take, false) => 1,
        (QueueScript::Settle, _) => 2,
        (QueueScript::Stats, false) => 3,
        (QueueScript::Enqueue, true) => 4,
        (QueueScript::Take, true) => 5,
        (QueueScript::Stats, true) => 6,
        (QueueScript::Browse, false) => 7,
        (QueueScript::Browse, true) => 8,
        (QueueScript::Purge, false) => 9,
        (QueueScript::Purge, true) => 10,
        (QueueScript::Redrive, _) => 11,
        (QueueScript::Outcomes, false) => 16,
        (QueueScript::Outcomes, true) => 17,
    };
    QUEUE_SCRIPTS[number].get_or_init(|| Script::new(SCRIPTS[number].1.join("\n")))
}
