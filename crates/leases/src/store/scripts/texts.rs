//! The scripts of leases, and what they need of Redis.

use std::sync::OnceLock;

use weir_core::strategy::{ConcurrencyRule, ControllerRule};
use weir_store::scripts::{Script, ScriptSpec, ScriptText};

use super::probe::PROBE;

/// The scripts of leases.
pub static LEASES: ScriptSpec = ScriptSpec {
    name: "leases",
    does: "serve leases",
    scripts: &SCRIPTS,
    rights: &[
        ("hset", "HSET @ f x"),
        ("hget", "HGET @ f"),
        ("hmget", "HMGET @ f"),
        ("hdel", "HDEL @ x"),
        ("zadd", "ZADD @ XX 0 x"),
        ("zrem", "ZREM @ x"),
        ("zcard", "ZCARD @"),
        ("zscore", "ZSCORE @ x"),
        ("zrange", "ZRANGE @ 0 0"),
        ("zrangebyscore", "ZRANGEBYSCORE @ 0 0"),
    ],
    slot: None,
    probe: Some(&PROBE),
};

macro_rules! lease_file {
    ($name:literal) => {
        include_str!(concat!("../../../../../lua/leases/", $name, ".lua"))
    };
}

const LEASE_START: &str = lease_file!("start");
const LEASE_SAMPLING: &str = lease_file!("sampling");
const LEASE: &str = lease_file!("call");
const LEASE_FINISH: &str = lease_file!("finish");

/// The script that lists leases.
const LEASE_LIST: &str = lease_file!("list");

/// The scripts of leases, by the source of the limit, and the one that lists them.
const SCRIPTS: [ScriptText; 5] = [
    ("fixed", &[LEASE_START, lease_file!("fixed"), LEASE, LEASE_FINISH]),
    ("aimd", &[LEASE_START, lease_file!("aimd"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
    ("vegas", &[LEASE_START, lease_file!("vegas"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
    ("gradient2", &[LEASE_START, lease_file!("gradient2"), LEASE_SAMPLING, LEASE, LEASE_FINISH]),
    ("list", &[LEASE_LIST]),
];

/// The scripts of leases, in the order of [`SCRIPTS`].
static ASSEMBLED: [OnceLock<Script>; SCRIPTS.len()] = [const { OnceLock::new() }; SCRIPTS.len()];

/// Returns the lease script for the source of this rule's limit.
pub(super) fn lease_script(rule: &ConcurrencyRule) -> &'static Script {
    let kind = match rule.adaptive().map(|adaptive| &adaptive.controller) {
        None => 0,
        Some(ControllerRule::Aimd(_)) => 1,
        Some(ControllerRule::Vegas(_)) => 2,
        Some(ControllerRule::Gradient2(_)) => 3,
    };
    ASSEMBLED[kind].get_or_init(|| Script::new(SCRIPTS[kind].1.join("\n")))
}

/// Returns the script that lists leases.
pub(super) fn lease_list_script() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| Script::new(LEASE_LIST.to_owned()))
}
