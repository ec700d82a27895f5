//! The memory of a key, as the store counts it and as the kernel does.

use std::process::Command;
use weir_testing::usage::resident_bytes;

use weir_config::WhenFull;

use super::{Fixture, MIB, slow_bucket};

const MOST_A_KEY: usize = 64;
const FEWEST: usize = 600_000 / SCALE;
const KEYS: usize = 2_000_000 / SCALE;
const POINTS: usize = 15;

/// The begin of the line with the result.
const MEASURED: &str = "bytes a key";

/// A debug build is slow, and its tables have the same layout.
const SCALE: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// In a process of its own: what other tests use meanwhile is resident too, ten thousand callers among it.
#[test]
fn a_bucket_takes_at_most_64_bytes() {
    const IS_ALONE: &str = "WEIR_TEST_IS_ALONE";
    if std::env::var_os(IS_ALONE).is_some() {
        return measure();
    }
    let alone = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::size::a_bucket_takes_at_most_64_bytes", "--nocapture"])
        .env(IS_ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&alone.stdout);
    assert!(
        alone.status.success() && said.contains(MEASURED),
        "{said}{}",
        String::from_utf8_lossy(&alone.stderr)
    );
}

/// The mean over fifteen points of growth, because a table that has just doubled is at its worst.
fn measure() {
    let (fixture, strategy) = (Fixture::new(512 * MIB, WhenFull::Refuse), slow_bucket());
    let (before, mut made, mut means) = (resident_bytes(std::process::id()), 0, Vec::new());
    for point in 0..POINTS {
        let keys = FEWEST + (KEYS - FEWEST) * point / (POINTS - 1);
        for key in made..keys {
            assert!(fixture.charge(&strategy, &format!("consumer-{key:015}"), 1).unwrap());
        }
        made = keys;
        let stats = fixture.store.stats();
        assert_eq!((stats.keys, stats.evictions, stats.refusals), (keys, 0, 0));
        means.push(stats.bytes as f64 / keys as f64);
    }
    let mean = means.iter().sum::<f64>() / POINTS as f64;
    let resident = resident_bytes(std::process::id()).saturating_sub(before) as f64 / KEYS as f64;
    println!("{MEASURED}: mean {mean:.1}, {means:.1?}; resident {resident:.1}");
    assert!(mean <= MOST_A_KEY as f64, "{mean} bytes a key");
    // Beside the table, the list of the shards and what the allocator keeps of what was grown out of.
    assert!(resident < 72.0, "{resident} bytes a key are resident");
}
