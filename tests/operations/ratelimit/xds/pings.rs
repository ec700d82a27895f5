//! Servers in Go end a connection whose client sends HTTP/2 PINGs more often than every five minutes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Ads, config, leaf, start};

const PREFACE: usize = 24;
const HEAD: usize = 9;
const HEADERS: u8 = 1;
const PING: u8 = 6;

/// Passes bytes on, and keeps those of the client.
fn tap(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        let Ok((mut client, _)) = listener.accept() else { return };
        let mut upstream = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            kept.lock().extend_from_slice(&buffer[..count]);
            if upstream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
    (address, seen)
}

/// The kinds and flags of all whole frames.
fn frames(bytes: &[u8]) -> Vec<(u8, u8)> {
    let (mut rest, mut found) = (&bytes[PREFACE..], Vec::new());
    while let Some((head, after)) = rest.split_at_checked(HEAD) {
        found.push((head[3], head[4]));
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some((_, next)) = after.split_at_checked(length) else { break };
        rest = next;
    }
    found
}

/// Not even while it receives much, when other clients measure the connection with PINGs.
#[test]
fn none_is_sent() {
    let ads = Ads::start();
    let many = (0..40_000).map(|number| leaf(&format!("{}{number}", "k".repeat(100)), "", 1)).collect();
    ads.set("1", &[config("d", many)]);
    let (address, seen) = tap(ads.address);
    let _started = start(&address.to_string(), &[("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]);
    ads.accepted("1");
    let frames = frames(&seen.lock());
    assert!(frames.iter().any(|(kind, _)| *kind == HEADERS), "{frames:?}");
    assert!(!frames.iter().any(|(kind, flags)| *kind == PING && flags & 1 == 0), "{frames:?}");
}
