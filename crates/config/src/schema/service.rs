//! The keys of the file, of `server`, `store` and `messages`.

use weir_core::key::MAX_SHARDS;
use weir_core::queue::{MAX_CAPACITY, MAX_DELIVERIES, MAX_PAYLOAD, MAX_QUEUE_BYTES};

use super::super::fields::MAX_PATH;
use super::super::limits::{
    BUFFERED_BYTES, HEADER_BYTES, MAX_CONNECTIONS, MAX_OPEN_STREAMS, MAX_STREAMS, MESSAGE_BYTES,
};
use super::super::log::{FILE_BYTES, MAX_FILES};
use super::super::nodes::MAX_NODES;
use super::super::redis::{MAX_NAME, MAX_WAITING};
use super::super::server::{MAX_MESSAGE, MAX_WORKERS};
use super::super::store::{MIN_BUDGET, MIN_SHARE};
use super::super::usage::MAX_SAMPLE;
use super::super::values::MAX_SECRET;
use super::kinds::ValueKind::{
    self, Boolean, Choice, Count, Defined, Duration, Mapping, Part, Pattern, Rate, Set, Size, Text,
};
use super::kinds::{Key, may, must};

const ADDRESS: ValueKind = Pattern("^\\S+:[0-9]+$");
const LISTEN: ValueKind = Pattern("^(unix:([^/]|/[^/]|///[^/])(.*[^/])?|\\S+:[0-9]+)$");
const NODE: ValueKind = Pattern("^rediss?://([^/?#@]*:[^/?#@]*@)?[^/?#@\\s]+/?$");
const FILE: ValueKind = Text(1, MAX_PATH);
const PASSWORD: ValueKind = Text(1, MAX_SECRET);

pub(super) const ROOT: &[Key] = &[
    may("server", Mapping(SERVER), "Sockets, workers and bounds."),
    may("store", Defined("store"), "Where state lives: memory (the default) or redis."),
    may("strategies", Defined("strategies"), "Named lists of limits that decide together."),
    may("resources", Defined("resources"), "Which strategy a resource has when the caller names none."),
    may("groups", Defined("groups"), "Which routing groups must lie on different shards of a cluster."),
    may("overrides", Defined("overrides"), "Other numbers for some consumers; a pattern makes a tier."),
    may("access", Defined("access"), "Who is denied or let through, whatever the strategy."),
    may("queues", Defined("queues"), "Bounded queues: work that waits for workers."),
    may("messages", Mapping(MESSAGES), "The sentences for people on denial."),
    may("envoy", Mapping(ENVOY), "Envoy's rate limit service."),
    may("log", Mapping(LOG), "Logs of decisions, beside the log on stderr."),
    may("usage", Mapping(USAGE), "What is kept of decisions, and who may see it."),
];

const USAGE: &[Key] = &[
    may("service", Boolean, "Whether weir.v1.UsageService is served to all clients of `listen`.").or("true"),
    may("node", Pattern("^[A-Za-z0-9._-]{1,64}$"), "What this node is called; left out, as its host is."),
    may("shared", Boolean, "Whether nodes on one Redis show one another what they have counted.").or("true"),
    may(
        "sample",
        Count(0, MAX_SAMPLE as u64),
        "Of how many calls one is looked at, to find the consumers that call most; 0 turns it off.",
    )
    .or("16"),
    may("timeseries", Boolean, "Whether what each second counted is written to RedisTimeSeries.").or("false"),
];

const LOG: &[Key] = &[may("decisions", Mapping(DECISION_LOG), "JSON lines of decisions.")];

const DECISION_LOG: &[Key] = &[
    may("keys", Part, "Which part of all keys (resource and consumer) is logged.").or("0"),
    may("file", FILE, "Where to; left out, to standard output."),
    may("denied", Boolean, "Whether all denials are logged to a log of their own.").or("false"),
    may("denied_file", FILE, "Where to; left out, beside `file`, or to standard output."),
    may("max_bytes", Size(FILE_BYTES.0, FILE_BYTES.1), "When a file is followed by the next; 1MiB to 1TiB.")
        .or("100MiB"),
    may("max_files", Count(1, MAX_FILES as u64), "How many files of a log there are.").or("5"),
];

