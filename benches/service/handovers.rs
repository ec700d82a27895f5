//! The shortest time of a call over Redis: a byte that threads hand on over loopback, from the caller to the service,
//! to Redis, and both ways back. Each of the four waits for a thread to be woken.
//!
//! No service can be earlier than this. On a virtual machine whose idle cores are given back to the host, to wake
//! a thread takes tens of microseconds.

use std::fmt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// As often as calls come in an open loop.
const EVERY: Duration = Duration::from_micros(100);

/// The time of a byte there and back, in percentiles.
pub struct Handovers {
    p50: Duration,
    p99: Duration,
    p99_9: Duration,
}

impl Handovers {
    /// Looks for so long. One byte is on its way at a time, so that none waits for another.
    pub fn within(span: Duration) -> Self {
        let (mut caller, service) = connected();
        let (service_out, redis) = connected();
        let threads = [
            std::thread::spawn(move || pass_on(&service, &service_out, true)),
            std::thread::spawn(move || pass_on(&redis, &redis, false)),
        ];
        let mut took = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < span {
            std::thread::sleep(EVERY);
            let sent = Instant::now();
            hand_on(&mut caller, &mut [0]).expect("a byte comes back");
            took.push(sent.elapsed());
        }
        drop(caller);
        threads.into_iter().for_each(|thread| thread.join().expect("it only hands on"));
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        Self { p50: at(0.5), p99: at(0.99), p99_9: at(0.999) }
    }
}

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let near = TcpStream::connect(listener.local_addr().expect("it has one")).expect("connect");
    let (far, _) = listener.accept().expect("accept");
    [&near, &far].into_iter().for_each(|end| end.set_nodelay(true).expect("set TCP_NODELAY"));
    (near, far)
}

/// Hands every byte that comes `from` there on `to` there, and back again if it `waits` for it to return.
fn pass_on(mut from: &TcpStream, mut to: &TcpStream, waits: bool) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() {
        let handed = if waits {
            hand_on(&mut to, &mut byte).and_then(|()| from.write_all(&byte))
        } else {
            to.write_all(&byte)
        };
        if handed.is_err() {
            return;
        }
    }
}

/// Sends a byte, and waits for it to come back.
fn hand_on(to: &mut (impl Read + Write), byte: &mut [u8; 1]) -> std::io::Result<()> {
    to.write_all(byte)?;
    to.read_exact(byte)
}

impl fmt::Display for Handovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |duration: Duration| duration.as_micros();
        write!(
            f,
            "a byte that threads hand on four times over loopback, and do nothing else, comes back after {} µs \
             (p50), {} (p99) and {} (p99.9)",
            us(self.p50),
            us(self.p99),
            us(self.p99_9)
        )
    }
}
