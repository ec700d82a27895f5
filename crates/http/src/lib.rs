//! The HTTP listener: Weir for everyone without gRPC.
//!
//! ```text
//!   connection ── pace: a slow client loses its connection
//!       └─ routes ─┬─ connect: headers and messages of Connect's unary protocol ── json ── calls of the node
//!                  └─ check: questions of proxies ───────────────────────────────────────── calls of the node
//! ```
//!
//! The methods are those of gRPC, and so are rights, bounds and answers: a request becomes the bytes of a gRPC message. This
//! crate knows HTTP and JSON, and nothing of limits.

mod answers;
mod body;
mod check;
mod codes;
mod connect;
mod connection;
pub mod json;
mod metadata;
mod metrics;
mod minutely;
mod openapi;
mod pace;
mod routes;
mod settings;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use weir_config::Config;
use weir_grpc::BufferBudget;
use weir_node::feature::{
    Feature, NodeBuilder, NodeCalls, RunningFeature, ServePort, SettingsSpec, StartError, WorkerContext,
    WorkerServices,
};

use weir_node::feature_parts::FeaturePart;

use self::check::{ConfiguredChecks, CurrentChecks};
use self::connection::HttpPort;
use self::json::{ProtoShapes, ShapeError};
pub use self::metadata::{AnswerMetadata, AnswerWithMetadata, MetadataCalls};
use self::metrics::HttpMetrics;
pub use self::openapi::openapi;
use self::routes::Routes;
use self::settings::{HttpSettings, SECTION};

/// The shapes of all messages and methods of Weir.
static SHAPES: LazyLock<Result<ProtoShapes, ShapeError>> =
    LazyLock::new(|| ProtoShapes::new(weir_proto::DESCRIPTORS));

/// The name of the feature, and of its section.
const NAME: &str = "http";

/// Bytes that the clients of other methods may hold.
const BYTES_OF_OTHERS: usize = 64 << 20;

/// The feature `http`.
#[derive(Debug)]
pub struct HttpFeature;

/// The listener, once it runs.
struct HttpListener {
    settings: HttpSettings,
    checks: Arc<CurrentChecks>,
    has_identity: bool,
    metrics: HttpMetrics,
    shapes: &'static ProtoShapes,
}

impl Feature for HttpFeature {
    fn name(&self) -> &'static str {
        NAME
    }

    fn settings(&self) -> SettingsSpec {
        SettingsSpec { sections: &[SECTION] }
    }

    fn prepare(
        &self,
        next: &Config,
        previous: Option<&FeaturePart>,
    ) -> Result<Option<FeaturePart>, Vec<String>> {
        // The end of the section needs a restart, as its beginning: until then the checks that are served stay.
        let checks =
            next.section::<HttpSettings>(NAME).map(|settings| ConfiguredChecks(settings.checks.clone()));
        Ok(checks.map(|checks| FeaturePart::new(Arc::new(checks))).or_else(|| previous.cloned()))
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        let Some(settings) = node.config.section::<HttpSettings>(self.name()) else { return Ok(None) };
        let shapes = shapes().map_err(|error| StartError::Other(error.to_string()))?;
        let metrics = HttpMetrics::new(Arc::clone(&node.refused_connections))?;
        // Each family is shown from the start.
        ["check", "other"].iter().for_each(|route| drop(metrics.route(route)));
        node.show(metrics.clone())?;
        let has_identity = node.config.has_identity();
        let checks = Arc::new(CurrentChecks::new(metrics.clone()));
        let followed = Arc::clone(&checks);
        node.followers.push(Box::new(move |snapshot| {
            followed.follow(&snapshot.features);
            true
        }));
        let settings = settings.clone();
        Ok(Some(Arc::new(HttpListener { settings, checks, has_identity, metrics, shapes })))
    }
}

impl RunningFeature for HttpListener {
    fn worker(&self, worker: &WorkerContext) -> WorkerServices {
        let routes =
            Routes::new(self.shapes, Arc::clone(&worker.calls), worker.budget.clone(), &self.metrics);
        let routes = routes.with_checks(Arc::clone(&self.checks), self.has_identity);
        let port = HttpPort::new(routes, self.settings.clone(), self.metrics.clone(), worker.budget.clone());
        let port = port.ending_if(Arc::clone(&worker.draining));
        WorkerServices { port: Some(Arc::new(port)) }
    }
}

/// Returns a port that serves other methods behind this layer, for the program of the conformance suite.
pub fn port_with_metadata(
    shapes: &'static ProtoShapes,
    calls: Arc<dyn NodeCalls>,
    with_metadata: Arc<dyn MetadataCalls>,
) -> Result<Arc<dyn ServePort>, StartError> {
    let metrics = HttpMetrics::new(Arc::default())?;
    let budget = BufferBudget::new(BYTES_OF_OTHERS, 1);
    let routes = Routes::new(shapes, calls, budget.clone(), &metrics).with_metadata(with_metadata);
    let settings = HttpSettings {
        checks: Vec::new(),
        idle_timeout: Duration::from_secs(75),
        max_connection_age: Duration::from_secs(3_600),
    };
    Ok(Arc::new(HttpPort::new(routes, settings, metrics, budget)))
}

/// Returns the shapes of all messages and methods of Weir.
pub fn shapes() -> Result<&'static ProtoShapes, &'static ShapeError> {
    SHAPES.as_ref()
}
