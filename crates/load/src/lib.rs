//! What calls a server: a load generator, which makes so many calls over so many connections and measures how
//! they are answered, and a [`client`] for one question. `weir load` and `weir allow` use them.
//!
//! It knows the wire, and nothing of how a server decides.
//!
//! The load generator must cost far less than what it measures, so it speaks as much HTTP/2 as a gRPC client needs by
//! itself: requests are stamped from prepared bytes, and answers are read where they lie. One thread
//! drives all connections of its share; nothing is shared between threads while they run but a few
//! counters for progress.
//!
//! * [`Plan`]: what to do. [`run`]: does it. [`LoadReport`]: what came of it.
//! * `spread`, `stamp`: which key a call is about, and its bytes. `schedule`: when it is due.
//! * `request`, `response`, `connection`: HTTP/2, without a socket. `link`: the socket.
//! * `worker`: the loop of one thread. `tally`: what it counts. `cpu`: what processes have used.

mod answer;
pub mod client;
mod connection;
mod cpu;
mod fields;
mod link;
mod plan;
mod report;
mod request;
mod response;
mod run;
mod schedule;
mod service;
mod spread;
mod stamp;
mod tally;
mod worker;

pub use self::plan::{CallMode, Pace, Plan, PlanEnd, PlannedQuestion, Spread, UnaryMethod};
pub use self::report::{Cpu, Latency, LoadReport, OpenLoop, ServerCpu};
pub use self::run::{RunProgress, RunWatch, run};
pub use self::tally::Counts;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The connection was refused or timed out.
    #[error("no server can be reached at {server}: {reason}")]
    Unreachable {
        /// Where.
        server: String,
        /// Why.
        reason: String,
    },
    /// What listens there speaks something else.
    #[error("{server} does not speak gRPC as expected: {reason}")]
    Foreign {
        /// Where.
        server: String,
        /// What was received instead.
        reason: String,
    },
    /// The first answers were errors that every further call would get too.
    #[error("{server} refuses the calls: {code}: {message}")]
    Refused {
        /// Where.
        server: String,
        /// The name of the gRPC status code, or `HTTP` and its status.
        code: String,
        /// What the server says.
        message: String,
    },
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// This machine does not let us.
    #[error("{what}: {source}")]
    System {
        /// What we were about.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}
