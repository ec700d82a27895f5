//! The table's section `server`: sockets, workers, startup and shutdown.

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_units::Micros;

use super::super::TransportKind;
use super::super::alone::ServesAlone;
use super::super::identity::IdentityConfig;
use super::super::listen::ListenAddress;
use super::kinds::{Boolean, FilePath, Optional, Words};
use super::limits::ServerLimits;
use super::numbers::{Count, Span};
use super::texts::{Listen, Mode, SocketAddress};
use super::tls::{TlsConfig, tls};
use super::value_kind::ValueKind;
use super::{Applies, Setting, section};

/// Upper bound of workers. A number beyond any machine's cores is a typo.
const MAX_WORKERS: usize = 1024;

/// Upper bound of the drain delay, and of the drain timeout for calls in flight.
const MAX_DRAIN: Micros = Micros::from_secs(600);

/// Bounds of the time that is kept for an answer. The upper one is what is kept of long deadlines.
const LEAST_RESERVE: Micros = Micros(100);
const MOST_RESERVE: Micros = Micros::from_millis(25);

/// The operator's intent for a port without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Plaintext {
    /// Nothing: Weir warns if others than this machine reach it.
    #[default]
    Warned,
    /// Plaintext is intended: a mesh or a proxy in front of Weir has the TLS.
    Intended,
}

/// A path of the admin port that can be open to everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminPath {
    /// `/metrics`
    Metrics,
    /// `/ui/data`
    UiData,
}

fn identity() -> Setting {
    let about = "Sources of names of callers, beside client certificates.";
    Setting::other("identity", about, ValueKind::Defined("identity"))
}

fn admin_open() -> Setting {
    let about =
        "Paths of the admin port that need no credential where the server has identity: metrics, ui_data.";
    let about_more = "Needed where a scraper cannot send a token.";
    Setting {
        more: about_more,
        ..Setting::other("admin_open", about, ValueKind::List(&ValueKind::Choice(&["metrics", "ui_data"])))
    }
}

fn admin_hosts() -> Setting {
    let about =
        "Names under which the admin port answers, beside localhost and addresses: other names get 421.";
    let more = "`/livez` and `/readyz` answer under any name, and so does every path to a request with a valid token. The check stops web pages that rebind their own name to Weir's address. A Prometheus that scrapes by name needs its names here.";
    Setting { more, ..Setting::other("admin_hosts", about, ValueKind::List(&ValueKind::Text(1, 255))) }
}

fn limits() -> Setting {
    let about = "Bounds on what callers can make the server hold or do.";
    Setting::other("limits", about, ValueKind::Section(ServerLimits::rows))
}

