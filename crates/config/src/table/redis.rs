//! The table's sections `store.redis` and `store.redis.tls`: addresses, credentials, timeouts, TLS.

use weir_core::key::{MAX_SHARDS, Namespace, Placements};
use weir_units::Micros;

use super::super::address::MAX_DATABASE;
use super::super::nodes::MAX_NODES;
use super::super::stores::{ClientFiles, Login, Sentinel, Topology};
use super::kinds::{Boolean, FilePath, Optional, Words};
use super::numbers::{ByteSizeFrom, Count, Span};
use super::texts::{Name, Password, Username};
use super::value_kind::ValueKind;
use super::{Entry, Outside, Setting, section};

/// Upper bound of the time that a decision may wait for others: one that asks Redis takes a tenth of it.
const LONGEST_GATHER: Micros = Micros::from_millis(1);

const SHORTEST_WAIT: Micros = Micros::from_millis(1);
const LONGEST_WAIT: Micros = Micros::from_secs(60);

/// Upper bound of decisions that wait for one node. Each holds memory, and a waiting caller.
const MAX_WAITING: usize = 1_000_000;

/// Lower bound of the budget of local decisions: a block for each shard, and some keys.
const MIN_LOCAL_BUDGET: usize = 1 << 20;

/// The number of a database. Redis has 16, unless its `databases` says otherwise.
const DATABASE: Count<u32> = Count(0, MAX_DATABASE);

/// Maximum number of words of a command.
pub(crate) const MAX_WORDS: usize = 64;

/// Maximum length of one of its words, in bytes.
pub(crate) const MAX_COMMAND_WORD: usize = 4096;

/// A word of a command.
const WORD: ValueKind = ValueKind::Text(1, MAX_COMMAND_WORD);

/// Maximum length of a master's name, in bytes.
const MAX_NAME: usize = 256;

section! {
    /// The connection to Redis.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RedisConfig {
        before: [nodes(), TOPOLOGY.row(), SHARDS.row()],

        /// The number of the database; a cluster has only 0.
        pub database: u32 = 0 => {
            kind: DATABASE,
            flag: "redis_database",
            more: "An address may name it, too: `redis://HOST:PORT/3`. Sentinels have no databases: it is that of the master.",
        }
        /// Deadline of one decision on Redis.
        // What a caller can be made to wait when Redis hangs.
        pub deadline: Micros = Micros::from_millis(50) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            flag: "deadline",
            more: "Then `on_store_failure` answers. A healthy Redis answers in a hundredth of the default.",
        }
        /// Timeout of connecting to Redis.
        pub connect_timeout: Micros = Micros::from_millis(200) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            flag: "connect_timeout",
        }
        /// Decisions that may wait for one node of Redis, per worker.
        pub max_waiting: usize = 4096 => {
            kind: Count(1, MAX_WAITING),
            flag: "max_waiting",
            more: "At this number `on_store_failure` answers one of them at once: the newest of the caller that has most of them in \
                   the queue. [redis.md](redis.md#fair-waiting) describes the queues.",
        }
        /// Time for which a decision may wait for others, so that they share a call of Redis.
        pub gather: Micros = Micros::ZERO => {
            kind: Span(Micros::ZERO, LONGEST_GATHER),
            more: "For few calls, where Redis has no core to spare. With `0s` each leaves at once. \
                   [redis.md](redis.md#gathering) says which decisions wait.",
        }
        /// Denial cache: how long a denial is answered without asking Redis again, at most.
        pub denials_max_age: Micros = Micros::from_secs(1) => {
            kind: Span(Micros::ZERO, LONGEST_WAIT),
            more: "Until a cost of 1 would pass, but at most for this time, the same call is denied. `0s` turns the \
                   cache off. [redis.md](redis.md#numbers-of-a-cached-denial) says how old its numbers may be.",
        }
        /// Coalescing: whether decisions on the same keys share one call while another is in flight.
        pub coalesce: bool = true => {
            kind: Boolean,
            more: "They wait for it, and share the next call in the order in which they arrived. Each gets its own \
                   answer. So each worker asks Redis for a key at most once per round trip. `max_waiting` bounds the \
                   decisions that wait. Coalescing does not change what is admitted.",
        }
        /// Bytes that a node may use for what it decides by itself, and as many for what it knows of Redis.
        pub local_budget: usize = 32 << 20 => {
            kind: ByteSizeFrom(MIN_LOCAL_BUDGET),
            flag: "local_budget",
            more: "Used only if a strategy says `on_store_failure: { local: … }`, see \
                   [deciding without Redis](configuration/strategies.md#deciding-without-redis).",
        }

        after: [
            USERNAME.row(),
            PASSWORD.row(),
            PASSWORD_FILE.row(),
            password_command(),
            Setting::other("tls", "Certificates for `rediss:`, and only for it.", ValueKind::Section(tls_rows)),
            MASTER_NAME.row(),
            SENTINEL_USERNAME.row(),
            SENTINEL_PASSWORD.row(),
            SENTINEL_PASSWORD_FILE.row(),
            sentinel_password_command(),
        ],
        others: {
            /// The first part of every key.
            pub namespace: Namespace = Namespace::DEFAULT,
            /// The places of routing groups that must lie apart.
            pub placements: Placements = Placements::default(),
            /// Addresses, `redis://host:port` (or `rediss:`, or `unix:/path`) each: the server, seeds of the cluster, or
            /// sentinels.
            pub nodes: Vec<String> = Vec::new(),
            /// The kind of these nodes.
            pub topology: Topology = Topology::Single,
            /// The login at Redis; `None` is its default user.
            pub login: Option<Login> = None,
            /// Certificates, if Redis is reached over TLS; then nothing is ever sent without.
            pub tls: Option<ClientFiles> = None,
            /// True if a certificate must be valid for the host of the address.
            pub check_host_name: bool = true,
            /// The settings for the sentinels, where `nodes` are sentinels.
            pub sentinel: Option<Sentinel> = None,
        }
    }
}

