//! Health of the Redis nodes, for operators and metrics. Nothing here affects routing.
//!
//! The monitor (one per process, apart from the workers) probes every master periodically with charges ([`probe`]),
//! compares the secret with other nodes of Weir ([`fingerprint`]), and checks whether Redis evicts keys
//! ([`evictions`]). The results are kept on a board, which logs changes.

mod acl;
mod ask;
mod board;
mod breaker_prober;
mod data_marker;
mod evictions;
mod fingerprint;
mod monitor;
mod probe;
mod remedy;
mod rights;
mod rules;
mod streak;
mod tags;

pub use self::acl::acl_line;
pub use self::board::StoreHealth;
pub(super) use self::breaker_prober::keep_probing_breakers;
pub(super) use self::monitor::monitor;
