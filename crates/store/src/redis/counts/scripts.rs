//! The scripts of counters that nodes count on their own, and what they need of Redis.

use std::sync::OnceLock;

use crate::scripts::{Script, ScriptSpec, ScriptText};

/// The scripts of strategies that nodes count on their own.
pub static APPROXIMATE: ScriptSpec = ScriptSpec {
    name: "approximate strategies",
    does: "count approximate strategies",
    scripts: &SCRIPTS,
    rights: &[
        ("hset", "HSET @ f x"),
        ("hget", "HGET @ f"),
        ("hmget", "HMGET @ f"),
        ("pexpire", "PEXPIRE @ 1000"),
    ],
    slot: None,
    probe: None,
};

const SCRIPTS: [ScriptText; 2] = [
    ("count", &[include_str!("../../../../../lua/approximate/count.lua")]),
    ("places", &[include_str!("../../../../../lua/approximate/places.lua")]),
];

static ASSEMBLED: [OnceLock<Script>; SCRIPTS.len()] = [const { OnceLock::new() }; SCRIPTS.len()];

/// A script of counters that nodes count on their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum CountScript {
    Count,
    Places,
}

pub(in crate::redis) fn count_script(does: CountScript) -> &'static Script {
    let number = match does {
        CountScript::Count => 0,
        CountScript::Places => 1,
    };
    ASSEMBLED[number].get_or_init(|| Script::new(SCRIPTS[number].1.join("\n")))
}
