//! Remedies for refusals, for operators.

use std::borrow::Cow;

use weir_config::{RedisConfig, Topology};

use super::rights::{self, WITHOUT, specs};
use crate::scripts::Uses;

/// Problem where nothing can ever be counted.
pub(super) const RUNS_NO_SCRIPTS: &str =
    "this Redis runs no scripts for Weir, so it counts nothing; on_store_failure answers every call";

pub(super) const ONE_SECRET: &str = "set the same `store.key_secret` on all nodes";

pub(super) const ONE_FILE: &str = "give all nodes of one namespace the same strategies";

pub(super) const NO_EVICTION: &str =
    "set `maxmemory-policy noeviction`, and a `maxmemory` that is enough, or give Weir a Redis of its own";

/// Failure of a connection that ends when a script is called.
pub(super) const ENDS_AT_SCRIPTS: &str = "it answers, but ends the connection at a script";

const NO_SCRIPTS: &str = "this server runs no scripts: is it a sentinel, or a proxy that forbids them? Weir counts by Lua \
                          scripts (EVAL, EVALSHA): name Redis itself in `store.redis.nodes`";

/// Known refusals: a substring, the topology it applies to (`None` is any), and the remedy. The first match wins.
const KNOWN: [(&str, Option<Topology>, &str); 31] = [
    (
        "out of range",
        None,
        "set `store.redis.database` to one that this Redis has: `databases` of its configuration is their number",
    ),
    (
        "is printed by a command",
        None,
        "run `store.redis.password_command` as Weir's user and with an empty environment (env -i) to see why",
    ),
    (ENDS_AT_SCRIPTS, None, NO_SCRIPTS),
    ("unsupported command", None, NO_SCRIPTS),
    (
        "OOM",
        None,
        "Redis has reached `maxmemory` and evicts nothing: raise it, or find what else fills this Redis",
    ),
    (
        "NOREPLICAS",
        None,
        "fewer replicas are connected than `min-replicas-to-write` wants: bring them back, or lower it",
    ),
    (
        "READONLY",
        Some(Topology::Single),
        "this server is a replica: name its master in `store.redis.nodes`, or say `topology: sentinel` or `cluster`",
    ),
    ("READONLY", None, "this server was a master and is a replica now: wait for the failover to end"),
    (
        "MISCONF",
        None,
        "Redis cannot save its data and therefore refuses writes: look into its log, and make room on its disk",
    ),
    ("LOADING", None, "Redis reads its data from disk; wait until it is ready"),
    (
        "MASTERDOWN",
        None,
        "this server is a replica that has lost its master: name the master, or bring it back",
    ),
    (
        "CLUSTERDOWN",
        None,
        "slots of the cluster have no node: look at CLUSTER INFO, and bring the lost master or a replica back",
    ),
    ("BUSY", None, "a script of somebody else occupies Redis: find it, and end it by SCRIPT KILL"),
    ("MOVED", None, "this server is a node of a cluster: set `store.redis.topology: cluster`"),
    ("CROSSSLOT", None, "this server is a node of a cluster: set `store.redis.topology: cluster`"),
    (
        "cluster support disabled",
        None,
        "this server is no node of a cluster: set `store.redis.topology: single`",
    ),
    (
        "it has no slots",
        None,
        "give the cluster its slots (redis-cli --cluster create), or set `store.redis.topology: single`",
    ),
    ("knows no master", None, "set `store.redis.master_name` to a name that SENTINEL MASTERS shows"),
    (
        "unknown command",
        Some(Topology::Sentinel),
        "with `topology: sentinel`, `store.redis.nodes` are the addresses of the sentinels (usually with port 26379)",
    ),
    ("unknown command", None, NO_SCRIPTS),
    (
        "syntax error",
        None,
        "this server does not know SET with PXAT: it must be Redis 6.2 or later, or Valkey",
    ),
    ("NOAUTH", None, "set `store.redis.password_file` or WEIR_REDIS_PASSWORD"),
    ("WRONGPASS", None, "correct `store.redis.username` and the password, or this user's password on Redis"),
    ("login refused", None, "correct `store.redis.username` and the password, or add this user on Redis"),
    ("the password for it is in a file", None, "let Weir's process read this file"),
    ("does this port speak TLS?", None, "correct the port, or write redis:// in `store.redis.nodes`"),
    ("TLS handshake failed", None, "correct the certificates: `store.redis.tls`, or those of Redis"),
    ("_file: ", None, "correct the certificates of `store.redis.tls`"),
    (
        "holds something else than",
        None,
        "something else writes keys in Weir's namespace: give Weir a Redis or a `store.namespace` of its own",
    ),
    (
        "no answer within",
        None,
        "check the load of this Redis and the way to it; `store.redis.deadline` is the most that callers wait",
    ),
    (
        "as the master",
        None,
        "check that the master runs and can be reached from here, or wait for the failover to end",
    ),
];

const ANY: &str = "check that Redis runs there, can be reached from here, and lets this user in";

pub(super) fn remedy(reason: &str, config: &RedisConfig, uses: &Uses) -> Cow<'static, str> {
    if reason.contains("NOPERM") || reason.contains("The user executing the script") {
        return Cow::Owned(grant(reason, config, uses));
    }
    let fits = |(part, of, _): &&(&str, Option<Topology>, &str)| {
        reason.contains(part) && of.is_none_or(|topology| topology == config.topology)
    };
    Cow::Borrowed(KNOWN.iter().find(fits).map_or(ANY, |(_, _, what)| what))
}

