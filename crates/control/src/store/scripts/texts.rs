//! The scripts of live control, and what they need of Redis.

use std::sync::OnceLock;

use weir_core::key::control_slot;
use weir_store::scripts::{Script, ScriptSpec, ScriptText};

/// The scripts of live control, bans among them.
pub static CONTROL: ScriptSpec = ScriptSpec {
    name: "live control",
    does: "share live control between nodes",
    scripts: &SCRIPTS,
    rights: &[
        ("hget", "HGET @ f"),
        ("hset", "HSET @ f x"),
        ("hmget", "HMGET @ f"),
        ("hdel", "HDEL @ x"),
        ("hlen", "HLEN @"),
        ("hscan", "HSCAN @ 0"),
        ("xadd", "XADD @ NOMKSTREAM * f x"),
        ("xrange", "XRANGE @ - +"),
        ("xrevrange", "XREVRANGE @ + -"),
        ("zadd", "ZADD @ XX 0 x"),
        ("zrem", "ZREM @ x"),
        ("zcount", "ZCOUNT @ 0 0"),
        ("zscore", "ZSCORE @ x"),
        ("zscan", "ZSCAN @ 0"),
        ("zrangebyscore", "ZRANGEBYSCORE @ 0 0"),
        ("zremrangebyscore", "ZREMRANGEBYSCORE @ 0 0"),
        ("zremrangebyrank", "ZREMRANGEBYRANK @ 0 0"),
    ],
    slot: Some(control_slot),
    probe: None,
};

macro_rules! control_files {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../../lua/control/", $name, ".lua"))),*]
    };
}

/// The scripts of live control.
const SCRIPTS: [ScriptText; 6] = [
    ("put", control_files!("start" "write" "put" "finish")),
    ("merge", control_files!("start" "write" "merge" "finish")),
    ("poll", control_files!("start" "position" "poll" "finish")),
    ("bans-add", control_files!("start" "bans_position" "bans_write" "bans_add" "finish")),
    ("bans-lift", control_files!("start" "bans_position" "bans_write" "bans_lift" "finish")),
    ("bans-poll", control_files!("start" "bans_position" "poll" "finish")),
];

/// The texts of [`SCRIPTS`], joined at first use.
static CONTROL_SCRIPTS: [OnceLock<Script>; SCRIPTS.len()] = [const { OnceLock::new() }; SCRIPTS.len()];

/// A script of live control, in the order of [`SCRIPTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlScript {
    /// Changes an entry.
    Put,
    /// Takes over newer records of a node.
    Merge,
    /// Reads what is new.
    Poll,
    /// Adds bans.
    AddBans,
    /// Lifts a ban.
    LiftBan,
    /// Reads what is new of bans.
    PollBans,
}

/// Returns a script of live control.
pub(super) fn control_script(does: ControlScript) -> &'static Script {
    let number = does as usize;
    CONTROL_SCRIPTS[number].get_or_init(|| Script::new(SCRIPTS[number].1.join("\n")))
}
