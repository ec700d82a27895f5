//! Clients that waste handshakes, and files that change all the time, beside callers who must not notice. Times are
//! printed; what is asserted is that nobody fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::*;
use weir_testing::{eventually, is_short};

/// Length of a turn of each attack, and of the time beside it.
const LENGTH: Duration = Duration::from_millis(2_500);

/// Turns of each, so that a slow moment of the machine is in both.
const TURNS: u32 = 2;

/// Silent connections that are open at a time.
const SILENT: usize = 10_000;

/// An attack in a thread of its own, until it is dropped.
struct Attack {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Attack {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                step();
                counted.fetch_add(1, Relaxed);
            }
        });
        Self { stop, count, thread: Some(thread) }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Two threads that take a core each and nothing else.
fn computing() -> [Attack; 2] {
    let compute = || {
        for step in 0..10_000_u64 {
            std::hint::black_box(step);
        }
    };
    [Attack::start(compute), Attack::start(compute)]
}

/// A connection from another address than the callers'. It may be reset at any time.
fn connect_from(address: &str, to: SocketAddr) -> Option<TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    let own: SocketAddr = format!("{address}:0").parse().unwrap();
    socket.bind(&own.into()).ok()?;
    socket.connect_timeout(&to.into(), SOON).ok()?;
    Some(socket.into())
}

/// The times of calls: of those on an open connection, and of those that connect.
#[derive(Default)]
struct Times {
    calls: Vec<Duration>,
    connects: Vec<Duration>,
}

impl Times {
    /// Calls for a while; all are served.
    async fn add(&mut self, server: &Server, authority: &Authority, issued: &Issued) {
        let mut open = connect(server, authority, Some(issued)).await.unwrap();
        let begin = Instant::now();
        while begin.elapsed() < LENGTH {
            for _ in 0..20 {
                let called = Instant::now();
                open.should_allow(ask("burst/x", "a")).await.unwrap();
                self.calls.push(called.elapsed());
            }
            let connected = Instant::now();
            call_anew(server, authority, Some(issued)).await.expect("new callers are served");
            self.connects.push(connected.elapsed());
        }
    }

    /// p99 of calls, and the longest time to connect.
    fn shown(&mut self) -> String {
        self.calls.sort_unstable();
        let p99 = self.calls[self.calls.len() * 99 / 100];
        format!("p99 of calls {p99:?}, slowest connect {:?}", self.connects.iter().max().unwrap())
    }
}

/// Calls alone, beside threads that only compute, and beside an attack, by turns. The attack has begun after so many
/// steps. A short run has one turn of the attack, without the times to compare. An attacker on this machine takes a core, and
/// its connections keep the kernel and the acceptor of another one busy, whatever the server does with them: the threads that
/// compute show how much of a slower p99 is that.
async fn besides(name: &str, begun: usize, attack: impl Fn(SocketAddr) -> Attack) {
    weir_node::server::raise_open_files();
    let authority = Authority::create();
    let issued = authority.issue("client", &["client"]);
    for transport in TRANSPORTS {
        let server = serve(transport, mutual(&authority, ClientAuth::Required));
        let (mut quiet, mut busy, mut attacked, mut count) =
            (Times::default(), Times::default(), Times::default(), 0);
        for _ in 0..if is_short() { 1 } else { TURNS } {
            if !is_short() {
                quiet.add(&server, &authority, &issued).await;
                let computing = computing();
                busy.add(&server, &authority, &issued).await;
                drop(computing);
            }
            let attack = attack(server.grpc);
            let steps = || attack.count.load(Relaxed);
            eventually(SOON, "the attack has begun", || steps() > begun as u64);
            attacked.add(&server, &authority, &issued).await;
            count += steps();
        }
        println!("{name} on {transport:?}, {count} times: {}", attacked.shown());
        if !is_short() {
            println!("  beside two threads that compute: {}; alone: {}", busy.shown(), quiet.shown());
        }
        assert_eq!(
            metric(&server, "weir_connections_refused_total"),
            0.0,
            "attackers do not use up max_connections"
        );
    }
}

/// Connections that send nothing, and keep coming: from several addresses, as one has too few ports.
#[tokio::test]
async fn silent_connections() {
    besides("silent connections", SILENT, |to| {
        let (mut open, mut next) = (std::collections::VecDeque::new(), 0_u8);
        Attack::start(move || {
            next = (next + 1) % 8;
            open.extend(connect_from(&format!("127.0.0.{}", 2 + next), to));
            if open.len() > SILENT {
                open.pop_front();
            }
        })
    })
    .await;
}

/// Complete ClientHellos, thrown away.
#[tokio::test]
async fn abandoned_handshakes() {
    let authority = Authority::create();
    let config = client_files(&authority, None);
    besides("abandoned handshakes", 300, move |to| {
        let config = Arc::clone(&config);
        let mut tls = ClientConnection::new(config, ServerName::try_from(NAME).unwrap()).unwrap();
        let mut hello = Vec::new();
        tls.write_tls(&mut hello).unwrap();
        let mut open = std::collections::VecDeque::new();
        Attack::start(move || {
            if let Some(mut socket) = connect_from("127.0.0.2", to) {
                let _ = socket.write_all(&hello);
                open.push_back(socket);
            }
            if open.len() > 100 {
                open.pop_front();
            }
        })
    })
    .await;
}

/// Complete handshakes without a call.
#[tokio::test]
async fn handshakes_without_calls() {
    let authority = Authority::create();
    let config = client_files(&authority, None);
    besides("handshakes without calls", 300, move |to| {
        let config = Arc::clone(&config);
        Attack::start(move || {
            // Refused for its certificate, at the very end.
            let _ = Raw::connect(to, Arc::clone(&config));
        })
    })
    .await;
}

/// Certificates, authorities and revocation lists change all the time, and no call fails.
#[tokio::test]
async fn files_that_change_under_load() {
    let authority = Authority::create();
    let issued = authority.issue("client", &["client"]);
    for transport in TRANSPORTS {
        let crl = authority.revoke(&[]);
        let server = serve(transport, revoking(&authority, crl));
        let loads = || metric(&server, "weir_tls_loads_total{result=\"done\"}");
        let begin = Instant::now();
        let (mut turn, mut calls) = (0, 0);
        let mut open = connect(&server, &authority, Some(&issued)).await.unwrap();
        while begin.elapsed() < if is_short() { LENGTH } else { 4 * LENGTH } {
            if begin.elapsed() > Duration::from_millis(300 * turn) {
                turn += 1;
                authority.revoke(&[1_000_000 + turn]);
                authority.issue("server", &[NAME]);
            }
            open.should_allow(ask("burst/x", "a")).await.unwrap();
            assert!(is_served(&server, &authority, Some(&issued)).await);
            calls += 2;
        }
        assert!(loads() > 3.0, "{} loads", loads());
        println!("{transport:?}: {calls} calls, {turn} changes, {} loads", loads());
    }
}
