//! The client: one stream after the other, for ever.

use std::error::Error as _;
use std::time::Duration;

use crate::settings::{EnvoyConfig, XdsAddress, XdsConfig, pairs};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::Endpoint;
use tonic::{Request, Streaming};
use weir_proto::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use weir_proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use weir_time::clock::Clock;

use super::backoff::Backoff;
use super::connector::XdsConnector;
use super::exchange::{SetNews, XdsExchange};
use super::resources::SetRules;
use super::{TYPE_URL, XdsSets, XdsUpdates};
use crate::metrics::XdsMetrics;

/// Requests on their way: there is one at a time.
const REQUESTS: usize = 2;

/// Times of the client. Tests have others.
#[derive(Debug, Clone)]
pub struct XdsTiming {
    /// The clock of the metrics.
    pub clock: Clock,
    /// The time before a set is refused that was refused before.
    pub refuse_again: Duration,
    /// The longest such time.
    pub refuse_again_most: Duration,
}

impl From<Clock> for XdsTiming {
    fn from(clock: Clock) -> Self {
        Self { clock, refuse_again: Duration::from_secs(1), refuse_again_most: Duration::from_secs(10) }
    }
}

/// The client of one control plane.
#[derive(Debug)]
pub struct XdsClient {
    config: XdsConfig,
    sets: XdsSets,
    metrics: XdsMetrics,
    exchange: XdsExchange,
    backoff: Backoff,
    /// The last reason for having no connection that was logged.
    told: String,
}

impl XdsClient {
    /// A client that gives what it receives to `updates`.
    #[must_use]
    pub fn new(
        envoy: &EnvoyConfig,
        config: &XdsConfig,
        timing: XdsTiming,
        metrics: XdsMetrics,
        updates: XdsUpdates,
    ) -> Self {
        let span = |micros: weir_units::Micros| Duration::from_micros(micros.0);
        Self {
            exchange: XdsExchange::new(config, timing.refuse_again, timing.refuse_again_most),
            backoff: Backoff::new(span(config.min_backoff), span(config.max_backoff)),
            config: config.clone(),
            sets: XdsSets::new(
                SetRules {
                    merge_domains: envoy.merge_domains,
                    max_rules: envoy.max_rules,
                    overlay: envoy.rules.clone(),
                },
                timing.clock,
                metrics.clone(),
                updates,
            ),
            metrics,
            told: String::new(),
        }
    }

    /// The sets that it receives.
    #[must_use]
    pub fn sets(&self) -> XdsSets {
        self.sets.clone()
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let server = self.config.server.clone();
        loop {
            self.metrics.connected(false, format!("connecting to {server}"));
            let Err(reason) = self.connect().await;
            self.metrics.connected(false, format!("there is no stream from {server}: {reason}"));
            if self.told != reason {
                tracing::warn!(server, reason, "control plane sends nothing; keeping the current limits");
                self.told = reason;
            }
            tokio::time::sleep(self.backoff.next()).await;
        }
    }

    /// Connects, and takes what comes, until that ends. Returns the reason.
    async fn connect(&mut self) -> Result<std::convert::Infallible, String> {
        let address = XdsAddress::parse(&self.config.server)?;
        let endpoint =
            Endpoint::from_shared(format!("http://{address}")).map_err(|error| innermost(&error))?;
        let connector = XdsConnector { address, tls: self.config.tls.clone() };
        let channel = endpoint.connect_with_connector(connector).await.map_err(|error| innermost(&error))?;
        let server = &self.config.server;
        self.metrics.connected(true, format!("connected to {server}, which has sent nothing on this stream"));
        let (requests, receiver) = mpsc::channel(REQUESTS);
        // It has room for this.
        let _ = requests.try_send(self.exchange.first());
        let mut request = Request::new(ReceiverStream::new(receiver));
        add_headers(&self.config, request.metadata_mut())?;
        let client = AggregatedDiscoveryServiceClient::new(channel);
        let mut client = client.max_decoding_message_size(self.config.max_message_bytes);
        // A server that has no configuration yet is silent for as long as it likes.
        let answer = client.stream_aggregated_resources(request).await.map_err(|status| shown(&status))?;
        self.take_all(answer.into_inner(), &requests).await
    }