/// True if this server, or this user, runs no scripts at all. Then nothing ever works.
pub(super) fn forbids_scripts(reason: &str) -> bool {
    let names_eval = || reason.to_ascii_lowercase().contains("'eval");
    reason.contains(ENDS_AT_SCRIPTS)
        || (["NOPERM", "unknown command", "unsupported command"].iter().any(|text| reason.contains(text))
            && names_eval())
}

/// Returns the rights to grant. Redis names the refused command (not always within a script), but never the key. What is in
/// use needs all of `uses`: where the missing rights cannot be told apart, all are named.
fn grant(reason: &str, config: &RedisConfig, uses: &Uses) -> String {
    let user = config.login.as_ref().and_then(|login| login.username.as_deref()).unwrap_or("default");
    let namespace = &config.namespace;
    if let Some((_, missing)) = reason.split_once(WITHOUT) {
        return format!("grant what is missing: ACL SETUSER {user} {missing}");
    }
    let all = || format!("ACL SETUSER {user} ~{namespace}:* {}", rights::needed(specs(uses)));
    match reason.split('\'').nth(1).filter(|name| !name.contains(' ')) {
        Some(command) if command.starts_with("eval") => format!(
            "Weir counts by Lua scripts, which this user may not run: INCRBY and EXPIRE are not enough. Grant what is \
             missing: {}",
            all()
        ),
        Some(command) => format!("grant the command: ACL SETUSER {user} +{command}"),
        None if reason.contains(" key") => format!("grant the keys, and what else is missing: {}", all()),
        None => format!("grant what is missing: {}", all()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_config::{Login, Secret};

    fn config(topology: Topology) -> RedisConfig {
        RedisConfig { topology, ..RedisConfig::default() }
    }

    #[track_caller]
    fn says(topology: Topology, reason: &str, expected: &str) {
        let said = remedy(reason, &config(topology), &Uses::default());
        assert!(said.contains(expected), "{reason}: {said}");
    }

    #[test]
    fn each_refusal_has_its_own() {
        use Topology::{Cluster, Sentinel, Single};
        for (topology, reason, expected) in [
            (Single, "OOM command not allowed when used memory > 'maxmemory'.", "raise it"),
            (Single, "NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            (Single, "READONLY You can't write against a read only replica.", "name its master"),
            (Sentinel, "READONLY You can't write against a read only replica.", "failover"),
            (Single, "LOADING Redis is loading the dataset in memory", "wait"),
            (Cluster, "CLUSTERDOWN The cluster is down", "CLUSTER INFO"),
            (Single, "ERR syntax error", "6.2"),
            (Single, "MOVED 3999 127.0.0.1:6381", "topology: cluster"),
            (Single, "CROSSSLOT Keys in request don't hash to the same slot", "topology: cluster"),
            (Cluster, "ERR This instance has cluster support disabled", "topology: single"),
            (Cluster, "it has no slots: is it part of a cluster?", "redis-cli --cluster create"),
            (Sentinel, "the sentinel knows no master \"zoo\"", "master_name"),
            (Sentinel, "ERR unknown command 'SENTINEL', with args beginning with:", "26379"),
            (Single, "ERR unknown command 'EVALSHA', with args beginning with:", "sentinel"),
            (Single, "ERR unsupported command 'EVAL'", "a proxy that forbids them"),
            (
                Single,
                "it answers, but ends the connection at a script: broken pipe",
                "a proxy that forbids them",
            ),
            (Single, "database 99 cannot be selected: ERR DB index is out of range", "store.redis.database"),
            (Single, "the password for it is printed by a command: it printed nothing", "env -i"),
            (Single, "Connection refused (os error 111)", "can be reached from here"),
            (Single, "no answer within 50ms", "deadline"),
        ] {
            says(topology, reason, expected);
        }
    }

    #[test]
    fn what_forbids_all_scripts() {
        for (reason, expected) in [
            ("NOPERM User weir has no permissions to run the 'eval' command", true),
            ("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", true),
            ("ERR unknown command 'EVALSHA', with args beginning with:", true),
            ("ERR unsupported command 'eval'", true),
            ("it answers, but ends the connection at a script: broken pipe", true),
            ("NOPERM User weir has no permissions to run the 'set' command", false),
            ("ERR unknown command 'SENTINEL', with args beginning with:", false),
            ("NOPERM this user has no right to +get", false),
        ] {
            assert_eq!(forbids_scripts(reason), expected, "{reason}");
        }
    }

    #[test]
    fn a_missing_right_is_named() {
        let login = Some(Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") });
        let config = RedisConfig { login, ..config(Topology::Single) };
        for (reason, expected) in [
            (
                "NOPERM User weir has no permissions to run the 'evalsha' command",
                "ACL SETUSER weir ~weir:* +evalsha +eval",
            ),
            (
                "NOPERM this user has no permissions to run the 'set' command or its subcommand",
                "ACL SETUSER weir +set",
            ),
            ("NOPERM ACL failure in script: No permissions to access a key", "ACL SETUSER weir ~weir:*"),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                "ACL SETUSER weir ~weir:*",
            ),
            (
                "NOPERM ACL failure in script: User weir has no permissions to run the 'set' command",
                "ACL SETUSER weir +set",
            ),
            (
                "ERR The user executing the script can't run this command or subcommand",
                "ACL SETUSER weir ~weir:* +evalsha +eval +del +time +pexpireat +get",
            ),
            ("NOPERM this user has no right to +zadd +xgroup|create", "weir +zadd +xgroup|create"),
        ] {
            let said = remedy(reason, &config, &Uses::default().or_window());
            assert!(said.contains(expected), "{reason}: {said}");
        }
    }
}
