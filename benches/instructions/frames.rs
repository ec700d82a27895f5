//! From the frames of requests to the frames of their answers: the session and the services of one
//! connection over a pipe in memory. The client here does next to nothing: what it sends was made beforehand.

use prometheus::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::LocalSet;
use weir_config::{ServerConfig, TransportKind};
use weir_core::strategy::Rules;
use weir_node::audit::AuditLog;
use weir_node::readiness::Readiness;
use weir_node::server::{ConnectionServer, LiveSnapshot, Parts, PortServices, StoreFiles};
use weir_node::service::Snapshot;
use weir_node::telemetry::Metrics;
use weir_store::memory::MemoryStore;
use weir_time::clock::Clock;

use crate::identity::Credential;
use crate::{bare, h2_alone};

/// A frame's bytes before its payload.
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The most of a payload that every peer takes.
const LARGEST_PAYLOAD: usize = 16_384;

/// Makes `calls` rounds of `together` calls to `method`, each with this message, and waits for each round.
pub(crate) fn perform(
    (transport, credential): (TransportKind, Credential),
    store: MemoryStore,
    rules: Rules,
    method: &str,
    message: &[u8],
    together: u32,
    calls: u64,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let metrics = Metrics::register(&Registry::new(), &rules).unwrap();
        let readiness = Readiness::starting(true);
        readiness.set(Ok(()));
        let store = Box::new(move || store.clone().into());
        let identified = credential.identified();
        let parts = Parts {
            live: LiveSnapshot::new(Snapshot::new(rules, &metrics)),
            store,
            store_files: StoreFiles::default(),
            readiness,
            metrics,
            audit: AuditLog::open(None, Clock::System).unwrap(),
            served: PortServices::All,
            intercept: identified.intercept,
            tls: None,
            features: Vec::new(),
            running: Vec::new(),
            known: &[],
        };
        let mut server =
            ConnectionServer::new(&ServerConfig { transport, ..ServerConfig::default() }, &parts).unwrap();
        let (ours, theirs) = duplex(256 << 10);
        let (_stop, stopped) = watch::channel(());
        tokio::spawn(server.serve_peer(theirs, identified.peer, stopped));
        let mut client = Client::connect(ours, method, identified.authorization.as_deref()).await;
        for _ in 0..calls {
            client.round(message, together).await;
        }
    });
}

/// The same calls of ShouldAllow to a server that always answers the same: by the crate h2, or by tonic.
pub(crate) fn perform_constant(is_h2: bool, message: &[u8], together: u32, calls: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (ours, theirs) = duplex(256 << 10);
        if is_h2 {
            tokio::task::spawn_local(h2_alone::connection(theirs, bare::framed_answer()));
        } else {
            tokio::task::spawn_local(bare::connection(theirs));
        }
        let mut client = Client::connect(ours, "ShouldAllow", None).await;
        for _ in 0..calls {
            client.round(message, together).await;
        }
    });
}

/// One connection, and what it has said of the headers of its calls.
struct Client {
    stream: DuplexStream,
    block: Vec<u8>,
    next: u32,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Client {
    async fn connect(mut stream: DuplexStream, method: &str, authorization: Option<&str>) -> Self {
        let most = ((1_u32 << 31) - 1).to_be_bytes();
        let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        push(&mut out, SETTINGS, 0, 0, &[&[0, 4][..], &most].concat());
        push(&mut out, WINDOW_UPDATE, 0, 0, &((1_u32 << 31) - 1 - 65_535).to_be_bytes());
        let path = format!("/weir.v1.RateLimitService/{method}");
        let mut fields = vec![
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "weir"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "bench"),
            ("grpc-timeout", "1S"),
        ];
        fields.extend(authorization.map(|value| ("authorization", value)));
        let mut encoder = fluke_hpack::Encoder::new();
        let mut encode =
            || encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        // The first call puts its headers into the table; those after it refer to them.
        let first = encode();
        push(&mut out, HEADERS, END_HEADERS, 1, &first);
        push(&mut out, DATA, END_STREAM, 1, &[0, 0, 0, 0, 0]);
        stream.write_all(&out).await.unwrap();
        // All answers of a round fit: how many reads they take must not depend on the length of the first.
        let received = Vec::with_capacity(256 << 10);
        let mut client = Self { stream, block: encode(), next: 3, sent: Vec::new(), received };
        client.read(1).await;
        client
    }

    /// Sends so many calls in one write, and reads until all are answered.
    async fn round(&mut self, message: &[u8], together: u32) {
        self.sent.clear();
        for _ in 0..together {
            let id = self.next;
            self.next += 2;
            push(&mut self.sent, HEADERS, END_HEADERS, id, &self.block);
            let mut pieces = message.chunks(LARGEST_PAYLOAD).peekable();
            while let Some(piece) = pieces.next() {
                let flags = if pieces.peek().is_none() { END_STREAM } else { 0 };
                push(&mut self.sent, DATA, flags, id, piece);
            }
        }
        self.stream.write_all(&self.sent).await.unwrap();
        self.read(together).await;
    }

    /// Reads until so many streams have ended.
    async fn read(&mut self, streams: u32) {
        let mut ended = 0;
        while ended < streams {
            assert!(self.stream.read_buf(&mut self.received).await.unwrap() > 0, "the server went away");
            let mut taken = 0;
            while let Some(head) = self.received.get(taken..taken + HEAD) {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let ends = matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0;
                if self.received.len() < taken + HEAD + length {
                    break;
                }
                ended += u32::from(ends);
                taken += HEAD + length;
            }
            self.received.drain(..taken);
        }
    }
}

fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
