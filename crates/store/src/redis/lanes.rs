//! Requests of features on the connections of a worker.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use smallvec::SmallVec;
use weir_core::key::{KeySecret, Namespace, Subject};
use weir_core::strategy::Strategy;
use weir_time::clock::monotonic;

use super::callers::Replies;
use super::connect::Connection;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::probed::{Probed, ScriptProbe, probe};
use super::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use super::slot_link::reply_of;
use super::{Connected, RedisShared};
use crate::StoreError;
use crate::cost::{KEY_COST, ScriptCost};
use crate::scripts::{AnyAnswer, AnyLaneRequest, AskFuture, AskScripts, LANE_DEADLINE, LaneProbe, Script};

pub(super) struct FeatureRequest {
    target: ScriptTarget<&'static Script>,
    request: Arc<dyn AnyLaneRequest>,
}

impl<T: Connected> AskScripts for T {
    fn namespace(&self) -> &Namespace {
        &self.shared().context.config.namespace
    }

    fn secret(&self) -> &KeySecret {
        &self.shared().secret
    }

    fn tag_of(&self, strategy: &Strategy, subject: &Subject<'_>) -> u128 {
        tag_of(self.shared(), strategy, subject)
    }

    fn ask_any(&self, request: Arc<dyn AnyLaneRequest>, deadline: Option<Instant>) -> AskFuture<'_> {
        let context = &self.shared().context;
        let request = FeatureRequest::new(request, context.topology.is_cluster());
        let own = monotonic() + request.patience(context);
        let deadline = Some(deadline.map_or(own, |callers| callers.min(own)));
        Box::pin(async move { self.store().0.ask(&Arc::new(request), deadline).await })
    }
}

impl FeatureRequest {
    pub(super) fn new(request: Arc<dyn AnyLaneRequest>, is_cluster: bool) -> Self {
        Self { target: ScriptTarget::new(request.any_script(), request.any_tag(), is_cluster), request }
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

    /// Requests of one script have one.
    fn patience(&self, context: &LinkContext) -> Duration {
        self.request.any_patience(context.config.deadline.into())
    }

    fn script(form: &'static Script, _: &[Arc<Self>]) -> &'static Script {
        form
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let mut command = script.command(16, 256);
        if let Some(first) = requests.first() {
            let mut is_first = true;
            first.request.write_all(&all(requests), terms.now, &mut |argument| {
                // A call that spans slots names no keys; the script finds them among its arguments.
                let is_count = std::mem::take(&mut is_first);
                command.arg(if is_count && terms.spans { &b"0"[..] } else { argument });
            });
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<AnyAnswer>, StoreError> {
        let Some(first) = requests.first() else { return Ok(Replies::new()) };
        first.request.decode_all(&all(requests), &reply_of(reply))
    }
}

impl ScriptProbe for LaneProbe {
    fn run<'a>(
        &'a self,
        connection: &'a mut Connection,
        context: &'a LinkContext,
        tags: &'a [u128],
    ) -> Pin<Box<dyn Future<Output = Probed> + Send + 'a>> {
        Box::pin(async move {
            for &tag in tags {
                for request in (self.0)(&context.config.namespace, tag) {
                    let request = FeatureRequest::new(request, true);
                    match probe(connection, context, &[Arc::new(request)]).await {
                        Probed::Decides => {}
                        other => return other,
                    }
                }
            }
            Probed::Decides
        })
    }
}

fn tag_of(shared: &RedisShared, strategy: &Strategy, subject: &Subject<'_>) -> u128 {
    let mut text = Vec::with_capacity(160);
    shared.context.config.placements.tag(&shared.secret, strategy, subject, &mut text)
}

fn all(requests: &[Arc<FeatureRequest>]) -> SmallVec<[&dyn AnyLaneRequest; 4]> {
    requests.iter().map(|request| &*request.request).collect()
}