/// Returns the entry of the addresses. Their flag is that of the store.
fn nodes() -> Setting {
    const NODE: ValueKind =
        ValueKind::Pattern("^(rediss?://([^/?#@]*:[^/?#@]*@)?[^/?#@\\s]+(/[0-9]*)?|unix:(//)?/.*[^/])$");
    let about = "The server, some nodes of the cluster, or the sentinels: `redis://HOST:PORT`, `rediss:` for TLS, or `unix:/PATH`.";
    let more = "Weir asks nodes of a cluster for the others. Either all use TLS or none does. An address may contain a \
                user, a password and a database: `redis://USER:PASSWORD@HOST/3`. A Unix socket is for one server.";
    Setting {
        more,
        required: true,
        unset: "needed",
        ..Setting::other("nodes", about, ValueKind::Set(&NODE, 1, MAX_NODES))
    }
}

pub(crate) const TOPOLOGY: Entry<Words<Topology>> = Entry::new(
    "topology",
    Topology::Single,
    Words(&[("single", Topology::Single), ("cluster", Topology::Cluster), ("sentinel", Topology::Sentinel)]),
)
.about("Topology of the Redis nodes.")
.flag("topology");

pub(crate) const SHARDS: Entry<Optional<Count<u16>>> =
    Entry::new("shards", None, Optional(Count(1, MAX_SHARDS), "none"))
        .about("Number of masters of the cluster; only with `topology: cluster`.")
        .more("[`groups`](configuration/strategies.md#groups) needs it.");

pub(crate) const USERNAME: Entry<Optional<Username>> =
    Entry::new("username", None, Optional(Username, "its default user"))
        .about("The user at Redis.")
        .flag("redis_username");

pub(crate) const PASSWORD: Entry<Optional<Password>> =
    Entry::new("password", None, Optional(Password, "none"))
        .about("The password at Redis.")
        .outside(Outside::Variable("redis_password"))
        .more("Prefer its variable or a file.");

