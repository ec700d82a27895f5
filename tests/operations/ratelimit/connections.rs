//! The bound of the connections to the port of `/healthcheck` and `/json`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use super::Ratelimit;
use crate::support::SOON;

/// The bound.
const MOST: usize = 1024;

/// A connection that is kept.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(to: SocketAddr, from: Ipv4Addr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&to.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Asks `/json`: the status, or `None` if the connection has been closed.
    fn asks(&mut self) -> Option<u16> {
        let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"free","value":"v"}]}]}"#;
        let head = "POST /json HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
        let request = format!("{head} {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        let mut length = 0;
        let mut status = None;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        status
    }
}

/// 1,024 callers are served, half of them from one address. One more takes the place of the one that has been silent longest.
#[test]
fn one_more_than_the_bound_replaces_the_one_that_waits_longest() {
    let started = Ratelimit::start(&[]);
    let (to, [first, second, third]) =
        (started.at(8080), [1, 2, 3].map(|last| Ipv4Addr::new(127, 98, 0, last)));
    let mut all: Vec<Kept> = Vec::new();
    for from in [first, second] {
        for _ in 0..MOST / 2 {
            let mut kept = Kept::open(to, from);
            assert_eq!(kept.asks(), Some(200));
            all.push(kept);
        }
    }
    assert_eq!(all.len(), MOST);
    let closed = |all: &mut [Kept]| -> Vec<usize> {
        all.iter_mut()
            .enumerate()
            .filter_map(|(place, one)| (one.asks() != Some(200)).then_some(place))
            .collect()
    };
    assert_eq!(closed(&mut all), Vec::<usize>::new(), "all live on");
    all.push(Kept::open(to, third));
    assert_eq!(all[MOST].asks(), Some(200), "it is served");
    assert_eq!(closed(&mut all), [0], "the oldest has made room");
    // An address has half of the bound.
    all.push(Kept::open(to, second));
    assert_eq!(all[MOST + 1].asks(), Some(200));
    assert_eq!(closed(&mut all), [0, MOST / 2], "the oldest of the same address");
}
