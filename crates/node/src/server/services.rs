//! The services of one worker.

use std::sync::Arc;

use weir_grpc::Methods;

use super::router::Router;
use crate::feature::HotRoute;
use crate::service::DecisionService;

/// All services of one worker.
pub(super) struct Services<S> {
    /// The services of the hot methods, from bytes to bytes.
    pub(super) decisions: Arc<DecisionService<S>>,
    /// The hot methods of features, in the order of their numbers.
    pub(super) hot: Vec<HotRoute>,
    /// tonic's router for all methods, hot ones included.
    pub(super) router: Router,
    pub(super) methods: Methods,
    /// The names of the services that are on.
    pub(super) on: Vec<&'static str>,
}
