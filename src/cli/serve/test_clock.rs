//! `weir serve --test-clock`: the clock of the decisions stands still until a line on stdin moves it.
//!
//! Stdin belongs to the process that has started the server: nothing else on the machine can move the clock, and a server whose
//! test has died ends with it. An endpoint would need a port, a right and a place in the interface that is promised.
//!
//! `advance SECONDS` is answered on stdout by `ok`, or by `error` and a sentence. It does not depend on the hour when a test runs
//! whether a window has just begun: the clock starts where simulations do.

use std::io::{self, BufRead, Read as _};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::oneshot;
use weir_config::{Config, ListenAddress, StoreConfig};
use weir_node::telemetry::LineWriter;
use weir_time::clock::{Clock, ManualClock};
use weir_units::{LATEST, Micros};

use crate::simulation::START;

/// Bytes of a line. Longer ones end the server: they are not meant for it.
const LONGEST_LINE: u64 = 64;

/// A clock that only a test moves.
pub(super) struct TestClock(ManualClock);

impl TestClock {
    /// Refuses a server that others could depend on: one with a shared store, or on addresses of other machines.
    pub(super) fn new(config: &Config) -> Result<Self> {
        if !matches!(config.store, StoreConfig::Memory(_)) {
            bail!("--test-clock needs the memory store: a clock that stands still is for tests alone");
        }
        let server = &config.server;
        let tcp = |address: &ListenAddress| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        };
        let listens = [tcp(&server.listen), server.control_listen.as_ref().and_then(tcp), Some(server.admin)];
        let features = config.sections.iter().filter_map(|section| tcp(&section.port.as_ref()?.address));
        let is_remote = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        if let Some(address) = listens.into_iter().flatten().chain(features).find(is_remote) {
            bail!("--test-clock serves on loopback addresses only, and other machines reach {address}");
        }
        Ok(Self(ManualClock::at(START)))
    }

    /// The clock of the decisions.
    pub(super) fn clock(&self) -> Clock {
        Clock::Manual(self.0.clone())
    }

    /// Obeys the lines of stdin from the call of what it returns on, and answers them with `answers`. The future resolves
    /// when stdin ends.
    pub(super) fn obey(
        self,
        answers: LineWriter,
    ) -> io::Result<(impl FnOnce() + Send, impl Future<Output = ()>)> {
        let (ending, ended) = oneshot::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let lines = move || {
            // Without it the server has been refused.
            if begun.recv().is_err() {
                return;
            }
            obey(io::stdin().lock(), &self.0, |answer| answers.push(format!("{answer}\n").as_bytes()));
            drop(ending);
        };
        std::thread::Builder::new().name("weir-test-clock".to_owned()).spawn(lines)?;
        let ended = async {
            // Its sender is dropped without a value.
            let _ = ended.await;
        };
        let begin = move || {
            // The thread waits for it, unless it has ended.
            let _ = begin.send(());
        };
        Ok((begin, ended))
    }
}

/// Obeys lines until they end, cannot be read, or are too long.
fn obey(mut input: impl BufRead, clock: &ManualClock, mut answer: impl FnMut(&str)) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if !read.is_ok_and(|read| read > 0) {
            return;
        }
        let Some(command) = line.strip_suffix(b"\n") else {
            return answer(&format!("error a line has more than {LONGEST_LINE} bytes"));
        };
        match advance(&String::from_utf8_lossy(command), clock) {
            Ok(()) => answer("ok"),
            Err(mistake) => answer(&format!("error {mistake}")),
        }
    }
}

/// Executes a line.
fn advance(line: &str, clock: &ManualClock) -> Result<(), String> {
    let seconds = line.trim_end().strip_prefix("advance ").and_then(|seconds| seconds.parse().ok());
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let span = span.ok_or_else(|| "the line is not `advance` and a number of seconds from 0".to_owned())?;
    let to = clock.now().0.checked_add(Micros::from(span).0).filter(|to| *to <= LATEST.0);
    clock.set(Micros(to.ok_or_else(|| format!("the clock cannot pass {}", LATEST.0))?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &[u8], clock: &ManualClock) -> Vec<String> {
        let mut answers = Vec::new();
        obey(input, clock, |answer| answers.push(answer.to_owned()));
        answers
    }

    #[test]
    fn only_whole_good_lines_move_the_clock() {
        let clock = ManualClock::at(START);
        assert_eq!(answers(b"advance 3600\nadvance 0.25\r\nadvance 0\nadvance 1e-6\n", &clock), ["ok"; 4]);
        let moved = Micros(START.0 + 3_600_250_001);
        assert_eq!(clock.now(), moved);
        let wrong =
            b"advance -1\nadvance NaN\nadvance inf\nadvance 1e300\nadvance\n\nstop\n\xff\nadvance 1e10\n";
        let answers_to_wrong = answers(wrong, &clock);
        assert_eq!(answers_to_wrong.len(), 9);
        assert!(answers_to_wrong.iter().all(|answer| answer.starts_with("error ")), "{answers_to_wrong:?}");
        let long = [b"advance ".as_slice(), &[b'0'; 200], b"1\nadvance 1\n"].concat();
        assert_eq!(answers(&long, &clock), ["error a line has more than 64 bytes"]);
        assert_eq!(answers(b"advance 1", &clock).len(), 1, "a line that was cut");
        assert_eq!(clock.now(), moved);
    }
}
