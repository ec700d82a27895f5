//! The ACL rights that each capability needs, and the call that checks for missing ones.
//!
//! Each command is tried in a form that has no effect, or none but on the probe's own key. `docs/redis.md` lists the
//! same rights.

use redis::{RedisError, Value};

use super::engines::EngineSet;
use crate::redis::connect::Connection;
use crate::redis::lua_files::RIGHTS;
use weir_core::algorithm::EngineKind;

/// A right in the syntax of `ACL SETUSER` without the `+`, and a command that needs it; `@` is the probe's key.
type Right = (&'static str, &'static str);

/// Rights that every script needs. The first one deletes what the others write.
const OF_ALL: &[Right] = &[("del", "DEL @"), ("time", "TIME"), ("pexpireat", "PEXPIREAT @ 1")];

const OF_DECISIONS: &[Right] = &[
    ("get", "GET @"),
    ("set", "SET @ x XX PX 1000"),
    ("mget", "MGET @"),
    ("setrange", "SETRANGE @ 0 ''"),
    ("exists", "EXISTS @"),
];

const OF_LOGS: &[Right] = &[
    ("rpop", "RPOP @"),
    ("llen", "LLEN @"),
    ("lrange", "LRANGE @ 0 0"),
    ("lindex", "LINDEX @ 0"),
    ("lset", "LSET @ 0 x"),
    ("ltrim", "LTRIM @ 0 0"),
    ("rpush", "RPUSH @ x"),
];

const OF_SPARSE: &[Right] = &[("getrange", "GETRANGE @ 0 0")];

const OF_LEASES: &[Right] = &[
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
];

const OF_QUEUES: &[Right] = &[
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
];

const OF_APPROXIMATE: &[Right] =
    &[("hset", "HSET @ f x"), ("hget", "HGET @ f"), ("hmget", "HMGET @ f"), ("pexpire", "PEXPIRE @ 1000")];

/// Rights of queues that drop items or let them age.
const OF_QUEUE_GROUPS: &[Right] = &[("xinfo|groups", "XINFO GROUPS @")];

/// Rights of decisions that queues need, too.
const OF_QUEUES_TOO: &[Right] = &[
    ("get", "GET @"),
    ("set", "SET @ x XX PX 1000"),
    ("llen", "LLEN @"),
    ("rpop", "RPOP @"),
    ("lrange", "LRANGE @ 0 0"),
    ("lindex", "LINDEX @ 0"),
    ("rpush", "RPUSH @ x"),
];

const OF_USAGE: &[Right] = &[
    ("hset", "HSET @ f x"),
    ("hgetall", "HGETALL @"),
    ("expire", "EXPIRE @ 60"),
    ("zadd", "ZADD @ XX 0 x"),
    ("zrange", "ZRANGE @ 0 0"),
    ("zremrangebyscore", "ZREMRANGEBYSCORE @ 0 0"),
    ("zremrangebyrank", "ZREMRANGEBYRANK @ 0 0"),
];

const OF_CONTROL: &[Right] = &[
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
];

/// A capability that a process uses Redis for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    /// Decisions, with the engines in use.
    Decisions,
    /// Leases.
    Leases,
    /// Queues.
    Queues,
    /// Strategies that nodes count on their own.
    Approximate,
    /// Usage shared between nodes.
    Usage,
    /// Live control, and bans.
    Control,
}

impl Capability {
    /// The required ones: a node that lacks one fails its probe.
    pub(super) const NEEDED: [Self; 4] = [Self::Decisions, Self::Leases, Self::Queues, Self::Approximate];

    /// True if it is in use.
    pub(super) fn is_in(self, used: EngineSet) -> bool {
        match self {
            Self::Decisions => EngineKind::ALL.into_iter().any(|engine| used.has(engine)),
            Self::Leases => used.has_leases(),
            Self::Queues => used.has_queues(),
            Self::Approximate => used.has_approximate(),
            Self::Usage => used.has_usage(),
            Self::Control => used.has_control(),
        }
    }

