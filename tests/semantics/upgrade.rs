//! Nodes of two versions on one Redis: names of keys, and states to the last byte.
//!
//! `upgrade/README.md` says what is recorded of a release, and how.

mod answers;
mod beside;
mod bytes;
mod keys;
mod record;
mod release;
mod rows;
mod stories;
mod story;
#[cfg(feature = "usage")]
mod usage;

use self::rows::all_rows;

/// Recorded releases: those that nodes may be upgraded from.
const RELEASES: [&str; 0] = [];

/// The first version that is published. Nothing can be recorded before it.
const FIRST: &str = "0.2.0";

/// Every later version must be compared with the one before it.
#[test]
fn a_release_is_recorded_from_the_second_one_on() {
    let is_first = env!("CARGO_PKG_VERSION") == FIRST;
    assert_eq!(RELEASES.is_empty(), is_first, "record {FIRST}: see tests/semantics/upgrade/README.md");
}

/// The stories leave states of every engine, or a recording shows nothing.
#[test]
fn every_engine_has_a_row() {
    let rows = all_rows();
    let limits = rows.iter().flat_map(|row| row.strategy.limits());
    let engines: std::collections::BTreeSet<_> =
        limits.map(|limit| limit.algorithm.engine().name()).collect();
    let all = weir_core::algorithm::EngineKind::ALL.map(weir_core::algorithm::EngineKind::name);
    assert_eq!(engines, all.into_iter().collect());
}
