//! Sends calls over a connection, each as a task of its own.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use weir_time::deadlines::Deadlines;

use crate::redis::breaker::Breaker;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::outbox::{Flying, Outbox, OutboxRequest};
use crate::redis::script_call::{CallSlots, ScriptCall};

/// Sends calls over one connection.
pub(super) struct Sender<'a> {
    pub(super) now: Instant,
    pub(super) outbox: &'a Arc<Outbox>,
    pub(super) connection: &'a Connection,
    /// Notified when the connection must be closed.
    pub(super) given_up: &'a Arc<Notify>,
    pub(super) breaker: &'a Arc<Breaker>,
    pub(super) context: &'a Arc<LinkContext>,
    pub(super) deadlines: &'a Deadlines,
    pub(super) host: &'a Arc<str>,
    pub(super) slots: CallSlots,
}

impl Sender<'_> {
    /// Batches and sends all of `calls`. Returns the number of calls sent.
    pub(super) fn send<R: OutboxRequest>(&self, calls: &mut Vec<ScriptCall<R>>) -> usize {
        ScriptCall::group(calls, self.slots, self.outbox.call_cost());
        let count = calls.len();
        let sent = self.now;
        for call in calls.drain(..) {
            let (connection, given_up) = (self.connection.clone(), Arc::clone(self.given_up));
            let breaker = Arc::clone(self.breaker);
            let (context, host) = (Arc::clone(self.context), Arc::clone(self.host));
            let deadlines = self.deadlines.clone();
            let flying = R::fly(self.outbox, &call, sent);
            tokio::spawn(async move {
                let mut flying = flying;
                let fate = call.run(connection, &context, &deadlines, &host).await;
                match &fate.failure {
                    None if fate.is_stalled => {}
                    None => {
                        breaker.succeeded(sent);
                        flying.iter_mut().for_each(Flying::answered);
                    }
                    Some(reason) => {
                        context.topology.suspect();
                        breaker.failed(sent, reason);
                    }
                }
                if fate.closes {
                    context.topology.suspect();
                    given_up.notify_one();
                }
            });
        }
        count
    }
}
