//! Sending calls over a connection, each as a task of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tokio::sync::Notify;
use weir_time::deadlines::Deadlines;

use crate::redis::callers::Fate;
use crate::redis::connect::Connection;
use crate::redis::context::LinkContext;
use crate::redis::script_call::{CallSlots, ScriptCall, ScriptRequest};
use crate::redis::topology::ClusterView;

/// After this many calls in a row without an answer the connection is given up: a node that hangs
/// reports no error, and its successor is found only by looking.
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
    /// Sends all of `calls`, joined as far as they may be. Returns how many calls that were.
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

/// What the calls over a connection have found out about it.
#[derive(Default)]
pub(super) struct ConnectionHealth {
    silent: AtomicU32,
    /// Notified when the connection is of no use any more.
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
