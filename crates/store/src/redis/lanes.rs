//! Requests of features on the connections of a worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use smallvec::SmallVec;
use weir_core::key::{KeySecret, Namespace};

use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use super::slot_link::reply_of;
use super::{LateStore, RedisStore};
use crate::StoreError;
use crate::cost::{KEY_COST, ScriptCost};
use crate::scripts::{AnyAnswer, AnyLaneRequest, AskFuture, AskScripts, LANE_DEADLINE, Script};

/// A request of a feature.
pub(super) struct FeatureRequest {
    target: ScriptTarget<&'static Script>,
    request: Arc<dyn AnyLaneRequest>,
}

impl AskScripts for RedisStore {
    fn namespace(&self) -> &Namespace {
        &self.0.shared.context.config.namespace
    }

    fn secret(&self) -> &KeySecret {
        &self.0.shared.secret
    }

    fn ask_any(&self, request: Arc<dyn AnyLaneRequest>, deadline: Option<Instant>) -> AskFuture<'_> {
        let is_cluster = self.0.shared.context.topology.is_cluster();
        let target = ScriptTarget::new(request.any_script(), request.any_tag(), is_cluster);
        Box::pin(async move { self.0.ask(&Arc::new(FeatureRequest { target, request }), deadline).await })
    }
}

impl AskScripts for LateStore {
    fn namespace(&self) -> &Namespace {
        &self.0.shared.context.config.namespace
    }

    fn secret(&self) -> &KeySecret {
        &self.0.shared.secret
    }

    fn ask_any(&self, request: Arc<dyn AnyLaneRequest>, deadline: Option<Instant>) -> AskFuture<'_> {
        self.store().ask_any(request, deadline)
    }
}

impl ScriptRequest for FeatureRequest {
    type Answer = AnyAnswer;
    type Form = &'static Script;

    fn target(&self) -> &ScriptTarget<&'static Script> {
        &self.target
    }

    fn cost(&self) -> ScriptCost {
        KEY_COST * self.request.any_keys() as ScriptCost
    }

    fn is_like(&self, other: &Self) -> bool {
        self.request.is_like_any(&*other.request)
    }

    fn fits(&self, others: &[Arc<Self>]) -> bool {
        self.request.fits_any(&all(others))
    }

    fn deadline(context: &LinkContext) -> Duration {
        Duration::from(context.config.deadline).max(LANE_DEADLINE)
    }

    fn script(form: &'static Script, _: &[Arc<Self>]) -> &'static Script {
        form
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let mut command = script.command(16, 256);
        if let Some(first) = requests.first() {
            first.request.write_all(&all(requests), terms.now, &mut |argument| {
                command.arg(argument);
            });
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<AnyAnswer>, StoreError> {
        let Some(first) = requests.first() else { return Ok(Replies::new()) };
        first.request.decode_all(&all(requests), &reply_of(reply))
    }
}

fn all(requests: &[Arc<FeatureRequest>]) -> SmallVec<[&dyn AnyLaneRequest; 4]> {
    requests.iter().map(|request| &*request.request).collect()
}
