//! The gRPC ports: that of all callers, and that of operators if it is a port of its own.

use std::sync::Arc;

use weir_config::ServerConfig;
use weir_store::Store;

use super::{AppError, Listeners};
use crate::access::CallerAccess;
use crate::audit::AuditLog;
use crate::feature::{FeatureList, RunningFeature};
use crate::readiness::Readiness;
use crate::server::{
    self, LiveSnapshot, MAX_OPERATORS, MakeIntercept, MakeStores, Parts, PortServices, ShutdownSignal,
    StartedFeature, StoreFiles, start_operations,
};
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

/// Parts that both ports share.
pub(super) struct GrpcPorts<S> {
    pub(super) live: Arc<LiveSnapshot>,
    pub(super) store: Arc<MakeStores<S>>,
    /// Open files of the stores of all workers.
    pub(super) store_files: StoreFiles,
    pub(super) readiness: Readiness,
    pub(super) metrics: Metrics,
    pub(super) audit: AuditLog,
    pub(super) access: Option<Arc<CallerAccess>>,
    /// The features, whose ports run beside that of all callers.
    pub(super) features: Vec<StartedFeature>,
    /// Running features, for their services on each port.
    pub(super) running: Vec<(&'static str, Arc<dyn RunningFeature>)>,
    pub(super) known: FeatureList,
}

/// TLS of both ports; without it they are plain text.
pub(super) struct GrpcTls {
    pub(super) callers: Option<Arc<TlsPort>>,
    pub(super) operators: Option<Arc<TlsPort>>,
}

impl<S: Store> GrpcPorts<S> {
    /// Serves until the end of the process.
    pub(super) fn serve(
        mut self,
        config: &ServerConfig,
        listeners: Listeners,
        tls: GrpcTls,
        shutdown: ShutdownSignal,
    ) -> Result<(), AppError> {
        let served = match (&config.alone, &listeners.operations) {
            (Some(alone), _) => PortServices::Feature(alone.feature),
            (None, Some(_)) => PortServices::Calls,
            (None, None) => PortServices::All,
        };
        self.store_files.always += if listeners.operations.is_some() { MAX_OPERATORS } else { 0 };
        let start = |listener| {
            start_operations(config, listener, self.parts(PortServices::Operations, tls.operators))
        };
        let _operations = listeners.operations.map(start).transpose().map_err(AppError::Operations)?;
        let features = std::mem::take(&mut self.features);
        let parts = Parts { features, ..self.parts(served, tls.callers) };
        Ok(server::run(config, (listeners.grpc, listeners.serving), parts, shutdown)?)
    }

    fn parts(&self, served: PortServices, tls: Option<Arc<TlsPort>>) -> Parts<S> {
        let (store, access) = (Arc::clone(&self.store), self.access.clone());
        Parts {
            live: Arc::clone(&self.live),
            store: Box::new(move || store()),
            store_files: self.store_files,
            readiness: self.readiness.clone(),
            metrics: self.metrics.clone(),
            audit: self.audit.clone(),
            tls,
            served,
            features: Vec::new(),
            running: self.running.clone(),
            known: self.known,
            intercept: access.map(|access| -> MakeIntercept { Box::new(move || access.intercept()) }),
        }
    }
}
