//! Numbers of concurrency limits: how many permits there are, and for how long. Who holds them is a matter of leases.

mod adaptive;
mod aimd;
mod gradient2;
mod partitions;
mod rule;
mod sampling;
mod vegas;

pub use adaptive::{AdaptiveRule, ControllerRule};
pub use aimd::AimdRule;
pub use gradient2::Gradient2Rule;
pub use partitions::{MAX_PARTITIONS, Partition, Partitions};
pub use rule::{
    ConcurrencyError, ConcurrencyNumbers, ConcurrencyRule, LONGEST_TTL, LimitSource, MAX_ADAPTIVE_LIMIT,
    MAX_LEASES,
};
pub use sampling::{SHORTEST_RTT, SamplingRule};
pub use vegas::{ProbeRule, VegasRule};
