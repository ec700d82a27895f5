//! The cost of TLS, identity and rights: µs of CPU per call in plain text, with TLS 1.3, a client certificate, a
//! token, a JWT and rules; and handshakes a second, with tickets of earlier sessions and without.
//!
//! `cargo bench --bench access` prints two tables, and writes them to `target/bench/access.md`. Everything is measured in
//! rounds (A B C, A B C, …), and the tables have the medians.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod callers;
mod handshakes;
mod served;

use std::time::Duration;

use self::callers::Callers;
use self::handshakes::Handshakes;
use self::served::Served;

/// Number of rounds, and the length of each measurement.
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(3);

fn main() {
    let callers = Callers::create();
    let calls = callers.all();
    let mut of_calls = vec![Vec::new(); calls.len()];
    let handshakes = Handshakes::ALL;
    let mut of_handshakes = vec![Vec::new(); handshakes.len()];
    for round in 1..=ROUNDS {
        for (caller, samples) in calls.iter().zip(&mut of_calls) {
            let served = Served::start(&callers.config(caller));
            samples.push(callers.cpu_of_a_call(caller, &served, SPAN));
        }
        for (kind, samples) in handshakes.iter().zip(&mut of_handshakes) {
            let served = Served::start(&callers.config(kind.caller()));
            samples.push(kind.measure(&callers, &served, SPAN));
        }
        eprintln!("round {round} of {ROUNDS}");
    }
    let mut table = String::from("| calls | CPU µs per call | × |\n|---|---|---|\n");
    let plain = median(of_calls[0].clone());
    for (caller, samples) in calls.iter().zip(of_calls) {
        let each = median(samples);
        table += &format!("| {} | {each:.2} | {:.2} |\n", caller.name, each / plain);
    }
    table += "\n| handshakes | a second | CPU µs of the server |\n|---|---|---|\n";
    for (kind, samples) in handshakes.iter().zip(of_handshakes) {
        let (rates, costs): (Vec<f64>, Vec<f64>) = samples.into_iter().unzip();
        table += &format!("| {} | {:.0} | {:.0} |\n", kind.name(), median(rates), median(costs));
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    table +=
        &format!("\nMedians of {ROUNDS} rounds by turns, {SPAN:?} each; load average after them: {load}.\n");
    print!("{table}");
    let folder = served::target().join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("access.md"), table).unwrap();
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
