//! The pauses in which the machine runs no thread. One thread per core reads the clock in a loop and sees it jump.
//!
//! No server and no generator can be faster than this. On a virtual machine the pauses come from its neighbours.

use std::fmt;
use std::time::{Duration, Instant};

/// Jumps of the clock that are no pauses: its own reading, and an interrupt or two.
const SHORT: Duration = Duration::from_micros(100);

/// All cores' pauses within some time.
#[derive(Default)]
pub struct Pauses {
    count: usize,
    longest: Duration,
    /// The part of the time that all pauses took.
    share: f64,
}

impl Pauses {
    /// Looks for so long.
    pub fn within(span: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| std::thread::spawn(move || of_one(span))).collect();
        let pauses: Vec<_> = threads.into_iter().flat_map(|it| it.join().expect("it only counts")).collect();
        let whole = span.as_secs_f64() * cores as f64;
        Self {
            count: pauses.len(),
            longest: pauses.iter().max().copied().unwrap_or_default(),
            share: pauses.iter().sum::<Duration>().as_secs_f64() / whole,
        }
    }
}

fn of_one(span: Duration) -> Vec<Duration> {
    let mut pauses = Vec::new();
    let begin = Instant::now();
    let mut last = begin;
    while last.duration_since(begin) < span {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap > SHORT {
            pauses.push(gap);
        }
        last = now;
    }
    pauses
}

impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, longest, share } = self;
        let (longest, share) = (longest.as_secs_f64() * 1e3, share * 100.0);
        write!(
            f,
            "a thread a core that only reads the clock was stopped {count} times for more than {} µs, {longest:.1} \
             ms at the longest, {share:.2} % of the time",
            SHORT.as_micros()
        )
    }
}