    /// Returns the prefix of reasons that concern it.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Decisions => "",
            Self::Leases => super::probe_leases::FOR_LEASES,
            Self::Queues => "for queues: ",
            Self::Approximate => "for approximate strategies: ",
            Self::Usage => "for usage: ",
            Self::Control => "for live control: ",
        }
    }

    fn rights(self, used: EngineSet) -> impl Iterator<Item = &'static Right> {
        let (own, too): (_, &[Right]) = match self {
            Self::Decisions => {
                let logs = if used.has(EngineKind::Log) { OF_LOGS } else { &[] };
                (OF_DECISIONS, logs)
            }
            Self::Leases => (OF_LEASES, &[]),
            Self::Queues => (OF_QUEUES, OF_QUEUES_TOO),
            Self::Approximate => (OF_APPROXIMATE, &[]),
            Self::Usage => (OF_USAGE, &[]),
            Self::Control => (OF_CONTROL, &[]),
        };
        let groups = if self == Self::Queues && used.has_queue_groups() { OF_QUEUE_GROUPS } else { &[] };
        let sparse = if self == Self::Decisions && used.has(EngineKind::Sparse) { OF_SPARSE } else { &[] };
        OF_ALL.iter().chain(own).chain(too).chain(sparse).chain(groups)
    }
}

/// Returns a reason that lists all missing rights of this capability, or `None`. An error is one of the call itself.
pub(super) async fn missing(
    connection: &mut Connection,
    capability: Capability,
    used: EngineSet,
    key: &[u8],
) -> Result<Option<String>, RedisError> {
    let rights: Vec<&Right> = capability.rights(used).collect();
    // EVAL instead of EVALSHA, which the charge uses: EVAL is a right, too.
    let mut command = redis::cmd("EVAL");
    command.arg(RIGHTS).arg(1).arg(key);
    for (_, tried) in &rights {
        command.arg(*tried);
    }
    let Value::Array(numbers) = connection.send(&command).await? else { return Ok(None) };
    let named = numbers.iter().filter_map(|number| match number {
        Value::Int(number) => rights.get(usize::try_from(*number).ok()?.checked_sub(1)?),
        _ => None,
    });
    let named: Vec<String> = named.map(|(name, _)| format!("+{name}")).collect();
    Ok((!named.is_empty()).then(|| format!("{}{WITHOUT}{}", capability.prefix(), named.join(" "))))
}

/// The text before the missing rights in a reason.
pub(super) const WITHOUT: &str = "NOPERM this user has no right to ";

/// Returns all rights of decisions except keys, in the syntax of `ACL SETUSER`.
pub(super) fn of_decisions() -> String {
    let all = [OF_ALL, OF_DECISIONS, OF_LOGS, OF_SPARSE].concat();
    list(std::iter::once("evalsha").chain(["eval"]).chain(all.iter().map(|(name, _)| *name)))
}

/// Returns the additional rights of leases.
pub(super) fn of_leases() -> String {
    list(OF_LEASES.iter().map(|(name, _)| *name))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Compares with the lists of the documentation, in any order.
    #[test]
    fn the_documentation_lists_the_same() {
        // At run time: the image is built without docs/.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md");
        let document = &*std::fs::read_to_string(path).unwrap();
        let lists: Vec<BTreeSet<&str>> = document
            .split('`')
            .filter(|text| text.contains(" +"))
            .map(|text| text.split(' ').collect())
            .collect();
        let names = |rights: &[Right]| list(rights.iter().map(|(name, _)| *name));
        for (expected, keys) in [
            (of_decisions(), "~weir:*"),
            (of_leases(), ""),
            (names(OF_QUEUES), ""),
            (names(OF_APPROXIMATE), ""),
            (names(OF_USAGE), ""),
            (names(OF_CONTROL), ""),
        ] {
            let wanted: BTreeSet<&str> =
                expected.split(' ').chain((!keys.is_empty()).then_some(keys)).collect();
            assert!(lists.contains(&wanted), "{expected}");
        }
    }
}
