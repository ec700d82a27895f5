//! A control plane that behaves as those in Go do: it sends the whole set whenever a request names another version than
//! its own, ignores requests with an old nonce, and is silent until it has a set.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use prost::Message as _;
use prost_types::Any;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use weir_proto::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use weir_proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use weir_proto::ratelimit::config::ratelimit::v3::RateLimitConfig;

use super::{SOON, eventually};

/// The type of the resources.
pub(crate) const TYPE_URL: &str = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A response of the control plane.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) version: String,
    pub(crate) type_url: String,
    pub(crate) resources: Vec<Any>,
}

/// The server. It ends when it is dropped.
pub(crate) struct Ads {
    pub(crate) address: SocketAddr,
    shared: Arc<AdsState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct AdsState {
    sent: watch::Sender<Option<Sent>>,
    requests: Mutex<Vec<DiscoveryRequest>>,
    headers: Mutex<Vec<tonic::metadata::MetadataMap>>,
    nonces: AtomicUsize,
}

impl Ads {
    /// Serves in plain text.
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        Self::start_with(address, TcpListenerStream::new)
    }

    /// Serves the connections that `accept` makes of those of a listener.
    pub(crate) fn start_with<S, C, E>(
        address: SocketAddr,
        accept: impl FnOnce(TcpListener) -> S + Send + 'static,
    ) -> Self
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: tokio::io::AsyncRead
            + tokio::io::AsyncWrite
            + tonic::transport::server::Connected
            + Unpin
            + Send
            + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Its address was that of a server before, perhaps.
        let bind = || runtime.block_on(TcpListener::bind(address));
        let mut bound = bind();
        eventually(SOON, "the address is free", || {
            if bound.is_err() {
                bound = bind();
            }
            bound.is_ok()
        });
        let listener = bound.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(AdsState {
            sent: watch::Sender::new(None),
            requests: Mutex::default(),
            headers: Mutex::default(),
            nonces: AtomicUsize::default(),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let service = AggregatedDiscoveryServiceServer::new(AdsService(Arc::clone(&shared)));
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let serving = tonic::transport::Server::builder()
                    .add_service(service)
                    .serve_with_incoming(accept(listener));
                tokio::select! {
                    served = serving => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends these domains from now on.
    pub(crate) fn set(&self, version: &str, configs: &[RateLimitConfig]) {
        let of =
            |config: &RateLimitConfig| Any { type_url: TYPE_URL.to_owned(), value: config.encode_to_vec() };
        self.send(version, TYPE_URL, configs.iter().map(of).collect());
    }

    pub(crate) fn send(&self, version: &str, type_url: &str, resources: Vec<Any>) {
        let sent = Sent { version: version.to_owned(), type_url: type_url.to_owned(), resources };
        self.shared.sent.send_replace(Some(sent));
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<DiscoveryRequest> {
        self.shared.requests.lock().clone()
    }

    /// The headers of all streams so far.
    pub(crate) fn headers(&self) -> Vec<tonic::metadata::MetadataMap> {
        self.shared.headers.lock().clone()
    }

    /// Waits until this version is accepted.
    pub(crate) fn accepted(&self, version: &str) {
        eventually(SOON, &format!("{version} is accepted"), || {
            let requests = self.requests();
            requests.iter().any(|one| one.version_info == version && one.error_detail.is_none())
        });
    }

    /// The texts of all refusals.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let requests = self.requests();
        requests.into_iter().filter_map(|one| Some(one.error_detail?.message)).collect()
    }
}

impl Drop for Ads {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct AdsService(Arc<AdsState>);

#[tonic::async_trait]
impl AggregatedDiscoveryService for AdsService {
    type StreamAggregatedResourcesStream =
        Pin<Box<dyn Stream<Item = Result<DiscoveryResponse, Status>> + Send>>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        self.0.headers.lock().push(request.metadata().clone());
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(answer(Arc::clone(&self.0), request.into_inner(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

async fn answer(
    shared: Arc<AdsState>,
    mut requests: Streaming<DiscoveryRequest>,
    answers: mpsc::Sender<Result<DiscoveryResponse, Status>>,
) {
    let mut sets = shared.sent.subscribe();
    let (mut nonce, mut known) = (String::new(), None::<String>);
    loop {
        tokio::select! {
            request = requests.message() => {
                let Ok(Some(request)) = request else { return };
                shared.requests.lock().push(request.clone());
                if nonce.is_empty() || request.response_nonce == nonce {
                    known = Some(request.version_info);
                }
            }
            changed = sets.changed() => if changed.is_err() { return },
        }
        let sent = sets.borrow_and_update().clone();
        let Some(sent) = sent.filter(|sent| known.as_ref().is_some_and(|known| *known != sent.version))
        else {
            continue;
        };
        nonce = format!("n{}", shared.nonces.fetch_add(1, Relaxed));
        known = None;
        let Sent { version, type_url, resources } = sent;
        let response = DiscoveryResponse { version_info: version, resources, type_url, nonce: nonce.clone() };
        if answers.send(Ok(response)).await.is_err() {
            return;
        }
    }
}
