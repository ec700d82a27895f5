//! One direction of one connection.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{ProxyMode, SharedProxy};

/// The interval at which an idle connection checks the mode.
pub(super) const TICK: Duration = Duration::from_millis(3);

/// Carries bytes from one end to the other, as the mode has it, until either end or the mode closes.
pub(super) struct Pump<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    mode: &'a Mutex<Option<ProxyMode>>,
    forwarded: &'a AtomicU64,
    carries_replies: bool,
    has_lost_bytes: bool,
    /// Received data with its time of forwarding.
    delayed: VecDeque<(Instant, Vec<u8>)>,
}

/// One of its ends, or the mode, closes the connection.
struct PumpClosed;

impl<'a> Pump<'a> {
    pub(super) fn of_calls(client: &'a TcpStream, server: &'a TcpStream, shared: &'a SharedProxy) -> Self {
        Self::new(client, server, shared, &shared.bytes_up, false)
    }

    pub(super) fn of_replies(server: &'a TcpStream, client: &'a TcpStream, shared: &'a SharedProxy) -> Self {
        Self::new(server, client, shared, &shared.bytes_down, true)
    }

    fn new(
        from: &'a TcpStream,
        to: &'a TcpStream,
        shared: &'a SharedProxy,
        forwarded: &'a AtomicU64,
        carries_replies: bool,
    ) -> Self {
        let (mode, delayed) = (&shared.mode, VecDeque::new());
        Self { from, to, mode, forwarded, carries_replies, has_lost_bytes: false, delayed }
    }

    pub(super) fn run(mut self) {
        let mut buffer = [0; 16 * 1024];
        while self.step(&mut buffer).is_ok() {}
        // Both ways, so that the pump of the other direction ends as well.
        let _ = self.from.shutdown(Shutdown::Both);
        let _ = self.to.shutdown(Shutdown::Both);
    }

    fn step(&mut self, buffer: &mut [u8]) -> Result<(), PumpClosed> {
        match *self.mode.lock() {
            Some(ProxyMode::Drop) | None => return Err(PumpClosed),
            Some(ProxyMode::BlackHole) => {}
            Some(_) if self.has_lost_bytes => return Err(PumpClosed),
            Some(ProxyMode::Pass | ProxyMode::Stall | ProxyMode::LateReplies(_)) => {}
        }
        self.forward_due()?;
        let count = match self.read(buffer) {
            Ok(0) => return Err(PumpClosed),
            Ok(count) => count,
            Err(error) if is_tick(error.kind()) => return Ok(()),
            Err(_) => return Err(PumpClosed),
        };
        let delay = match self.wait_while_stalled() {
            Some(ProxyMode::BlackHole) => {
                self.has_lost_bytes = true;
                return Ok(());
            }
            _ if self.has_lost_bytes => return Err(PumpClosed),
            Some(ProxyMode::Pass) => Duration::ZERO,
            Some(ProxyMode::LateReplies(delay)) => {
                if self.carries_replies {
                    delay
                } else {
                    Duration::ZERO
                }
            }
            _ => return Err(PumpClosed),
        };
        self.delayed.push_back((Instant::now() + delay, buffer[..count].to_vec()));
        self.forward_due()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wait =
            self.delayed.front().map_or(TICK, |(due, _)| due.saturating_duration_since(Instant::now()));
        // Zero would mean no time-out.
        self.from.set_read_timeout(Some(wait.clamp(Duration::from_micros(1), TICK)))?;
        let mut from = self.from;
        from.read(buffer)
    }

    fn forward_due(&mut self) -> Result<(), PumpClosed> {
        while self.delayed.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let Some((_, bytes)) = self.delayed.pop_front() else { break };
            self.forwarded.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            let mut to = self.to;
            to.write_all(&bytes).map_err(|_| PumpClosed)?;
        }
        Ok(())
    }

    fn wait_while_stalled(&self) -> Option<ProxyMode> {
        loop {
            let mode = *self.mode.lock();
            if mode != Some(ProxyMode::Stall) {
                return mode;
            }
            thread::sleep(TICK);
        }
    }
}

fn is_tick(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
