//! Sends calls over a connection, each as a task of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tokio::sync::Notify;
use weir_time::deadlines::Deadlines;

use crate::redis::callers::Fate;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::script_call::{CallSlots, ScriptCall, ScriptRequest};
use crate::redis::topology::ClusterView;

/// Consecutive timeouts after which the connection is given up: a hanging node reports no error, and its
/// successor is found only by a topology refresh.
const SILENT_CALLS: u32 = 3;

/// Sends calls over one connection.
pub(super) struct Sender<'a> {
    pub(super) connection: &'a Connection,
    pub(super) health: &'a Arc<ConnectionHealth>,
    pub(super) context: &'a Arc<LinkContext>,
    pub(super) deadlines: &'a Deadlines,
    pub(super) host: &'a Arc<str>,
    pub(super) slots: CallSlots,
}

impl Sender<'_> {
    /// Batches and sends all of `calls`. Returns the number of calls sent.
    pub(super) fn send<R: ScriptRequest>(&self, calls: &mut Vec<ScriptCall<R>>) -> usize {
        ScriptCall::group(calls, self.slots);
        let count = calls.len();
        for call in calls.drain(..) {
            let (connection, health) = (self.connection.clone(), Arc::clone(self.health));
            let (context, host) = (Arc::clone(self.context), Arc::clone(self.host));
            let deadlines = self.deadlines.clone();
            tokio::spawn(async move {
                let fate = call.run(connection, &context, &deadlines, &host).await;
                health.record(fate, &context.topology);
            });
        }
        count
    }
}

/// The health of a connection, from the results of its calls.
#[derive(Default)]
pub(super) struct ConnectionHealth {
    silent: AtomicU32,
    /// Notified when the connection is given up.
    pub(super) given_up: Notify,
}

impl ConnectionHealth {
    fn record(&self, fate: Fate, topology: &ClusterView) {
        let give_up = match fate {
            Fate::Answered => {
                self.silent.store(0, Relaxed);
                return;
            }
            Fate::Silent => self.silent.fetch_add(1, Relaxed) + 1 >= SILENT_CALLS,
            Fate::Broken => true,
        };
        topology.suspect();
        if give_up {
            self.given_up.notify_one();
        }
    }
}
