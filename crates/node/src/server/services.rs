//! The services of one worker.

use std::sync::Arc;

use bytes::Bytes;
use tonic::Status;
use weir_grpc::{Call, HotService as _, Methods, PendingCall, Reply};
use weir_store::Store;

use super::router::Router;
use crate::feature::HotRoute;
use crate::service::DecisionService;

pub(super) struct Services<S> {
    /// The services of the hot methods, from bytes to bytes.
    pub(super) decisions: Arc<DecisionService<S>>,
    /// The hot methods of features, in the order of their numbers.
    pub(super) hot: Vec<HotRoute>,
    /// tonic's router for all methods, hot ones included.
    pub(super) router: Router,
    pub(super) methods: Methods,
    pub(super) on: Vec<&'static str>,
}

/// Answers calls that other servers have read, without the type of the store.
pub(super) trait AnswerAlone: Send + Sync {
    /// Answers a call that may be answered together, in a round of its own.
    fn answer_alone(&self, pending: &PendingCall) -> Call;
}

impl<S: Store> AnswerAlone for Services<S> {
    fn answer_alone(&self, pending: &PendingCall) -> Call {
        let mut answer = None;
        let mut unanswered = self.answer_each(std::slice::from_ref(pending), |_, answered| {
            answer = Some(answered.map(|message| Reply::Message(Bytes::copy_from_slice(message))));
        });
        match (unanswered.pop(), answer) {
            (Some((_, call)), _) => call,
            (None, Some(answer)) => Call::done(answer),
            (None, None) => Call::failed(Status::internal("the call has no answer")),
        }
    }
}
