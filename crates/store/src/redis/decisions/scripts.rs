//! Needs that the scripts of decisions have of Redis, by the engines in use.

use weir_core::algorithm::EngineKind;

use crate::scripts::{Right, ScriptSpec};

/// The scripts of decisions. Their text is assembled for each call (`source.rs`).
pub(in crate::redis) static DECISIONS: ScriptSpec = of(&[
    ("get", "GET @"),
    ("set", "SET @ x XX PX 1000"),
    ("mget", "MGET @"),
    ("setrange", "SETRANGE @ 0 ''"),
    ("exists", "EXISTS @"),
]);

/// Further rights for a log.
static LOGS: ScriptSpec = of(&[
    ("rpop", "RPOP @"),
    ("llen", "LLEN @"),
    ("lrange", "LRANGE @ 0 0"),
    ("lindex", "LINDEX @ 0"),
    ("lset", "LSET @ 0 x"),
    ("ltrim", "LTRIM @ 0 0"),
    ("rpush", "RPUSH @ x"),
]);

/// Further rights for a window of many buckets.
static SPARSE: ScriptSpec = of(&[("getrange", "GETRANGE @ 0 0")]);

const fn of(rights: &'static [Right]) -> ScriptSpec {
    ScriptSpec { name: "decisions", does: "decide", scripts: &[], rights, slot: None, probe: None }
}

pub(in crate::redis) fn needed(
    has: impl Fn(EngineKind) -> bool,
) -> impl Iterator<Item = &'static ScriptSpec> {
    let more = [(EngineKind::Log, &LOGS), (EngineKind::Sparse, &SPARSE)];
    std::iter::once(&DECISIONS)
        .chain(more.into_iter().filter(move |(engine, _)| has(*engine)).map(|(_, spec)| spec))
}
