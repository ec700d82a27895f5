//! Needs of shared usage in Redis. It has no scripts.

use weir_core::key::usage_slot;
use weir_store::scripts::ScriptSpec;

/// The commands of usage that nodes share.
pub(crate) static USAGE: ScriptSpec = ScriptSpec {
    name: "usage",
    does: "share usage between nodes",
    scripts: &[],
    rights: &[
        ("hset", "HSET @ f x"),
        ("hgetall", "HGETALL @"),
        ("expire", "EXPIRE @ 60"),
        ("zadd", "ZADD @ XX 0 x"),
        ("zrange", "ZRANGE @ 0 0"),
        ("zremrangebyscore", "ZREMRANGEBYSCORE @ 0 0"),
        ("zremrangebyrank", "ZREMRANGEBYRANK @ 0 0"),
    ],
    slot: Some(usage_slot),
    probe: None,
};

/// The commands of time series, tried with arguments that the module refuses.
pub(crate) static TIME_SERIES: ScriptSpec = ScriptSpec {
    name: "time series of usage",
    does: "keep time series of usage",
    scripts: &[],
    rights: &[
        ("ts.create", "TS.CREATE @ RETENTION x"),
        ("ts.createrule", "TS.CREATERULE @ @ AGGREGATION sum 1"),
        ("ts.add", "TS.ADD @ x x"),
        ("expire", "EXPIRE @ 60"),
    ],
    slot: Some(usage_slot),
    probe: None,
};