section! {
    /// Sockets, workers and bounds of the server.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ServerConfig {
        before: [],

        /// The address for gRPC.
        pub listen: ListenAddress = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 8081))) => {
            kind: Listen,
            flag: "listen",
            more: "`[::1]:8081` for IPv6. Port 0 picks a free port, which Weir prints. See [Unix sockets](#unix-sockets).",
        }
        /// The file mode of a Unix socket.
        pub listen_mode: u32 = 0o660 => {
            kind: Mode,
            flag: "listen_mode",
            more: "Write it in quotes. It has no effect on a port.",
        }
        /// The address for `/metrics`, `/livez`, `/readyz` and `/ui`.
        pub admin: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)) => {
            kind: SocketAddress,
            flag: "admin",
            more: "It cannot be that of `listen`. Whoever reaches [`/ui`](usage.md#in-a-browser) sees names of consumers.",
        }
        /// HTTP/2 implementation: Weir's own transport, or tonic's server.
        pub transport: TransportKind = TransportKind::Fast => {
            kind: Words(&[("fast", TransportKind::Fast), ("tonic", TransportKind::Tonic)]),
            flag: "transport",
            more: "`tonic` is the reference: it gives the same answers, takes several times the CPU time per call and \
                   has fewer protections. `crates/grpc/README.md` has the table of differences.",
        }
        /// Threads that serve connections; 0 is one per core.
        pub workers: usize = 0 => {
            kind: Count(0, MAX_WORKERS),
            flag: "workers",
            more: "Each connection belongs to one thread.",
        }
        /// Lets tools such as grpcurl list the services (server reflection).
        pub reflection: bool = true => {
            kind: Boolean,
            flag: "reflection",
        }
        /// Serves `weir.v1.AdminService`, `LeaseAdminService` and `QueueAdminService` to all clients of `listen`.
        pub admin_service: bool = false => {
            kind: Boolean,
            flag: "admin_service",
            more: "If it is, everyone who reaches `listen` can reset limits, release leases and empty queues.",
        }
        /// Serves `weir.v1.ControlService` to all clients of `listen`.
        pub control: bool = false => {
            kind: Boolean,
            flag: "control",
            more: "Limits, lists and overrides then change while the service runs. If the server has no identity, everyone \
                   who reaches `listen` can change them. See [control.md](control.md).",
        }
        /// The address for `weir.v1.ControlService` and the services of `admin_service`, if they have one of their own.
        pub control_listen: Option<ListenAddress> = None => {
            kind: Optional(Listen, "none"),
            flag: "control_listen",
            more: "They are then nowhere else, and only Health is beside them.",
        }
        /// The file of calls that change something, and of refused calls.
        pub audit_file: PathBuf = PathBuf::from("-") => {
            kind: FilePath,
            flag: "audit_file",
            more: "`-` is standard output. A change by live control that cannot be written there is refused. At 16 MiB it is renamed to \
                   `FILE.1`, and that one to `FILE.2`, up to `.4`. See [the audit](control.md#the-audit).",
        }
        /// Ports without TLS: unintended, or intended because a mesh in front has it.
        pub plaintext: Plaintext = Plaintext::Warned => {
            kind: Words(&[("warned", Plaintext::Warned), ("intended", Plaintext::Intended)]),
            flag: "plaintext",
            more: "`warned` writes one line at start if `listen` or `admin` is not this machine's alone and has no TLS or no \
                   identity; tokens are then refused on such a port. `intended` silences it. See \
                   [security.md](security.md).",
        }
        /// Allows requests to carry limits with their numbers.
        pub inline_limits: bool = false => {
            kind: Boolean,
            flag: "inline_limits",
            applies: Applies::AtReload,
            more: "See [limits in the request](api.md#limits-in-the-request). If it is true, no strategy can be named \
                   `inline`.",
        }
        /// Makes a node not ready while no Redis node can decide.
        pub ready_needs_store: bool = false => {
            kind: Boolean,
            flag: "ready_needs_store",
            more: "If false, the node stays ready, `on_store_failure` answers, and `/readyz` says `degraded:`, \
                   [the reason and what to do](redis.md#problems-that-weir-reports).",
        }
        /// Makes a node not ready until Redis has answered once.
        pub ready_needs_first_answer: bool = false => {
            kind: Boolean,
            flag: "ready_needs_first_answer",
            more: "After that, only `ready_needs_store` counts. A roll-out with a wrong address or password then stops at its first \
                   node. `weir ratelimit` does so in any case. See [deploy.md](deploy.md#kubernetes).",
        }
        /// Time for which calls are still served after SIGTERM, while the node reports that it is not ready.
        pub drain_delay: Micros = Micros::from_secs(5) => {
            kind: Span(Micros::ZERO, MAX_DRAIN),
            flag: "drain_delay",
            more: "Set it longer than your load balancer takes to notice.",
        }
        /// Time for which calls in flight may finish after that.
        pub drain_timeout: Micros = Micros::from_secs(10) => {
            kind: Span(Micros::ZERO, MAX_DRAIN),
            flag: "drain_timeout",
        }
        /// The least time that is kept of a caller's deadline for the answer of `on_store_failure`.
        pub answer_reserve: Micros = Micros::from_millis(2) => {
            kind: Span(LEAST_RESERVE, MOST_RESERVE),
            flag: "answer_reserve",
            more: "Raise it where the machine or its cgroup runs nothing for milliseconds. See \
                   [callers' deadlines](configuration/redis.md#callers-deadlines).",
        }

        after: [
            tls("tls", "TLS of `listen`; without it, gRPC is plain text."),
            tls("control_tls", "TLS of `control_listen`, in the same form; without it, it is plain text."),
            tls("admin_tls", "TLS of `admin`, in the same form; without it, the admin port speaks plain HTTP."),
            identity(),
            admin_open(),
            admin_hosts(),
            limits(),
        ],
        others: {
            /// The bounds on one connection, and on all of them.
            pub limits: ServerLimits = ServerLimits::default(),
            /// TLS of gRPC.
            pub tls: Option<TlsConfig> = None,
            /// TLS of the port of operators.
            pub control_tls: Option<TlsConfig> = None,
            /// TLS of the admin port.
            pub admin_tls: Option<TlsConfig> = None,
            /// The source of the names of callers; `None` without the section.
            pub identity: Option<IdentityConfig> = None,
            /// Paths of the admin port that need no credential.
            pub admin_open: Vec<AdminPath> = Vec::new(),
            /// A feature that serves alone; then only its services and health are on `listen`.
            pub alone: Option<ServesAlone> = None,
            /// Names under which the admin port answers, beside `localhost` and addresses, in lower case.
            pub admin_hosts: Vec<String> = Vec::new(),
        }
    }
}