const ENVOY: &[Key] = &[
    may("config", FILE, "The directory of Envoy's rate limit files; with it `strategies` may be left out."),
    may("merge_domains", Boolean, "Whether several files may have one domain in common.").or("false"),
    may("overrides_in_request", Boolean, "Whether a request may bring its own limit.").or("true"),
    may("headers", Boolean, "Whether answers have RateLimit-Limit, -Remaining and -Reset.").or("false"),
    may(
        "dynamic_metadata",
        Boolean,
        "Whether answers have dynamic metadata for Envoy's other filters: the request and its limits.",
    )
    .or("false"),
    may("near_limit_ratio", Part, "From which part of a limit on metrics call hits near.").or("0.8"),
    may("shadow_mode", Boolean, "Whether nothing is denied; statuses still say what would have been.")
        .or("false"),
    may("quota_mode", Boolean, "Whether every descriptor is over only together with all others.").or("false"),
];

const SERVER: &[Key] = &[
    may("listen", LISTEN, "IP:PORT or unix:PATH where gRPC listens.").or("127.0.0.1:8081"),
    may("listen_mode", Pattern("^0?[0-7]{3}$"), "The mode of the file of a Unix socket, in quotes.")
        .or("0660"),
    may("admin", ADDRESS, "IP:PORT where /metrics, /livez, /readyz and /ui listen.").or("127.0.0.1:8080"),
    may(
        "transport",
        Choice(&["fast", "tonic"]),
        "What serves HTTP/2: weir's own transport, or tonic's server.",
    )
    .or("fast"),
    may("workers", Count(0, MAX_WORKERS as u64), "Threads that serve connections; 0 is one per core.")
        .or("0"),
    may("reflection", Boolean, "Whether server reflection is offered.").or("true"),
    may("admin_service", Boolean, "Whether weir.v1.AdminService is served to all clients of `listen`.")
        .or("false"),
    may("inline_limits", Boolean, "Whether requests may bring limits with their numbers along.").or("false"),
    may("ready_needs_store", Boolean, "Whether a node whose store is away says that it is not ready.")
        .or("false"),
    may(
        "drain_delay",
        Duration,
        "How long calls are served after SIGTERM, while the server says that it is not ready; at most 10m.",
    )
    .or("5s"),
    may("drain_timeout", Duration, "What calls in flight get to finish after that; at most 10m.").or("10s"),
    may("limits", Mapping(LIMITS), "What callers can make the server hold or do."),
];

const LIMITS: &[Key] = &[
    may(
        "max_connections",
        Count(1, MAX_CONNECTIONS as u64),
        "Open connections; further ones are closed at once.",
    )
    .or("10000"),
    may("max_streams", Count(1, MAX_STREAMS as u64), "Calls in flight on one connection.").or("1024"),
    may(
        "max_side_streams",
        Count(1, MAX_STREAMS as u64),
        "Open calls of streaming methods other than ShouldAllowStream, on one connection.",
    )
    .or("64"),
    may(
        "max_open_streams",
        Count(1, MAX_OPEN_STREAMS as u64),
        "Open calls of all streaming methods, of all connections.",
    )
    .or("32768"),
    may("max_header_bytes", Size(HEADER_BYTES.0, HEADER_BYTES.1), "Headers of one call; 1KiB to 1MiB.")
        .or("16KiB"),
    may("max_message_bytes", Size(MESSAGE_BYTES.0, MESSAGE_BYTES.1), "One message; 32KiB to 4MiB.")
        .or("64KiB"),
    may(
        "max_pending_resets",
        Count(1, MAX_STREAMS as u64),
        "Calls that a client has cancelled before the server looked at them; then its connection ends.",
    )
    .or("1024"),
    may(
        "max_local_resets",
        Count(1, MAX_STREAMS as u64),
        "Calls that the server has reset for faults of the client; then its connection ends.",
    )
    .or("1024"),
    may(
        "max_buffered_bytes",
        Size(BUFFERED_BYTES.0, BUFFERED_BYTES.1),
        "What all connections together may hold; at least twice the largest message.",
    )
    .or("64MiB"),
    may("handshake_timeout", Duration, "How long a new connection may take to speak HTTP/2; 100ms to 1h.")
        .or("10s"),
    may(
        "first_message_timeout",
        Duration,
        "How long the first message of a call may take to begin; 100ms to 1h.",
    )
    .or("10s"),
    may("keepalive_interval", Duration, "Between two questions whether a peer is there; 100ms to 1h.")
        .or("20s"),
    may("keepalive_timeout", Duration, "How long it may take to answer that; 100ms to 1h.").or("10s"),
    may("max_connection_age", Duration, "How old a connection may become; 1s to 7d, default no bound."),
    may(
        "max_connection_age_grace",
        Duration,
        "How long the calls of a connection may take to finish after that; 0s to 1h.",
    )
    .or("10s"),
];

