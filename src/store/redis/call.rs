//! One script call: some requests, one round trip, an answer for each.

use std::sync::Arc;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::connect::Connection;
use super::context::LinkContext;
use super::fault::Fault;
use super::request::{Job, Request};
use super::script::{decode, encode};
use super::source::script_for;
use crate::store::{StoreError, Verdicts};

/// Requests that leave in one script call.
pub(super) struct Call {
    requests: Vec<Arc<Request>>,
    replies: SmallVec<[oneshot::Sender<Result<Verdicts, Fault>>; 1]>,
    asking: bool,
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

impl Call {
    /// Sorts jobs into calls: one for all, or one per slot where the server insists on one slot a
    /// call. Within a call the order is kept for each strategy and its overrides, and so for each key.
    pub(super) fn group(mut jobs: Vec<Job>, per_slot: bool) -> Vec<Self> {
        let slot = |job: &Job| if per_slot { (job.request.slot, job.asking) } else { (0, false) };
        if jobs.len() > 1 {
            jobs.sort_by_key(|job| (slot(job), job.request.strategy.family()));
        }
        let mut calls: Vec<Self> = Vec::with_capacity(1);
        let mut last = None;
        for job in jobs {
            let this = Some(slot(&job));
            if this != last {
                calls.push(Self { requests: Vec::new(), replies: SmallVec::new(), asking: job.asking });
                last = this;
            }
            if let Some(call) = calls.last_mut() {
                call.requests.push(job.request);
                call.replies.push(job.reply);
            }
        }
        calls
    }

    /// Sends the call and hands every request its answer.
    pub(super) async fn run(self, mut connection: Connection, context: &LinkContext, host: &str) -> Fate {
        let exchange = self.exchange(&mut connection, context);
        let reply = match tokio::time::timeout(context.config.deadline.into(), exchange).await {
            Ok(reply) => reply,
            Err(_) => {
                self.fail_all(&Fault::Failed(StoreError::Timeout));
                return Fate::Silent;
            }
        };
        match reply {
            Ok(reply) => self.answer_all(&reply),
            Err(error) => {
                let fault = Fault::of(&error, host);
                let fate = if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered };
                self.fail_all(&fault);
                fate
            }
        }
    }

    /// EVALSHA; where the node has lost the script, EVAL on the same connection, which leaves it there.
    async fn exchange(
        &self,
        connection: &mut Connection,
        context: &LinkContext,
    ) -> Result<Value, RedisError> {
        let request = encode(&self.requests, context.clock.explicit());
        let script = script_for(&self.requests);
        let by_name = self.command("EVALSHA", &script.sha, &request);
        match self.send(connection, by_name).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(connection, self.command("EVAL", &script.source, &request)).await
            }
            reply => reply,
        }
    }

    async fn send(&self, connection: &mut Connection, command: Cmd) -> Result<Value, RedisError> {
        if !self.asking {
            return connection.send(&command).await;
        }
        let mut pipeline = redis::pipe();
        pipeline.cmd("ASKING").add_command(command);
        connection.send_all(&pipeline).await
    }

    fn command(&self, name: &str, script: &str, request: &[u8]) -> Cmd {
        let keys = || self.requests.iter().flat_map(|request| request.keys());
        let mut command = redis::cmd(name);
        command.arg(script).arg(keys().count());
        for key in keys() {
            command.arg(key);
        }
        command.arg(request);
        command
    }

    fn answer_all(self, reply: &Value) -> Fate {
        let answers = match decode(&self.requests, reply) {
            Ok(answers) => answers,
            Err(error) => {
                self.fail_all(&Fault::Failed(error));
                return Fate::Broken;
            }
        };
        let read_only =
            |error: &StoreError| matches!(error, StoreError::Refused(why) if why.starts_with("READONLY"));
        let mut fate = Fate::Answered;
        for (reply, answer) in self.replies.into_iter().zip(answers) {
            if answer.as_ref().is_err_and(read_only) {
                fate = Fate::Broken;
            }
            let _ = reply.send(answer.map_err(Fault::Failed));
        }
        fate
    }

    fn fail_all(self, fault: &Fault) {
        for reply in self.replies {
            let _ = reply.send(Err(fault.clone()));
        }
    }
}
