//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what kernels hand out to outgoing connections (from 32768 on Linux), so that a port stays free
/// while its server is down, and can be started on again. A cluster's bus port, 10000 higher, is as well.
const FIRST: u16 = 20_000;
const COUNT: u16 = 2_700;
const BUS_OFFSET: u16 = 10_000;

/// A port on which nothing listens, and nothing on its cluster bus port either. Every call gives another
/// one. Another process may take it before you do: if you start a server on it, check and retry.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test binaries that run at the same time begin at different places.
    let start = std::process::id() * 97 % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((start + step) % u32::from(COUNT)).expect("is below COUNT");
        if is_free(port) && is_free(port + BUS_OFFSET) {
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + COUNT - 1);
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
