//! A Redis that never falls idle: calls made beforehand and sent again as they are, by turns on some
//! connections of which each waits for its own answer only. Nothing but sending is left to the sender, so a
//! call lies ready whenever one has been answered, as where several workers are busy.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use redis::{Parser, Value};

/// Bytes that are sent at once, and the number of their answers.
pub struct Packet {
    pub bytes: Vec<u8>,
    pub answers: usize,
}

/// Sends all packets, of which each connection has one on its way.
pub fn send(port: u16, connections: usize, packets: &[Packet]) {
    let connect = |_| (TcpStream::connect(("127.0.0.1", port)).unwrap(), Parser::new());
    let mut links: Vec<_> = (0..connections).map(connect).collect();
    links.iter().for_each(|(stream, _)| stream.set_nodelay(true).unwrap());
    for index in 0..packets.len() + connections {
        let (stream, parser) = &mut links[index % connections];
        if let Some(answered) = index.checked_sub(connections).and_then(|before| packets.get(before)) {
            for _ in 0..answered.answers {
                let answer = parser.parse_value(&mut *stream).unwrap();
                assert!(!matches!(answer, Value::ServerError(_)), "Redis answered {answer:?}");
            }
        }
        if let Some(packet) = packets.get(index) {
            stream.write_all(&packet.bytes).unwrap();
        }
    }
}

/// Stands before Redis and writes down what it is sent, from one connection.
pub struct Recorder {
    pub port: u16,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    pub fn before(redis: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&sent);
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", redis)).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = client.read(&mut buffer) {
                written.lock().unwrap().extend_from_slice(&buffer[..length]);
                server.write_all(&buffer[..length]).unwrap();
            }
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
        Self { port, sent }
    }

    /// The calls since the last time, each a packet.
    pub fn take(&self) -> Vec<Packet> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        let mut rest = &sent[..];
        let mut packets = Vec::new();
        while !rest.is_empty() {
            let (call, after) = rest.split_at(length_of(rest));
            packets.push(Packet { bytes: call.to_vec(), answers: 1 });
            rest = after;
        }
        packets
    }
}

/// Returns the length of the first call, which is an array of strings.
fn length_of(calls: &[u8]) -> usize {
    let mut at = 0;
    let mut line = |skip: usize| -> usize {
        at += skip;
        let end = at + calls[at..].iter().position(|byte| *byte == b'\n').unwrap();
        let number = std::str::from_utf8(&calls[at + 1..end - 1]).unwrap().parse().unwrap();
        at = end + 1;
        number
    };
    let mut skip = 0;
    for _ in 0..line(0) {
        skip = line(skip) + 2;
    }
    at + skip
}
