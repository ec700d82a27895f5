//! Parameters of a run.

use std::path::PathBuf;
use std::time::Duration;

use socket2::SockAddr;

use crate::access::ServerAccess;

/// A run, from its first call to its last.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Address of the server.
    pub address: SockAddr,
    /// The server as requests name it: `HOST:PORT`.
    pub authority: String,
    /// TLS and a token.
    pub access: ServerAccess,
    /// The protocol.
    pub protocol: CallProtocol,
    /// The called method.
    pub mode: CallMode,
    /// The question.
    pub ask: PlannedQuestion,
    /// Connections, distributed evenly among the threads.
    pub connections: usize,
    /// Pending calls over all connections; of a stream, messages.
    pub in_flight: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// Pacing of calls.
    pub pace: Pace,
    /// Length of the warm-up, which is not counted.
    pub warm_up: Duration,
    /// End of the counted part.
    pub end: PlanEnd,
    /// Timeout of a call.
    pub timeout: Duration,
    /// Seed of the random keys.
    pub seed: u64,
    /// File for every decision, one per line; not for batches.
    pub record: Option<PathBuf>,
    /// Processes on this machine whose CPU time is reported per decision, the server's first.
    pub pids: Vec<u32>,
}

/// The protocol of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallProtocol {
    /// gRPC, on HTTP/2.
    Grpc,
    /// JSON on HTTP/1.1, as the HTTP listener serves it: one call after another on each connection.
    Http,
}

impl CallProtocol {
    /// Name in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Http => "http",
        }
    }
}

/// The called method.
#[derive(Debug, Clone, Copy)]
pub enum CallMode {
    /// `ShouldAllow`, one decision a call.
    Unary,
    /// `ShouldAllowBatch`, with this number of decisions in a call.
    Batch(usize),
    /// `ShouldAllowStream`, a stream on each connection, with this number of decisions in a message.
    Stream(usize),
    /// Envoy's `ShouldRateLimit`, one descriptor a call.
    Envoy,
    /// A method of another service, to compare with; one decision a call.
    Other(UnaryMethod),
    /// A GET by HTTP, to compare with. Its message are the lines of its headers, and 200 allows.
    OtherGet(UnaryMethod),
}

/// A unary method whose answer has 1 in its first field if the call is allowed; by HTTP, `true` in its field `allowed`.
#[derive(Debug, Clone, Copy)]
pub struct UnaryMethod {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// The encoded message for a key number.
    pub message: fn(&str) -> Vec<u8>,
}

impl CallMode {
    /// Decisions in a call; of a stream, in a message.
    #[must_use]
    pub const fn decisions(self) -> usize {
        match self {
            Self::Batch(size) | Self::Stream(size) => size,
            Self::Unary | Self::Envoy | Self::Other(_) | Self::OtherGet(_) => 1,
        }
    }

    pub(super) const fn is_stream(self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::Batch(_) => "batch",
            Self::Stream(_) => "stream",
            Self::Envoy => "envoy",
            Self::Other(method) | Self::OtherGet(method) => method.path,
        }
    }
}

/// The question of every call. In each of its texts, `{key}` stands for the number of the call's key.
#[derive(Debug, Clone)]
pub struct PlannedQuestion {
    /// The resources. Keys use them in turn.
    pub resources: Vec<String>,
    /// The consumer.
    pub consumer: String,
    /// A configured strategy, or nothing.
    pub strategy: String,
    /// Attributes by name.
    pub attributes: Vec<(String, String)>,
    /// Cost of a call.
    pub cost: u64,
    /// Envoy's domain.
    pub domain: String,
    /// The entries of Envoy's descriptor.
    pub descriptor: Vec<(String, String)>,
    /// Number of keys.
    pub keys: u64,
    /// Distribution of the keys.
    pub spread: Spread,
}

/// Distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Uniform.
    Uniform,
    /// Zipf: the k-th key has a weight of k to the power of minus this.
    Zipf(f64),
}

/// Pacing of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Closed loop: a constant number in flight, each call waits for an earlier answer.
    Closed,
    /// Open loop: this number of calls per second, whatever the server does. Latency counts from the scheduled time, so
    /// a
    /// stall of the server shows in the latency of all calls that wait.
    Open(f64),
}

/// End of the counted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanEnd {
    /// The run ends after this time.
    After(Duration),
    /// The run ends after this number of calls.
    Calls(u64),
}
