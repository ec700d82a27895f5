//! Clients for servers: a load generator, which makes calls over many connections and measures the answers, and a
//! [`client`] for single questions. `weir load` and `weir allow` use them.
//!
//! Depends on the wire format only, not on how a server decides.
//!
//! The load generator must cost far less than the server it measures, so it has its own minimal HTTP/2 client:
//! requests are stamped from prepared bytes, and answers are read in place. One thread drives all connections of its
//! share; running threads share nothing but a few counters for progress.
//!
//! * [`Plan`]: parameters of a run. [`run`]: executes it. [`LoadReport`]: its results.
//! * `spread`, `stamp`: the keys of calls, and their bytes. `schedule`: the times of calls.
//! * `request`, `response`, `connection`: HTTP/2, without a socket. `http`: HTTP/1.1 with JSON. `protocol`: the
//!   interface of both. `link`, `socket`: with a socket, in plain text or TLS.
//! * [`ServerAccess`]: TLS and a token.
//! * `worker`: the loop of one thread. `tally`: its counts. `cpu`: CPU time of processes.

mod access;
mod answer;
pub mod client;
mod connection;
mod cpu;
mod fields;
mod http;
mod link;
mod outcome;
mod plan;
mod protocol;
mod report;
mod request;
mod response;
mod run;
mod run_watch;
mod schedule;
mod service;
mod socket;
mod spread;
mod stamp;
mod tally;
mod worker;

pub use self::access::{AccessError, ClientTls, ServerAccess, Token};
pub use self::plan::{CallMode, CallProtocol, Pace, Plan, PlanEnd, PlannedQuestion, Spread, UnaryMethod};
pub use self::report::{Cpu, Latency, LoadReport, OpenLoop, ServerCpu};
pub use self::run::run;
pub use self::run_watch::{RunProgress, RunWatch};
pub use self::tally::Counts;

/// Reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The connection was refused or timed out.
    #[error("no server can be reached at {server}: {reason}")]
    Unreachable {
        /// Address of the server.
        server: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The server speaks another protocol.
    #[error("{server} does not answer as expected: {reason}")]
    Foreign {
        /// Address of the server.
        server: String,
        /// The data or protocol received instead.
        reason: String,
    },
    /// The first answers were errors that every further call would get too.
    #[error("{server} refuses the calls: {code}: {message}")]
    Refused {
        /// Address of the server.
        server: String,
        /// The name of the gRPC status code, or `HTTP` and its status.
        code: String,
        /// The server's message.
        message: String,
    },
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}
