//! The bound of what nodes admit by themselves while the store cannot answer.
//!
//! Several nodes share a store that fails and comes back at random, on virtual time. Some of its replies are lost after it
//! has charged. Nodes restart, the store loses its data, and clocks differ. Each is an exception that the documents name;
//! it adds what they say, and not more.

mod answers;
mod cluster;
mod random;

use self::cluster::{Exceptions, LocalCluster};
use self::random::Random;
use weir_core::algorithm::{Algorithm, Rate};
use weir_units::Micros;

const SECOND: u64 = 1_000_000;
/// The window of the limits.
const WINDOW: u64 = 10 * SECOND;
/// Traces of each limit and of each set of exceptions.
const TRACES: u64 = 150;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Window,
    Log,
    Bucket,
}

const LIMITS: [Limit; 3] = [Limit::Window, Limit::Log, Limit::Bucket];

impl Limit {
    fn algorithm(self, limit: u64) -> Algorithm {
        let window = Micros(WINDOW);
        match self {
            Self::Window => Algorithm::fixed_window(limit, window, false, false),
            Self::Log => Algorithm::sliding_log(limit, window),
            Self::Bucket => Algorithm::bucket(limit, Rate { count: limit, period: window }),
        }
        .unwrap()
    }
}

/// One call that was admitted.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    at: u64,
    cost: u64,
    /// The node that decided by itself.
    by: Option<usize>,
}

/// The trace of a seed: what was admitted, when the store decided, and the exceptions that happened.
fn trace(kind: Limit, allowed: Exceptions, seed: u64) -> LocalCluster {
    let mut random = Random(seed.wrapping_mul(2).wrapping_add(1));
    let nodes = 1 + random.below(3) as usize;
    let mut cluster = LocalCluster::new(kind.algorithm(8 + random.below(12)), nodes, &mut random, allowed);
    for _ in 0..400 {
        // Mostly bursts; now and then a pause of up to a window and a half.
        let pause = if random.below(12) == 0 { WINDOW * 3 / 2 } else { SECOND / 5 };
        cluster.advance(random.below(pause));
        match random.below(60) {
            0..3 => cluster.fails = !cluster.fails,
            3 if allowed.restarts => cluster.restart(random.below(nodes as u64) as usize),
            4 if allowed.losses => cluster.lose_data(),
            5 => cluster.refund(random.below(nodes as u64) as usize),
            _ => cluster.call(random.below(nodes as u64) as usize, 1 + random.below(3), &mut random),
        }
    }
    cluster
}

/// The units that were admitted above the bound, at most; 0 if it was kept. `counts` are the exceptions that add to it.
fn excess(kind: Limit, cluster: &LocalCluster, counts: Exceptions) -> u64 {
    let spans: Vec<(u64, u64)> = match kind {
        Limit::Window => (0..=cluster.now / WINDOW).map(|n| (n * WINDOW, (n + 1) * WINDOW)).collect(),
        Limit::Log => cluster.admitted.iter().map(|one| (one.at, one.at + WINDOW)).collect(),
        // Any interval from one admitted call to another.
        Limit::Bucket => {
            let times: Vec<u64> = cluster.admitted.iter().map(|one| one.at).collect();
            let to = |(place, &from): (usize, &u64)| {
                times[place..].iter().step_by(3).map(|&to| (from, to + 1)).collect::<Vec<_>>()
            };
            times.iter().enumerate().flat_map(to).collect()
        }
    };
    spans.into_iter().map(|span| cluster.excess_in(kind == Limit::Bucket, span, counts)).max().unwrap_or(0)
}

fn every_trace(allowed: Exceptions, mut each: impl FnMut(Limit, u64, &LocalCluster)) {
    for kind in LIMITS {
        for seed in 0..TRACES {
            each(kind, seed, &trace(kind, allowed, seed));
        }
    }
}

#[test]
fn with_one_clock_and_no_losses_the_bound_holds() {
    let (mut local, mut shared) = (0, 0);
    every_trace(Exceptions::NONE, |kind, seed, cluster| {
        assert_eq!(excess(kind, cluster, Exceptions::NONE), 0, "{kind:?}, seed {seed}");
        local += cluster.admitted.iter().filter(|one| one.by.is_some()).count();
        shared += cluster.admitted.iter().filter(|one| one.by.is_none()).count();
    });
    assert!(local > 5_000 && shared > 5_000, "both decide: {local} {shared}");
}

/// Each exception alone: with its term the bound holds, and without it some trace breaks it.
#[test]
fn each_exception_adds_what_the_documents_say_and_not_more() {
    for allowed in [
        Exceptions { restarts: true, ..Exceptions::NONE },
        Exceptions { losses: true, ..Exceptions::NONE },
        Exceptions { skew: true, ..Exceptions::NONE },
    ] {
        let mut without = 0;
        every_trace(allowed, |kind, seed, cluster| {
            assert_eq!(excess(kind, cluster, allowed), 0, "{allowed:?}, {kind:?}, seed {seed}");
            without = without.max(excess(kind, cluster, Exceptions::NONE));
        });
        assert!(without > 0, "{allowed:?} never mattered");
    }
}

#[test]
fn all_exceptions_together_add_up() {
    let all = Exceptions { restarts: true, losses: true, skew: true };
    every_trace(all, |kind, seed, cluster| {
        assert_eq!(excess(kind, cluster, all), 0, "{kind:?}, seed {seed}");
    });
}
