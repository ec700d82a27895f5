//! The table's section `usage`: usage statistics of decisions, and access to them.

use super::kinds::{Boolean, Optional};
use super::numbers::Count;
use super::texts::NodeName;
use super::{Applies, Outside, section};

/// Upper bound of the sampling interval: one call in this many is the lowest rate other than none.
const MAX_SAMPLE: u32 = 1_000_000;

section! {
    /// History of decisions, and who may read it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UsageConfig {
        before: [],

        /// Whether `weir.v1.UsageService` is served, to all clients of `listen`.
        pub service: bool = true => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "Everybody who reaches `listen` can call it, and sees names of consumers.",
        }
        /// The name of this node.
        pub node: Option<String> = None => {
            kind: Optional(NodeName, "the name of its host"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether nodes on one Redis show one another what they have counted.
        pub shared: bool = true => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "So each answers for all.",
        }
        /// The sample rate of consumers: the consumer of one call in so many is counted; 0 counts none.
        pub sample: u32 = 16 => {
            kind: Count(0, MAX_SAMPLE),
            outside: Outside::No,
            applies: Applies::AtReload,
            more: "It finds the consumers that call most. 1 counts all.",
        }
        /// Whether what each second counted is written to RedisTimeSeries, on the Redis of the store.
        pub timeseries: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "It needs `store: { redis: ... }`. See [RedisTimeSeries](usage.md#redistimeseries).",
        }

        after: [],
        others: {}
    }
}
