//! The service end to end, beside peers, in one run: decisions a second, latency, and CPU time per decision
//! of the service and of Redis. Needs `redis-server`; compares with `throttlecrab-server` if it is on PATH, and with envoyproxy/ratelimit after `make reference`.
//!
//! `cargo bench --bench service` writes `target/bench/table.md`; with `-- --quick` in a minute. With `-- --http` it measures the HTTP
//! listener alone.
//!
//! Everything is measured in rounds (A B C, A B C, …), and the table has the medians: a machine's mood then
//! spoils a round of all rather than all rounds of one. CPU time per decision hardly moves with it at all.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, clippy::disallowed_methods)]

mod bare;
mod cluster;
mod cluster_cost;
mod few_calls;
mod goals;
mod h2_alone;
mod handovers;
#[cfg(feature = "http")]
mod http;
mod key_bytes;
mod limits;
mod pauses;
mod plan;
mod processes;
mod reference;
mod rows;
mod servers;
mod store_alone;
mod table;

use std::path::Path;
use std::time::Duration;

use self::handovers::Handovers;
use self::pauses::Pauses;
use self::rows::{Row, Sample};
use self::servers::Servers;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Length and number of the measurements.
#[derive(Clone, Copy)]
pub struct Effort {
    rounds: usize,
    warm_up: Duration,
    duration: Duration,
    pauses: Duration,
    /// Keys of the rows that are about many.
    many_keys: u64,
}

impl Effort {
    pub const fn many_keys_name(self) -> &'static str {
        if self.many_keys == FULL.many_keys { "unary, 10 M keys" } else { "unary, 1 M keys" }
    }
}

const FULL: Effort = Effort {
    rounds: 3,
    warm_up: Duration::from_millis(700),
    duration: Duration::from_secs(3),
    pauses: Duration::from_secs(5),
    many_keys: 10_000_000,
};
const QUICK: Effort = Effort {
    rounds: 1,
    warm_up: Duration::from_millis(300),
    duration: Duration::from_millis(1_000),
    pauses: Duration::from_secs(1),
    many_keys: 1_000_000,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|it| it == bare::ARGUMENT) {
        return bare::serve(arguments[at + 1].parse().expect("a port"));
    }
    if let Some(at) = arguments.iter().position(|it| it == h2_alone::ARGUMENT) {
        return h2_alone::serve(arguments[at + 1].parse().expect("a port"));
    }
    #[cfg(feature = "http")]
    if let Some(at) = arguments.iter().position(|it| it == http::bare::ARGUMENT) {
        return http::bare::serve(arguments[at + 1].parse().expect("a port"));
    }
    let effort = if arguments.iter().any(|it| it == "--quick") { QUICK } else { FULL };
    #[cfg(feature = "http")]
    if arguments.iter().any(|it| it == http::ARGUMENT) {
        let servers = http::HttpServers::start();
        let rows = servers.rows(effort);
        let samples = measure(&rows, effort);
        let page =
            format!("{}\n\n{}\n{}", table::machine(), table::text(&rows, &samples), http::goals(&samples));
        return write_page("http.md", &page);
    }
    let (pauses, handovers) = (Pauses::within(effort.pauses), Handovers::within(effort.pauses));
    let machine = format!("{}; {pauses}; {handovers}", table::machine());
    println!("{machine}");
    let servers = Servers::start(effort);
    let mut rows = rows::rows(&servers, effort);
    rows.extend(cluster_cost::rows(&servers, effort));
    rows.extend(limits::rows(&servers, effort));
    rows.extend(few_calls::rows(&servers, effort));
    rows.extend(store_alone::rows(&servers.redis, effort, few_calls::LONELY));
    rows.extend(reference::rows(&servers, effort));
    let samples = measure(&rows, effort);
    let (rows, goals) = (table::text(&rows, &samples), goals::text(&samples, &servers));
    let page = format!("{machine}\n\n{rows}\n{goals}\n{}", key_bytes::table(&servers, effort));
    write_page("table.md", &page);
}

/// Prints a page, and writes it into `target/bench`.
fn write_page(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target").join("bench");
    std::fs::create_dir_all(&folder).expect("make the folder of the table");
    std::fs::write(folder.join(name), page).expect("write the table");
    println!("\n{page}\n(also in {})", folder.join(name).display());
}

/// A median for every row.
fn measure(rows: &[Row], effort: Effort) -> Vec<Sample> {
    let mut samples = vec![Vec::new(); rows.len()];
    for round in 1..=effort.rounds {
        for (row, samples) in rows.iter().zip(&mut samples) {
            let sample = row.measure();
            println!("round {round} of {}: {:<44} {}", effort.rounds, row.name(), sample.line());
            samples.push(sample);
        }
    }
    samples.into_iter().map(|samples| Sample::median(&samples)).collect()
}
