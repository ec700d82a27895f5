//! How much memory a key takes: what the store counts, and what the kernel says.

use weir::config::WhenFull;

use super::{Fixture, MIB, slow_bucket};

const MOST_A_KEY: usize = 64;
const FEWEST: usize = 600_000 / SCALE;
const KEYS: usize = 2_000_000 / SCALE;
const POINTS: usize = 15;

/// A debug build is slow, and its tables have the same layout.
const SCALE: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// The mean over fifteen points of growth, because a table that has just doubled is at its worst.
#[test]
fn a_bucket_takes_at_most_64_bytes() {
    let (fixture, strategy) = (Fixture::new(512 * MIB, WhenFull::Refuse), slow_bucket());
    let (before, mut made, mut means) = (resident_bytes(), 0, Vec::new());
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
    let resident = resident_bytes().saturating_sub(before) as f64 / KEYS as f64;
    println!("bytes a key: mean {mean:.1}, {means:.1?}; resident {resident:.1}");
    assert!(mean <= MOST_A_KEY as f64, "{mean} bytes a key");
    // Loose: the other tests of this process use memory too.
    assert!(resident < 100.0, "{resident} bytes a key are resident");
}

/// Pages of this process that are in memory.
fn resident_bytes() -> usize {
    const PAGE: usize = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * PAGE
}
