//! Peers that want memory or time: what they cost is bounded, and others are served. Each against a process of
//! its own, whose memory is its alone.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};
use weir_testing::usage;

use tempfile::TempDir;
use tonic::transport::Endpoint;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use super::requests::{ONE, STREAM, call, data, fields, head, headers, plain, streamed};
use crate::support::frames::{
    DATA, END_STREAM, ObservedEnd, PREFACE, Raw, frame, ping, rst_stream, settings, window_update,
};
use crate::support::server::ask_under;
use crate::support::{Process, RedisServer, SOON, eventually, ports, scratch};

/// The growth that a process may have, whatever its peers do: the windows, the buffers and the tables of one
/// connection are some hundred KiB.
const BOUND: u64 = 24 << 20;

/// Bytes that a peer sends if it can: more than that.
const FLOOD: usize = 40 << 20;

const RULES: &str = "
strategies:
  open: { limits: [{ name: each, per: [resource, consumer], token_bucket: { burst: 5, rate: 1/s } }] }
";

pub(super) struct Attacked {
    process: Process,
    pub(super) address: SocketAddr,
    before: u64,
    _folder: TempDir,
}

impl Attacked {
    pub(super) fn start() -> Self {
        Self::with("fast", RULES)
    }

    /// With a queue `jobs` on this Redis.
    pub(super) fn with_queue(transport: &str, redis: &RedisServer) -> Self {
        let store = format!("store: {{ redis: {{ nodes: [\"{}\"] }} }}", redis.url());
        Self::with(transport, &format!("{RULES}\n{store}\nqueues: {{ jobs: {{ capacity: 10 }} }}\n"))
    }

    fn with(transport: &str, rules: &str) -> Self {
        let folder = scratch::dir("floods-");
        let (port, file) = (ports::free(), folder.path().join("weir.yaml"));
        let server = format!(
            "server: {{ listen: \"127.0.0.1:{port}\", admin: \"127.0.0.1:0\", workers: 2, transport: {transport} }}"
        );
        std::fs::write(&file, format!("{server}\n{rules}")).unwrap();
        let mut command = Process::command(env!("CARGO_BIN_EXE_weir"));
        command.args(["serve", "--config"]).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        eventually(SOON, "it listens", || std::net::TcpStream::connect(address).is_ok());
        let mut attacked = Self { process, address, before: 0, _folder: folder };
        (0..8).for_each(|_| attacked.serves());
        attacked.before = attacked.memory();
        attacked
    }

    /// Returns the CPU time that the process has used, in hundredths of a second.
    pub(super) fn cpu(&self) -> u128 {
        usage::cpu_time(self.process.pid()).as_millis() / 10
    }

    pub(super) fn memory(&self) -> u64 {
        usage::resident_bytes(self.process.pid())
    }

    /// The memory once nothing changes it any more.
    pub(super) fn idle(&self) -> u64 {
        let (mut memory, mut steady) = (self.memory(), 0);
        while steady < 20 {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.memory();
            steady = if now.abs_diff(memory) > 256 << 10 { 0 } else { steady + 1 };
            memory = if steady == 0 { now } else { memory };
        }
        memory
    }

    /// Others are served, and little memory has been taken.
    pub(super) fn serves(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
            let mut client = RateLimitServiceClient::new(endpoint.connect().await.unwrap());
            let peek = weir_proto::v1::ShouldAllowRequest { peek: true, ..ask_under("open", "x", "bob") };
            assert!(client.should_allow(peek).await.expect("others are served").into_inner().allowed);
        });
    }

    fn has_not_grown(&mut self) {
        assert!(self.process.is_responsive());
        self.serves();
        let now = self.memory();
        let grown = now.saturating_sub(self.before);
        assert!(grown < BOUND, "from {} by {grown} bytes", self.before);
    }

    /// Sends what `next` makes until it is too much, or the other side takes no more of it; how it ended.
    fn flood(&mut self, opening: &[&[u8]], mut next: impl FnMut(u32) -> Vec<u8>) -> ObservedEnd {
        let mut raw = Raw::connect(self.address);
        raw.stream().set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        raw.send(&opening.concat());
        let (mut sent, mut index) = (0, 0);
        let started = Instant::now();
        while sent < FLOOD && started.elapsed() < Duration::from_secs(5) {
            let mut bytes = Vec::new();
            while bytes.len() < 64 << 10 {
                bytes.extend(next(index));
                index += 1;
            }
            sent += bytes.len();
            if raw.stream().write_all(&bytes).is_err() {
                break;
            }
        }
        self.has_not_grown();
        raw.stream().set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let end = raw.end();
        self.has_not_grown();
        end
    }
}

pub(super) const OPENING: [&[u8]; 2] = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]];

type Flood = (&'static str, fn(u32) -> Vec<u8>);

/// Answers that the peer never reads are not kept for it.
#[test]
fn answers_that_are_not_read() {
    let mut attacked = Attacked::start();
    let floods: [Flood; 7] = [
        ("calls that are reset", |index| {
            let stream = 1 + 2 * index;
            [head(stream, ONE), rst_stream(stream)].concat()
        }),
        ("PING", |_| ping(*b"flooding")),
        ("SETTINGS", |_| settings(&[])),
        ("SETTINGS that change", |index| settings(&[(1, index % 4096), (4, index)])),
        ("calls", |index| call(1 + 2 * index)),
        ("calls that fail", |index| headers(1 + 2 * index, END_STREAM, &plain(&fields("/no/thing")))),
        ("streams", |index| [head(1 + 2 * index, STREAM), data(1 + 2 * index, &streamed(1))].concat()),
    ];
    for (what, next) in floods {
        let end = attacked.flood(&OPENING, next);
        println!("{what}: {end:?}");
    }
}

/// Frames that cost work and carry nothing: the connection may end or be read on and on.
#[test]
fn frames_for_nothing() {
    let mut attacked = Attacked::start();
    let opened = head(1, STREAM);
    let floods: [(&str, Vec<u8>); 5] = [
        ("empty DATA", frame(DATA, 0, 1, &[])),
        ("PRIORITY", frame(2, 0, 1, &[0, 0, 0, 3, 7])),
        ("WINDOW_UPDATE", window_update(1, 1)),
        ("unknown frames", frame(0x42, 0, 0, &[0; 100])),
        ("resets of what has been reset", rst_stream(1)),
    ];
    for (what, bytes) in floods {
        let opening = [&OPENING[..], &[&opened]].concat();
        let end = attacked.flood(&opening, |_| bytes.clone());
        println!("{what}: {end:?}");
    }
}
