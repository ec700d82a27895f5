//! One script call: some requests, one round trip, an answer for each.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::connect::Connection;
use super::context::LinkContext;
use super::fault::Fault;
use super::lease::LeaseRequest;
use super::queue::QueueRequest;
use super::replies::Replies;
use super::request::{DecisionJob, OnceKey, Request};
use super::script::{decode, encode};
use super::shared_call::SharedCall;
use super::source::{Form, Script, script_for};
use crate::{StoreError, Verdicts};
use weir_time::clock::monotonic;
use weir_time::deadlines::{Deadlines, Passed};

/// Requests that leave in one script call.
pub(super) struct ScriptCall {
    requests: Vec<Arc<Request>>,
    replies: Replies<Verdicts>,
    asking: bool,
    form: Form,
    /// Whether its keys are of several slots of a cluster.
    spans: bool,
}

/// One script call, of any kind.
pub(super) enum NodeCall {
    /// Decisions.
    Decisions(ScriptCall),
    /// Something about leases.
    Leases(SharedCall<LeaseRequest>),
    /// Something of a queue.
    Queue(SharedCall<QueueRequest>),
}

/// What keys one call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallSlots {
    /// Any: the server is no node of a cluster.
    Any,
    /// Those of one slot.
    Apart,
    /// Those of all the node's slots, if they are not declared.
    Together,
}

/// How a call ended, as far as its connection is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The node answered.
    Answered,
    /// No answer in time.
    Silent,
    /// The connection is of no use any more.
    Broken,
}

impl NodeCall {
    /// Sends the call and hands every request its answer.
    pub(super) async fn run(
        self,
        connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        match self {
            Self::Decisions(call) => call.run(connection, context, deadlines, host).await,
            Self::Leases(call) => call.run(connection, context, deadlines, host).await,
            Self::Queue(call) => call.run(connection, context, deadlines, host).await,
        }
    }
}

impl ScriptCall {
    /// Sorts jobs into calls: one for all of a form, or one per slot and form where the server insists on
    /// one slot a call, or a job does. Strategies keep the order of what they and their overrides were asked, and so do
    /// their keys.
    pub(super) fn group(mut jobs: Vec<DecisionJob>, slots: CallSlots) -> Vec<Self> {
        let slot = |job: &DecisionJob| {
            let own = slots == CallSlots::Apart || (slots == CallSlots::Together && job.alone);
            (own.then_some(job.request.slot), job.asking)
        };
        if jobs.len() > 1 {
            jobs.sort_by_key(|job| (slot(job), job.request.strategy.family()));
            for family in jobs.chunk_by_mut(|a, b| a.request.strategy.family() == b.request.strategy.family())
            {
                // Where an override has other engines, all go together, and so in order.
                if family.windows(2).any(|pair| pair[0].form != pair[1].form) {
                    family.iter_mut().for_each(|job| job.form = Form::Any);
                }
            }
            jobs.sort_by_key(|job| (slot(job), job.form));
        }
        let mut calls: Vec<Self> = Vec::with_capacity(1);
        let mut last = None;
        for job in jobs {
            let this = Some((slot(&job), job.form));
            if this != last {
                let (asking, form) = (job.asking, job.form);
                let (requests, replies) = (Vec::new(), Replies::default());
                calls.push(Self { requests, replies, asking, form, spans: false });
                last = this;
            }
            if let Some(call) = calls.last_mut() {
                let of_first = call.requests.first().is_none_or(|first| first.slot == job.request.slot);
                call.spans |= slots == CallSlots::Together && !of_first;
                call.requests.push(job.request);
                call.replies.push(job.reply);
            }
        }
        calls
    }

    /// Sends the call and hands every request its answer.
    async fn run(
        self,
        mut connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        let exchange = self.exchange(&mut connection, context);
        let deadline = monotonic() + Duration::from(context.config.deadline);
        let reply = match deadlines.until(deadline, exchange).await {
            Ok(reply) => reply,
            Err(Passed) => {
                self.replies.fail(&Fault::Failed(StoreError::Timeout));
                return Fate::Silent;
            }
        };
        // Other nodes' answers that have arrived, and requests, are read first: a connection writes what
        // it has to say at once.
        tokio::task::yield_now().await;
        match reply {
            Ok(reply) => self.replies.answer(decode(&self.requests, &reply), self.spans),
            Err(error) => {
                let fault = Fault::of(&error, host);
                let fate = if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered };
                self.replies.fail(&fault);
                fate
            }
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        context: &LinkContext,
    ) -> Result<Value, RedisError> {
        let request = encode(&self.requests, context.clock.explicit());
        let once = self.requests.iter().any(|request| request.once == OnceKey::Record);
        let limits = self.requests.iter().flat_map(|request| request.algorithms());
        let script = script_for(self.form, once, limits);
        evaluate(connection, script, self.asking, |name, script| self.command(name, script, &request)).await
    }

    fn command(&self, name: &str, script: &str, request: &[u8]) -> Cmd {
        let mut command = redis::cmd(name);
        let keys = self.requests.iter().map(|request| request.keys().len()).sum::<usize>();
        command.arg(script).arg(if self.spans { 0 } else { keys });
        for key in self.requests.iter().flat_map(|request| request.keys()) {
            command.arg(key);
        }
        command.arg(request);
        command
    }
}

/// Whether the node is no master any more.
pub(super) fn is_read_only(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(why) if why.starts_with("READONLY"))
}

/// EVALSHA; where the node has lost the script, EVAL on the same connection, which leaves it there. `command` makes
/// the command from its name and what it names the script by.
pub(super) async fn evaluate(
    connection: &mut Connection,
    script: &Script,
    asking: bool,
    command: impl Fn(&str, &str) -> Cmd,
) -> Result<Value, RedisError> {
    match send(connection, command("EVALSHA", &script.sha), asking).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            send(connection, command("EVAL", &script.source), asking).await
        }
        reply => reply,
    }
}

async fn send(connection: &mut Connection, command: Cmd, asking: bool) -> Result<Value, RedisError> {
    if !asking {
        return connection.send(&command).await;
    }
    let mut pipeline = redis::pipe();
    pipeline.cmd("ASKING").add_command(command);
    connection.send_all(&pipeline).await
}
