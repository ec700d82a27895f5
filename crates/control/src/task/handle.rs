//! The handle of live control: what services and pages ask it.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use weir_core::strategy::Rules;
use weir_node::overlay_target::OverlayTarget;
use weir_node::readiness::{Problems, RefusedFiles};
use weir_node::telemetry::ConfigLoads;
use weir_node::watch::{ReloadReport, ReloadRequests};
use weir_proto::v1::{ControlChange, ControlEntry};

use super::overlay::OverlayState;
use super::request::{BanLift, ChangeAsked, Changed, ControlFault, ControlRequest, FoundChange};
use super::view::ControlView;
use crate::bans::{BanGuard, BanPages, BannedCaller, BannedUntil};

/// Changes that may wait at a time.
pub(super) const MAX_WAITING: usize = 64;

/// The live control of this node. Clones share it.
#[derive(Clone)]
pub struct ControlHandle {
    pub(super) requests: mpsc::Sender<ControlRequest>,
    pub(super) view: watch::Receiver<Arc<ControlView>>,
    pub(super) overlay: Arc<OverlayState>,
    pub(super) target: Arc<dyn OverlayTarget>,
    pub(super) reloads: ReloadRequests,
    pub(super) loads: ConfigLoads,
    pub(super) refused: RefusedFiles,
    pub(super) bans: Arc<BanGuard>,
}

impl ControlHandle {
    /// Makes a change, on all nodes.
    pub async fn change(&self, asked: ChangeAsked) -> Result<Changed, ControlFault> {
        self.ask(|reply| ControlRequest::Change(Box::new(asked), reply)).await?
    }

    /// Finds out if a change was made, as far as this node can.
    pub async fn find(&self, change: u64) -> Result<FoundChange, ControlFault> {
        self.ask(|reply| ControlRequest::Find(change, reply)).await
    }

    /// The last changes that this node knows, the last first.
    pub async fn history(&self, limit: usize) -> Result<Vec<ControlChange>, ControlFault> {
        self.ask(|reply| ControlRequest::History(limit, reply)).await
    }

    /// Lifts a ban, on all nodes.
    pub async fn lift(&self, asked: BanLift) -> Result<BannedUntil, ControlFault> {
        self.ask(|reply| ControlRequest::Lift(asked, reply)).await?
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> ControlRequest,
    ) -> Result<T, ControlFault> {
        let (reply, result) = oneshot::channel();
        self.requests.try_send(request(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ControlFault::Busy,
            mpsc::error::TrySendError::Closed(_) => ControlFault::Ending,
        })?;
        result.await.map_err(|_| ControlFault::Ending)
    }

    /// The entries now.
    #[must_use]
    pub fn view(&self) -> Arc<ControlView> {
        Arc::clone(&self.view.borrow())
    }

    /// The entries now, and each later state of them.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<ControlView>> {
        self.view.clone()
    }

    /// An entry as callers see it, with the reason why it waits.
    #[must_use]
    pub fn with_waiting(&self, key: &str, entry: &ControlEntry) -> ControlEntry {
        let waiting = self.overlay.waiting(key).unwrap_or_default();
        ControlEntry { waiting, ..entry.clone() }
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.target.rules()
    }

    /// The name of a caller's ban under the rules in force; `None` if there can be none.
    #[must_use]
    pub fn ban_of(&self, caller: &BannedCaller) -> Option<String> {
        let rules = self.target.rules();
        let strategy = rules.resolve("", &caller.strategy).ok()?.strategy;
        caller.member(strategy.limits().iter().find(|limit| *limit.name == *caller.limit)?)
    }

    /// Bans in force with names after `token`, in their order, and how many there are in all.
    #[must_use]
    pub fn bans(&self, token: &str) -> BanPages {
        BanPages { bans: self.bans.bans(), now: self.bans.now(), after: token.to_owned() }
    }

    /// Reads all files; `None` if too many wait for it.
    pub async fn reload(&self) -> Option<ReloadReport> {
        self.reloads.reload().await
    }

    /// Files that are refused, a line each: since when, which file, and the first mistake.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        Problems::from(self.refused.notes()).to_string().lines().map(str::to_owned).collect()
    }

    /// The hash of the files in force.
    #[must_use]
    pub fn files(&self) -> String {
        self.loads.hash().to_string()
    }
}
