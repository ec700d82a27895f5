//! Numbers of concurrency limits: how many permits there are, and for how long. Who holds them is a matter of leases.

mod adaptive;
mod partitions;
mod rule;

pub use adaptive::{
    AdaptiveRule, AimdRule, ControllerRule, Gradient2Rule, ProbeRule, SHORTEST_RTT, SamplingRule, VegasRule,
};
pub use partitions::{MAX_PARTITIONS, Partition, Partitions};
pub use rule::{
    ConcurrencyError, ConcurrencyNumbers, ConcurrencyRule, LONGEST_TTL, LimitSource, MAX_ADAPTIVE_LIMIT,
    MAX_LEASES,
};