    async fn take_all(
        &mut self,
        mut responses: Streaming<DiscoveryResponse>,
        requests: &mpsc::Sender<DiscoveryRequest>,
    ) -> Result<std::convert::Infallible, String> {
        let mut next = received(&mut responses).await?;
        let sets = self.sets.clone();
        loop {
            let answer = match self.exchange.news(&next, self.sets.overlays()) {
                SetNews::New(digest) => self.take(&mut next, digest),
                SetNews::Known => self.accept(&next, None),
                SetNews::RefusedBefore(wait) => {
                    match tokio::time::timeout(wait, received(&mut responses)).await {
                        Ok(newer) => {
                            next = newer?;
                            continue;
                        }
                        Err(_) => self.refused(self.exchange.refuse_again(&next)),
                    }
                }
            };
            requests.send(answer).await.map_err(|_| "the stream ended".to_owned())?;
            let answered = next;
            next = loop {
                tokio::select! {
                    newer = received(&mut responses) => break newer?,
                    is_good = sets.overlaid() => {
                        // A server that knows of the refusal sends the set no more.
                        if is_good && self.exchange.is_refused() {
                            let answer = self.accept(&answered, None);
                            requests.send(answer).await.map_err(|_| "the stream ended".to_owned())?;
                        }
                    }
                }
            };
        }
    }

    /// Reads a set, and serves what is good of it.
    fn take(&mut self, response: &mut DiscoveryResponse, digest: [u8; 32]) -> DiscoveryRequest {
        let resources = std::mem::take(&mut response.resources);
        let mistakes = self.sets.take(&response.version_info, resources);
        match mistakes.is_empty() {
            true => self.accept(response, Some(digest)),
            false => {
                let answer = self.exchange.refuse(response, digest, mistakes.join("\n"));
                self.refused(answer)
            }
        }
    }

    fn accept(&mut self, response: &DiscoveryResponse, digest: Option<[u8; 32]>) -> DiscoveryRequest {
        self.metrics.accepted();
        self.took(response);
        self.exchange.accept(response, digest)
    }

    fn refused(&mut self, answer: DiscoveryRequest) -> DiscoveryRequest {
        self.metrics.refused();
        self.backoff.reset();
        self.told.clear();
        answer
    }

    /// A stream that has delivered is a good one.
    fn took(&mut self, response: &DiscoveryResponse) {
        let (server, version) = (&self.config.server, &response.version_info);
        self.metrics.connected(true, format!("connected to {server}; version {version:?} is served"));
        self.backoff.reset();
        self.told.clear();
    }
}

/// The next response; or the reason why there is none.
async fn received(responses: &mut Streaming<DiscoveryResponse>) -> Result<DiscoveryResponse, String> {
    match responses.message().await {
        Ok(Some(response)) if response.type_url == TYPE_URL => Ok(response),
        Ok(Some(response)) => {
            let shown = super::descriptors::shortened(&response.type_url);
            Err(format!("it sent resources of the type {shown:?}, which nobody asked for"))
        }
        Ok(None) => Err("it ended the stream".to_owned()),
        Err(status) => Err(shown(&status)),
    }
}

fn add_headers(config: &XdsConfig, metadata: &mut MetadataMap) -> Result<(), String> {
    let Some(headers) = &config.call_headers else { return Ok(()) };
    let headers = headers.read().map_err(|error| error.to_string())?;
    for (name, value) in pairs(&headers, ':').unwrap_or_default() {
        let key = MetadataKey::<Ascii>::from_bytes(name.to_ascii_lowercase().as_bytes());
        let value = MetadataValue::<Ascii>::try_from(value);
        // The reason would show a part of a secret.
        let (Ok(key), Ok(mut value)) = (key, value) else {
            return Err("the headers of the call are not names and values of headers".to_owned());
        };
        value.set_sensitive(true);
        metadata.append(key, value);
    }
    Ok(())
}

fn shown(status: &tonic::Status) -> String {
    let cause = status.source().map(|source| format!(" ({})", innermost(source))).unwrap_or_default();
    format!("{:?}: {}{cause}", status.code(), super::descriptors::shortened(status.message()))
}

/// The cause that says most: the last of the chain.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
