//! Judges the credential of an open call again: for each message, and each second.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};
use tonic::Status;
use weir_grpc::{CallContext, Caller};

use super::status::refused;
use crate::access::Authenticated;

/// Interval between two judgements while no message arrives.
const EVERY: Duration = Duration::from_secs(1);

/// The credential of an open call.
pub struct Judge {
    caller: Caller,
    ticks: Pin<Box<Interval>>,
}

impl Judge {
    /// Judges a call whose credential can end; `None` for any other. Must be called within a runtime.
    pub fn from_context(context: &CallContext) -> Option<Self> {
        let caller =
            context.caller.clone().filter(|caller| caller.get().is_some_and(Authenticated::can_end))?;
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Self { caller, ticks: Box::pin(ticks) })
    }

    /// Returns the status that ends the call, if its credential has ended by now.
    pub(super) fn now(&self) -> Option<Status> {
        self.caller.get().and_then(Authenticated::ended).map(refused)
    }

    /// Judges once a second, and wakes the task for it.
    pub(super) fn ended(&mut self, context: &mut Context<'_>) -> Option<Status> {
        while self.ticks.as_mut().get_mut().poll_tick(context).is_ready() {
            if let Some(status) = self.now() {
                return Some(status);
            }
        }
        None
    }

    /// Waits until the credential has ended.
    pub async fn wait(&mut self) -> Status {
        loop {
            self.ticks.tick().await;
            if let Some(status) = self.now() {
                return status;
            }
        }
    }
}
