//! The services of one worker.

use std::sync::Arc;

use tonic::service::Routes;
use tonic_reflection::server::Builder;

use weir_config::ServerConfig;
use weir_grpc::BufferBudget;
use weir_proto::health::health_server::{self, HealthServer};
use weir_proto::v1::{admin_service_server, rate_limit_service_server};
use weir_store::Store;
use weir_store::scripts::AskScripts;

use super::dispatch::methods;
use super::health::HealthApi;
use super::router::{KnownServices, Router};
use super::services::Services;
use super::worker_decisions::decisions as worker_decisions;
use super::{Parts, ServerError, WorkerStores};
use crate::feature::{self, FeatureServices, HotRoute, ServiceContext};
use crate::service::{AddRoutes, AdminApi, DecisionService, DecisionsApi};
use crate::telemetry::WorkerRecorder;

/// Bound of messages to health and reflection, which contain only names.
const MAX_SIDE_MESSAGE_BYTES: usize = 4 << 10;

/// Reflection, in both versions: older tools know only `v1alpha`.
const REFLECTION: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Creates the services of one worker, as far as they are enabled.
pub(super) fn services<S: Store>(
    stores: WorkerStores<S>,
    parts: &Parts<S>,
    worker: usize,
    config: &ServerConfig,
    budget: &BufferBudget,
) -> Result<Services<S>, ServerError> {
    let largest = config.limits.max_message_bytes;
    let recorder = Arc::new(WorkerRecorder::new(&parts.metrics));
    let bounds = (largest, Some(budget.clone()));
    let decisions = worker_decisions(stores.decisions, &parts.live, Arc::clone(&recorder), bounds);
    let scripts = stores.scripts.as_ref();
    let (of_features, hot) = services_of_features(parts, config, (worker, &decisions), (&recorder, scripts));
    let mut on = services_that_are_on(parts, config);
    on.extend(of_features.iter().map(|(name, _)| *name));
    let reflection = REFLECTION.into_iter().filter(|_| config.reflection);
    let healthy = on.iter().copied().chain(reflection).collect();
    let health = HealthServer::new(HealthApi::new(parts.readiness.clone(), healthy));
    let served = parts.served;
    let (calls, operations) = (served.calls(), served.operations());
    let mut routes = Routes::new(health.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES));
    if calls {
        routes = routes.add_service(DecisionsApi::server(&decisions));
    }
    if config.admin_service && operations {
        routes = routes.add_service(AdminApi::server(&decisions, parts.audit.clone()));
    }
    routes = of_features.into_iter().fold(routes, |routes, (_, add)| add(routes));
    if config.reflection {
        routes = with_reflection(routes, on.iter().copied())?;
    }
    let specs = || parts.known.iter().flat_map(|feature| feature.services());
    let methods = methods(largest, specs(), (&hot, served));
    let methods = match &parts.intercept {
        Some(intercept) => methods.intercepted_by(intercept()),
        None => methods,
    };
    let known =
        KnownServices { of_features: specs().copied().collect(), methods: feature::methods(parts.known) };
    Ok(Services { decisions, hot, router: Router::new(routes, Arc::new(known)), methods, on })
}

type NamedRoutes = Vec<(&'static str, AddRoutes)>;

/// Returns the services and hot methods of features, as far as they are on. They follow the snapshots while the worker lives.
fn services_of_features<S: Store>(
    parts: &Parts<S>,
    config: &ServerConfig,
    (worker, decisions): (usize, &Arc<DecisionService<S>>),
    (recorder, scripts): (&Arc<WorkerRecorder>, Option<&Arc<dyn AskScripts>>),
) -> (NamedRoutes, Vec<HotRoute>) {
    let mut context = ServiceContext {
        counters: Arc::clone(recorder.counters()),
        recorder: Arc::clone(recorder),
        worker,
        store: decisions.store(),
        deadlines: decisions.deadlines().clone(),
        scripts: scripts.cloned(),
        state: parts.readiness.subscribe(),
        audit: parts.audit.clone(),
        serves_calls: false,
        is_for_operators: parts.served.operations(),
        serves_operators: parts.served.operations() && config.admin_service,
    };
    let (mut routes, mut hot) = (NamedRoutes::new(), Vec::new());
    for (name, feature) in &parts.running {
        context.serves_calls = parts.served.calls_of(name);
        let services = parts.live.join(|snapshot| {
            let FeatureServices { routes, hot, follow } = feature.services(&context, snapshot);
            ((routes, hot), follow.unwrap_or_else(|| Box::new(|_| false)))
        });
        routes.extend(services.0);
        hot.extend(services.1);
    }
    (routes, hot)
}

/// Returns the full names of the enabled services, apart from reflection.
fn services_that_are_on<S>(parts: &Parts<S>, config: &ServerConfig) -> Vec<&'static str> {
    let (native, operations) = (parts.served.calls(), parts.served.operations());
    let administers = operations && config.admin_service;
    let all = [
        (native, rate_limit_service_server::SERVICE_NAME),
        (true, health_server::SERVICE_NAME),
        (administers, admin_service_server::SERVICE_NAME),
    ];
    all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect()
}

/// Adds reflection. Only enabled services are listed.
fn with_reflection(
    routes: Routes,
    services: impl Iterator<Item = &'static str> + Clone,
) -> Result<Routes, ServerError> {
    let health = weir_proto::health::descriptors();
    let failed = |error: tonic_reflection::server::Error| ServerError::Grpc(error.to_string());
    let builder = |own_name| {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(weir_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(&health)
            .with_service_name(own_name);
        services.clone().fold(builder, Builder::with_service_name)
    };
    let [v1, v1alpha] = REFLECTION;
    let v1 = builder(v1).build_v1().map_err(failed)?;
    let v1alpha = builder(v1alpha).build_v1alpha().map_err(failed)?;
    Ok(routes
        .add_service(v1.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES))
        .add_service(v1alpha.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES)))
}