pub(super) const QUEUE: &[Key] = &[
    must("capacity", Count(1, MAX_CAPACITY), "How many items hold a place."),
    may("max_bytes", Size(MAX_PAYLOAD, MAX_QUEUE_BYTES as usize), "Bytes of their payloads; 64KiB to 1TiB.")
        .or("64MiB"),
    may("rate", Rate, "How fast items leave; left out, as fast as they are taken."),
    may("kind", Choice(&["stream", "list"]), "At least once, with acks; or at most once, without.")
        .or("stream"),
    may(
        "visibility",
        Duration,
        "How long a worker has until its item is delivered again, and how long ids are known; 1ms to 24h.",
    )
    .or("30s"),
    may("max_deliveries", Count(1, MAX_DELIVERIES), "After so many an item goes to the dead letters.")
        .or("5"),
    may(
        "dead_letter",
        Boolean,
        "Whether there are dead letters; if not, items are delivered until they are acked.",
    )
    .or("true"),
    may("outcomes", Duration, "How long the outcomes of acked items are kept; 0s to 30d.").or("24h"),
];

pub(super) const STORE: &[Key] = &[
    may("key_secret", Text(1, MAX_SECRET), "The secret of the keys in Redis, the same on all nodes."),
    may("namespace", Defined("namespace"), "The first part of every key in Redis.").or("weir"),
    may("memory", Mapping(MEMORY), "State in this process."),
    may("redis", Defined("redis"), "State on Redis or Valkey."),
];

const MEMORY: &[Key] = &[
    may("budget", Size(MIN_BUDGET, usize::MAX), "Bytes that keys may use; at least 1MiB.").or("512MiB"),
    may("when_full", Choice(&["evict", "refuse"]), "What a new key gets when the budget is used up.")
        .or("evict"),
    may(
        "share",
        Size(MIN_SHARE, usize::MAX),
        "Bytes that a strategy may hold when the budget is nearly used up; default the budget divided by the number \
         of strategies, and at least a tenth.",
    ),
];

pub(super) const REDIS: &[Key] = &[
    must(
        "nodes",
        Set(&NODE, 1, MAX_NODES),
        "redis://HOST:PORT, or rediss: for TLS: the server, some of the cluster, or the sentinels.",
    ),
    may("topology", Choice(&["single", "cluster", "sentinel"]), "What the nodes are.").or("single"),
    may("shards", Count(1, MAX_SHARDS as u64), "How many masters the cluster has; only for `groups`."),
    may("deadline", Duration, "How long one decision may wait for Redis; 1ms to 60s.").or("50ms"),
    may("connect_timeout", Duration, "How long connecting may take; 1ms to 60s.").or("200ms"),
    may("max_waiting", Count(1, MAX_WAITING as u64), "Decisions that may wait for one node, per worker.")
        .or("4096"),
    may("coalesce", Boolean, "Whether decisions on the same keys are asked together while one is under way.")
        .or("true"),
    may(
        "denials_max_age",
        Duration,
        "How long a denial is answered without asking Redis again, at most; 0s to 60s.",
    )
    .or("1s"),
    may("username", PASSWORD, "The user at Redis; left out, its default user."),
    may("password", PASSWORD, "Its password. A variable or a file keeps it out of here."),
    may("password_file", FILE, "A file with the password, read whenever a connection is opened."),
    may("tls", Mapping(TLS), "Certificates for rediss://."),
    may("master_name", Text(1, MAX_NAME), "What sentinels call the master; only with them."),
    may("sentinel_username", PASSWORD, "The user at the sentinels, if they want one."),
    may("sentinel_password", PASSWORD, "Its password."),
    may("sentinel_password_file", FILE, "A file with that password."),
];

const TLS: &[Key] = &[
    may("ca_file", FILE, "PEM of who is trusted; left out, the authorities of the system."),
    may("cert_file", FILE, "PEM of Weir's own certificate, if Redis asks for one."),
    may("key_file", FILE, "PEM of its private key."),
];

const MESSAGES: &[Key] = &[
    may(
        "limited",
        Text(0, MAX_MESSAGE),
        "When waiting helps. {wait} {seconds} {cost} {limit} stand for numbers.",
    )
    .or("Rate limit exceeded. Try again in {wait}"),
    may(
        "unknown",
        Text(0, MAX_MESSAGE),
        "When a lease is refused until others end. {cost} {limit} stand for numbers.",
    )
    .or("All {limit} permits are in use. Try again when one is free"),
    may("never", Text(0, MAX_MESSAGE), "When the cost is above a limit. {cost} {limit} stand for numbers.")
        .or("Rate limit exceeded. A cost of {cost} is above the limit of {limit} and can never pass"),
];
