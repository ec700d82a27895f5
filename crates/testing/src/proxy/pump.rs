//! One direction of one connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::Mode;

/// How often an idle connection looks at the mode.
pub(super) const TICK: Duration = Duration::from_millis(3);

/// Carries bytes from one end to the other, as the mode has it, until either end or the mode closes.
pub(super) fn pump(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mode: &Mutex<Option<Mode>>,
    forwarded: &AtomicU64,
) {
    let mut buffer = [0; 16 * 1024];
    let mut has_lost_bytes = false;
    loop {
        match *mode.lock() {
            Some(Mode::Drop) | None => break,
            Some(Mode::BlackHole) => {}
            Some(_) if has_lost_bytes => break,
            Some(Mode::Pass | Mode::Stall) => {}
        }
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_tick(error.kind()) => continue,
            Err(_) => break,
        };
        match wait_while_stalled(mode) {
            Some(Mode::BlackHole) => has_lost_bytes = true,
            Some(Mode::Pass) if !has_lost_bytes => {
                forwarded.fetch_add(count as u64, Ordering::Relaxed);
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            _ => break,
        }
    }
    // Both ways, so that the pump of the other direction ends as well.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn wait_while_stalled(mode: &Mutex<Option<Mode>>) -> Option<Mode> {
    loop {
        let mode = *mode.lock();
        if mode != Some(Mode::Stall) {
            return mode;
        }
        thread::sleep(TICK);
    }
}

fn is_tick(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
