//! The cost of counting on the node: decisions a second, µs of CPU of the node and of Redis, script calls per
//! decision, and latency at a fixed rate; of exact strategies, of exact ones with `on_store_failure: { local: … }`,
//! and of approximate ones with `max_over`. Needs `redis-server`.
//!
//! `cargo bench --bench modes` prints the table, and writes it to `target/bench/modes.md`. Everything is measured in
//! rounds (A B C, A B C, …), and the table has the medians.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[allow(dead_code)] // The other benchmark reads the server's CPU time itself.
#[path = "../access/served.rs"]
mod served;
mod works;

use std::fmt::Write as _;
use std::time::Duration;

use self::works::{Figures, Works};

/// Number of rounds, and the length of each measurement.
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(3);

const HEAD: &str = "\
| keys | strategy | decisions/s | node µs | × | Redis µs | script calls per 1,000 decisions | at 10,000/s: script calls | p50 µs | p99 µs |
|---|---|---|---|---|---|---|---|---|---|
";

fn main() {
    let works = Works::start();
    let mut samples = vec![Vec::new(); works.all().len()];
    for round in 1..=ROUNDS {
        for (work, samples) in works.all().iter().zip(&mut samples) {
            let figures = works.measure(work, SPAN);
            eprintln!("round {round} of {ROUNDS}: {:<7} {:<22} {figures}", work.keys, work.mode.name);
            samples.push(figures);
        }
    }
    let mut table = HEAD.to_owned();
    let mut exact = 0.0;
    for (work, samples) in works.all().iter().zip(&samples) {
        let median = Figures::median(samples);
        if work.mode.is_compared_with {
            exact = median.node_us;
        }
        let Figures { per_second, node_us, redis_us, scripts, few_scripts, p50_us, p99_us } = median;
        let (keys, name, times) = (work.keys, work.mode.name, node_us / exact);
        let _ = writeln!(
            table,
            "| {keys} | {name} | {per_second:.0} | {node_us:.2} | {times:.2} | {redis_us:.2} | {scripts:.2} | {few_scripts:.1} | {p50_us:.0} | {p99_us:.0} |"
        );
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        table,
        "\nMedians of {ROUNDS} rounds by turns, {SPAN:?} each; load average after them: {load}."
    );
    print!("{table}");
    let folder = served::target().join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("modes.md"), table).unwrap();
}
