//! The same calls over both transports, `fast` and `tonic`: they get the same answers, and have the same effect.
//! What tonic does otherwise is in the table of differences of `crates/grpc/README.md`, and in
//! `transports/differences.rs`.

mod access;
mod any_call;
pub(crate) mod client;
mod differences;
mod ends;
#[cfg(feature = "envoy")]
mod envoy;
mod intercepted;
mod random;
mod rate_limit;

use std::sync::Arc;

use prometheus::Registry;
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use weir::features::FEATURES;
use weir_config::{MemoryConfig, ServerConfig, ServerLimits, TransportKind};
use weir_grpc::Peer;
use weir_node::audit::AuditLog;
use weir_node::feature::RunningFeature;
use weir_node::feature_parts::FeatureParts;
use weir_node::readiness::Readiness;
use weir_node::server::{ConnectionServer, LiveSnapshot, MakeIntercept, Parts, PortServices, StoreFiles};
use weir_node::service::Snapshot;
use weir_node::telemetry::Metrics;
use weir_proto::v1::ShouldAllowRequest;
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};

use self::client::{Call, Client, Outcome};
use crate::support::grpc::framed;
use crate::support::server::{BASE, config};

const TRANSPORTS: [TransportKind; 2] = [TransportKind::Fast, TransportKind::Tonic];

const SHOULD_ALLOW: &str = "/weir.v1.RateLimitService/ShouldAllow";
const BATCH: &str = "/weir.v1.RateLimitService/ShouldAllowBatch";
const STREAM: &str = "/weir.v1.RateLimitService/ShouldAllowStream";
const REFUND: &str = "/weir.v1.RateLimitService/Refund";
const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const RESET: &str = "/weir.v1.AdminService/Reset";
const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const METHODS: [&str; 9] = [SHOULD_ALLOW, BATCH, STREAM, REFUND, RATE_LIMIT, RESET, CHECK, WATCH, REFLECTION];

/// The services of one worker on a memory store of their own whose clock stands still.
struct Served {
    server: ConnectionServer<MemoryStore>,
    readiness: Readiness,
    stop: Option<watch::Sender<()>>,
    stopped: watch::Receiver<()>,
}

impl Served {
    fn by(transport: TransportKind) -> Self {
        Self::with(transport, ServerLimits::default(), None)
    }

    fn with(transport: TransportKind, limits: ServerLimits, intercept: Option<MakeIntercept>) -> Self {
        let rules = config().rules;
        let server =
            ServerConfig { transport, limits, admin_service: true, reflection: true, ..config().server };
        let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(ManualClock::at(BASE)));
        let metrics = Metrics::register(&Registry::new(), &rules).unwrap();
        let readiness = Readiness::starting(false);
        readiness.set(Ok(()));
        let (running, features) = features();
        let parts = Parts {
            live: LiveSnapshot::new(Snapshot { features, ..Snapshot::new(rules, &metrics) }),
            store: Box::new(move || store.clone().into()),
            store_files: StoreFiles::default(),
            readiness: readiness.clone(),
            metrics,
            audit: AuditLog::open(None, Clock::System).unwrap(),
            served: PortServices::All,
            intercept,
            tls: None,
            features: Vec::new(),
            running,
            known: FEATURES,
        };
        let server = ConnectionServer::new(&server, &parts).unwrap();
        let (stop, stopped) = watch::channel(());
        Self { server, readiness, stop: Some(stop), stopped }
    }

    /// One more connection, over any stream of bytes.
    fn serve(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        tokio::spawn(self.server.serve(stream, self.stopped.clone()));
    }

    /// One more connection, with this peer at its other end. Returns the task that serves it.
    fn serve_peer(
        &mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Arc<Peer>,
    ) -> JoinHandle<()> {
        tokio::spawn(self.server.serve_peer(stream, peer, self.stopped.clone()))
    }

    /// A client on a connection of its own.
    async fn client(&mut self) -> Client {
        let (ours, theirs) = duplex(64 << 10);
        self.serve(theirs);
        Client::connect(ours).await
    }

    /// Stops as a server does that closes.
    fn stop(&mut self) {
        self.readiness.close();
        self.stop = None;
    }
}

/// Features that serve calls, by name.
type ServedFeatures = Vec<(&'static str, Arc<dyn RunningFeature>)>;

/// Features that serve calls, and their parts of the snapshot.
fn features() -> (ServedFeatures, FeatureParts) {
    #[cfg(feature = "envoy")]
    return envoy::served();
    #[cfg(not(feature = "envoy"))]
    return (Vec::new(), FeatureParts::default());
}

/// The outcomes of the same calls, one after the other on one connection, on both transports.
async fn on_both(calls: &[Call]) -> [Vec<Outcome>; 2] {
    let mut outcomes = [Vec::new(), Vec::new()];
    for (transport, outcomes) in TRANSPORTS.into_iter().zip(&mut outcomes) {
        let mut served = Served::by(transport);
        let mut client = served.client().await;
        for call in calls {
            outcomes.push(client.call(call).await);
        }
    }
    outcomes
}

/// A call of one message.
fn unary(path: &str, message: &impl prost::Message) -> Call {
    Call::new(path, framed(0, &message.encode_to_vec()))
}

/// A question that changes nothing.
fn peek(resource: &str, consumer: &str) -> ShouldAllowRequest {
    ShouldAllowRequest { peek: true, ..crate::support::server::ask(resource, consumer) }
}