pub(crate) const PASSWORD_FILE: Entry<Optional<FilePath>> =
    Entry::new("password_file", None, Optional(FilePath, "none"))
        .about("A file with the password for Redis, read for each connection.")
        .flag("redis_password_file")
        .more(
            "So a new password needs no restart. A line break at its end is ignored. It cannot stand \
             beside `password`.",
        );

/// A command that prints a password. It is in the file only: who may set variables should not run commands.
fn password_command() -> Setting {
    let about = "A command that prints the password for Redis: a list of words.";
    let more = "For credentials that expire. The first word is an absolute path. It is run without a shell and with an empty \
                environment. After 5s its process group is killed. It prints at most 4096 bytes; a line break at the end is \
                ignored. The password is kept for 60s, or until Redis refuses it. It cannot stand beside `password` or \
                `password_file`.";
    Setting {
        more,
        unset: "none",
        ..Setting::other("password_command", about, ValueKind::Items(&WORD, 1, MAX_WORDS))
    }
}

fn sentinel_password_command() -> Setting {
    let about = "A command that prints the password for the sentinels, as `password_command`.";
    Setting {
        unset: "none",
        ..Setting::other("sentinel_password_command", about, ValueKind::Items(&WORD, 1, MAX_WORDS))
    }
}

pub(crate) const MASTER_NAME: Entry<Optional<Name>> =
    Entry::new("master_name", None, Optional(Name(MAX_NAME), "needed with sentinels"))
        .about("The name of the master at the sentinels.")
        .flag("redis_master_name");

pub(crate) const SENTINEL_USERNAME: Entry<Optional<Username>> =
    Entry::new("sentinel_username", None, Optional(Username, "their default user"))
        .about("The user at the sentinels, if they require one.")
        .flag("redis_sentinel_username");

pub(crate) const SENTINEL_PASSWORD: Entry<Optional<Password>> =
    Entry::new("sentinel_password", None, Optional(Password, "none"))
        .about("The password at the sentinels.")
        .outside(Outside::Variable("redis_sentinel_password"))
        .more("Prefer its variable or a file.");

pub(crate) const SENTINEL_PASSWORD_FILE: Entry<Optional<FilePath>> =
    Entry::new("sentinel_password_file", None, Optional(FilePath, "none"))
        .about("A file with the password for the sentinels, read for each connection.")
        .flag("redis_sentinel_password_file")
        .more("It cannot stand beside `sentinel_password`.");

pub(crate) const CA_FILE: Entry<Optional<FilePath>> =
    Entry::new("ca_file", None, Optional(FilePath, "the system's"))
        .about("The trusted certificate authorities for `rediss:`, in PEM.")
        .flag("redis_ca_file")
        .more("If it is set, only these are trusted.");

pub(crate) const CHECK_HOST_NAME: Entry<Boolean> = Entry::new("check_host_name", true, Boolean)
    .about("Requires a certificate that is valid for the host of the address.")
    .flag("redis_check_host_name")
    .more(
        "If not, whoever has any certificate of a trusted authority can pass for Redis. So set \
         `ca_file` to an authority of your own. The chain, its dates and the signature are checked in \
         any case.",
    );

pub(crate) const CERT_FILE: Entry<Optional<FilePath>> =
    Entry::new("cert_file", None, Optional(FilePath, "none"))
        .about("Weir's client certificate, in PEM, if Redis requires one; with `key_file`.")
        .flag("redis_cert_file");

pub(crate) const KEY_FILE: Entry<Optional<FilePath>> =
    Entry::new("key_file", None, Optional(FilePath, "none"))
        .about("The private key of that certificate, in PEM.")
        .flag("redis_key_file");

/// Returns the keys of `store.redis.tls`.
pub(crate) fn tls_rows() -> Vec<Setting> {
    vec![CA_FILE.row(), CHECK_HOST_NAME.row(), CERT_FILE.row(), KEY_FILE.row()]
}
