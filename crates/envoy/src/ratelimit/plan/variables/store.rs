//! The store.

use super::VariableKind::{Boolean, Duration, Hidden, Text, Url, Words};
use super::{COUNT, RatelimitVariable, ignored, mapped, unsupported};

const POOL: &str = "each worker has one connection to a node of Redis, and sends what is ready together";
const START: &str = "Weir starts without Redis, and connects when it is there";
const SECOND: &str = "all units are counted in the Redis of REDIS_URL";

pub(super) fn variables() -> Vec<RatelimitVariable> {
    let mut all = counting();
    all.extend(addresses());
    all.extend(connections());
    all.extend(per_second());
    all
}

fn counting() -> Vec<RatelimitVariable> {
    vec![
        mapped(
            "BACKEND_TYPE",
            "redis",
            Words(&["redis", "memcache"]),
            "Redis; `memcache` is an error, as Weir does not count in memcached",
        ),
        mapped(
            "CACHE_KEY_PREFIX",
            "",
            Text,
            "`store.namespace`, if it is one; otherwise `rl-` and 16 digits of its SHA-256",
        ),
        ignored("EXPIRATION_JITTER_MAX_SECONDS", "300", COUNT, "keys expire when their limit is full again"),
        ignored("LOCAL_CACHE_SIZE_IN_BYTES", "0", COUNT, "denials are cached in any case"),
        mapped("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false", Boolean, "`envoy.stop_when_over`"),
    ]
}

fn addresses() -> Vec<RatelimitVariable> {
    vec![
        mapped(
            "REDIS_SOCKET_TYPE",
            "unix",
            Words(&["tcp", "unix"]),
            "whether REDIS_URL is an address or a path",
        ),
        mapped("REDIS_TYPE", "SINGLE", Words(&["SINGLE", "CLUSTER", "SENTINEL"]), "`store.redis.topology`"),
        mapped(
            "REDIS_URL",
            "/var/run/nutcracker/ratelimit.sock",
            Url,
            "`store.redis.nodes`, `database` and the login in it",
        ),
        mapped("REDIS_AUTH", "", Hidden, "`store.redis.password`, or user and password with a colon"),
        mapped(
            "REDIS_AUTH_FILE",
            "",
            Text,
            "`store.redis.password_file`, which may begin with the user and a colon; read for each connection",
        ),
        unsupported(
            "REDIS_AWS_IAM_AUTH",
            "false",
            Boolean,
            "set `store.redis.password_command` in the file of WEIR_CONFIG",
        ),
        mapped(
            "REDIS_SENTINEL_AUTH",
            "",
            Hidden,
            "`store.redis.sentinel_password`, or user and password with a colon",
        ),
    ]
}

fn connections() -> Vec<RatelimitVariable> {
    vec![
        mapped("REDIS_TLS", "false", Boolean, "TLS to Redis, and to the sentinels"),
        mapped("REDIS_TLS_CLIENT_CERT", "", Text, "`store.redis.tls.cert_file`"),
        mapped("REDIS_TLS_CLIENT_KEY", "", Text, "`store.redis.tls.key_file`"),
        mapped(
            "REDIS_TLS_CACERT",
            "",
            Text,
            "`store.redis.tls.ca_file`, instead of the system's authorities",
        ),
        mapped(
            "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
            "false",
            Boolean,
            "`true` is `store.redis.tls.check_host_name: false`: the chain is still checked",
        ),
        mapped(
            "REDIS_TIMEOUT",
            "10s",
            Duration,
            "`store.redis.connect_timeout`, 1ms to 60s; never `deadline`",
        ),
        mapped(
            "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
            "false",
            Boolean,
            "`server.ready_needs_store`: `/healthcheck` fails while Redis is away. Until Redis has answered once it fails in any case",
        ),
        ignored("REDIS_POOL_SIZE", "10", COUNT, POOL),
        ignored("REDIS_PIPELINE_WINDOW", "0", Duration, POOL),
        ignored("REDIS_PIPELINE_LIMIT", "0", COUNT, POOL),
        ignored("REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", COUNT, POOL),
        ignored("REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", Text, POOL),
        ignored("REDIS_STARTUP_INITIAL_INTERVAL", "1s", Duration, START),
        ignored("REDIS_STARTUP_MAX_INTERVAL", "30s", Duration, START),
        ignored("REDIS_STARTUP_MAX_ELAPSED_TIME", "0", Duration, START),
        ignored(
            "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR",
            "false",
            Boolean,
            "Weir asks for the master again after READONLY",
        ),
    ]
}

fn per_second() -> Vec<RatelimitVariable> {
    let mut all = vec![unsupported("REDIS_PERSECOND", "false", Boolean, SECOND)];
    all.extend([
        ignored("REDIS_PERSECOND_SOCKET_TYPE", "unix", Text, SECOND),
        ignored("REDIS_PERSECOND_TYPE", "SINGLE", Text, SECOND),
        ignored("REDIS_PERSECOND_URL", "/var/run/nutcracker/ratelimitpersecond.sock", Url, SECOND),
        ignored("REDIS_PERSECOND_POOL_SIZE", "10", COUNT, SECOND),
        ignored("REDIS_PERSECOND_AUTH", "", Hidden, SECOND),
        ignored("REDIS_PERSECOND_AUTH_FILE", "", Text, SECOND),
        ignored("REDIS_PERSECOND_SENTINEL_AUTH", "", Hidden, SECOND),
        ignored("REDIS_PERSECOND_TLS", "false", Boolean, SECOND),
        ignored("REDIS_PERSECOND_PIPELINE_WINDOW", "0", Duration, SECOND),
        ignored("REDIS_PERSECOND_PIPELINE_LIMIT", "0", COUNT, SECOND),
        ignored("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", COUNT, SECOND),
        ignored("REDIS_PERSECOND_TIMEOUT", "10s", Duration, SECOND),
        ignored("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", Text, SECOND),
    ]);
    all
}
