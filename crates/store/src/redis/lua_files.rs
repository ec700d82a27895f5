//! The files of `lua/`. A new engine does not compile until its files are listed here.

use weir_core::algorithm::EngineKind;

/// The files of one engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineFiles {
    /// Its part of the full driver.
    pub(super) driver: &'static str,
    /// Its parts of the short path, if it has one.
    pub(super) plain: Option<&'static str>,
}

macro_rules! driver {
    ($name:literal) => {
        EngineFiles { driver: include_str!(concat!("../../../../lua/", $name, ".lua")), plain: None }
    };
}

macro_rules! driver_and_short_path {
    ($name:literal) => {
        EngineFiles {
            plain: Some(include_str!(concat!("../../../../lua/plain/", $name, ".lua"))),
            ..driver!($name)
        }
    };
}

/// Returns the files of an engine.
pub(super) const fn files_of(engine: EngineKind) -> EngineFiles {
    match engine {
        EngineKind::Bucket => driver_and_short_path!("bucket"),
        EngineKind::Window => driver_and_short_path!("window"),
        EngineKind::Interval => driver_and_short_path!("interval"),
        EngineKind::Log => driver_and_short_path!("log"),
        EngineKind::Sliding => driver_and_short_path!("sliding"),
        EngineKind::Slots => driver_and_short_path!("slots"),
        EngineKind::WarmUp => driver!("warm_up"),
        EngineKind::Sparse => driver!("sparse"),
    }
}

/// The prologue of every script.
pub(super) const START: &str = include_str!("../../../../lua/start.lua");

/// Arithmetic and decoding of states, for the full driver.
pub(super) const NUMBERS: &str = include_str!("../../../../lua/numbers.lua");

/// Reservations of logs, for the full driver.
pub(super) const HELD: &str = include_str!("../../../../lua/held.lua");

/// Idempotent decisions, for the full driver.
pub(super) const ONCE: &str = include_str!("../../../../lua/once.lua");

/// The operations on a limit, for the full driver.
pub(super) const LIMIT: &str = include_str!("../../../../lua/limit.lua");

/// The full driver.
pub(super) const DECIDE: &str = include_str!("../../../../lua/decide.lua");

/// The template of the short path.
pub(super) const PLAIN: &str = include_str!("../../../../lua/plain.lua");

/// The parts of the short path that are the same for every engine.
pub(super) const PLAIN_ANY: &str = include_str!("../../../../lua/plain/any.lua");

/// The scripts of counters that nodes count on their own.
pub(super) const APPROXIMATE: [(&str, &str); 2] = [
    ("count", include_str!("../../../../lua/approximate/count.lua")),
    ("places", include_str!("../../../../lua/approximate/places.lua")),
];

/// The script that checks for missing rights.
pub(super) const RIGHTS: &str = include_str!("../../../../lua/rights.lua");

/// The parts of a script of queues.
type QueueFiles = &'static [&'static str];

macro_rules! queue_files {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../lua/queue/", $name, ".lua"))),*]
    };
}

/// The scripts of queues: one per operation for streams, and for lists where that one differs.
pub(super) const QUEUES: [(&str, QueueFiles); 18] = [
    ("enqueue-stream", queue_files!("start" "stream" "entries" "put_stream" "enqueue" "finish")),
    ("take-stream", queue_files!("start" "stream" "entries" "pace" "dead" "member" "take" "finish")),
    ("settle-stream", queue_files!("start" "stream" "entries" "dead" "settle" "finish")),
    ("stats-stream", queue_files!("start" "stream" "entries" "stats" "finish")),
    ("enqueue-list", queue_files!("start" "list" "entries" "put_list" "enqueue" "finish")),
    ("take-list", queue_files!("start" "list" "pace" "take_list" "finish")),
    ("stats-list", queue_files!("start" "list" "entries" "stats" "finish")),
    ("browse-stream", queue_files!("start" "stream" "entries" "member" "score" "browse" "finish")),
    ("browse-list", queue_files!("start" "list" "browse_list" "finish")),
    ("purge-stream", queue_files!("start" "stream" "totals" "purge" "finish")),
    ("purge-list", queue_files!("start" "list" "totals" "purge" "finish")),
    ("redrive", queue_files!("start" "stream" "entries" "member" "score" "totals" "redrive" "finish")),
    (
        "enqueue-stream-room",
        queue_files!("start" "stream" "entries" "member" "totals" "dead" "room" "make_room" "put_stream" "enqueue" "finish"),
    ),
    (
        "take-stream-room",
        queue_files!("start" "stream" "entries" "pace" "totals" "dead" "member" "room" "take" "finish"),
    ),
    (
        "enqueue-list-room",
        queue_files!("start" "list" "entries" "totals" "room_list" "make_room" "put_list" "enqueue" "finish"),
    ),
    ("take-list-room", queue_files!("start" "list" "pace" "totals" "room_list" "take_list" "finish")),
    ("outcomes-stream", queue_files!("start" "stream" "entries" "outcomes" "finish")),
    ("outcomes-list", queue_files!("start" "list" "entries" "outcomes" "finish")),
];

/// The parts of one script of leases.
type LeaseFiles = &'static [&'static str];

macro_rules! lease_file {
    ($name:literal) => {
        include_str!(concat!("../../../../lua/lease/", $name, ".lua"))
    };
}

const LEASE_START: &str = lease_file!("start");
const LEASE_SAMPLING: &str = lease_file!("sampling");
const LEASE: &str = include_str!("../../../../lua/lease.lua");
const LEASE_FINISH: &str = lease_file!("finish");

/// The script that lists leases.
pub(super) const LEASE_LIST: &str = lease_file!("list");

/// The scripts of leases, by the source of the limit.
pub(super) const LEASES: [(&str, LeaseFiles); 4] = [
    ("fixed", &[LEASE_START, lease_file!("fixed"), LEASE, LEASE_FINISH]),
    ("aimd", &[LEASE_START, lease_file!("aimd"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
    ("vegas", &[LEASE_START, lease_file!("vegas"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
    ("gradient2", &[LEASE_START, lease_file!("gradient2"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
];

/// The parts of a script of live control.
type ControlFiles = &'static [&'static str];

macro_rules! control_files {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../lua/control/", $name, ".lua"))),*]
    };
}

/// The scripts of live control.
pub(super) const CONTROL: [(&str, ControlFiles); 6] = [
    ("put", control_files!("start" "write" "put" "finish")),
    ("merge", control_files!("start" "write" "merge" "finish")),
    ("poll", control_files!("start" "position" "poll" "finish")),
    ("bans-add", control_files!("start" "bans_position" "bans_write" "bans_add" "finish")),
    ("bans-lift", control_files!("start" "bans_position" "bans_write" "bans_lift" "finish")),
    ("bans-poll", control_files!("start" "bans_position" "poll" "finish")),
];
