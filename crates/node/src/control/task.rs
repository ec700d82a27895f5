//! The task of live control: makes changes one after another, and follows the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use weir_core::control::ControlMirror;
use weir_time::clock::Clock;

use super::audited::ControlAudit;
use super::cache::CacheFile;
use super::history::ChangeHistory;
use super::keeper::{APPLY_EVERY, BanKeeper};
use super::made::MadeChanges;
use super::overlay::OverlayState;
use super::request::{ControlFault, ControlRequest};
use super::store::ControlStore;
use super::view::ControlView;
use crate::overlay_target::OverlayTarget;
use crate::telemetry::ConfigLoads;

/// Interval of polls of Redis, and of looks for entries that are over.
pub(super) const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// The state of live control on this node.
pub(super) struct ControlTask {
    pub(super) target: Arc<dyn OverlayTarget>,
    pub(super) store: ControlStore,
    pub(super) mirror: ControlMirror,
    pub(super) audit: ControlAudit,
    /// The name of this node.
    pub(super) node: String,
    pub(super) cache: Option<CacheFile>,
    pub(super) clock: Clock,
    pub(super) shared: Arc<OverlayState>,
    pub(super) view: watch::Sender<Arc<ControlView>>,
    pub(super) history: ChangeHistory,
    pub(super) bans: BanKeeper,
    pub(super) incomplete: Option<String>,
    /// When the store was last found without changes that this node knows.
    pub(super) lost_at: Option<std::time::Instant>,
    /// Shows the version in force.
    pub(super) loads: ConfigLoads,
    /// The ends of the entries that live.
    pub(super) ends: BTreeSet<(u64, Arc<str>)>,
    /// The generations of strategies.
    pub(super) generations: Arc<HashMap<Box<str>, u64>>,
    /// Changes that this node has seen.
    pub(super) made: MadeChanges,
    /// Keys of records that the cache file lacks.
    pub(super) unsaved: BTreeSet<Box<str>>,
    pub(super) cached_at: Option<std::time::Instant>,
}

impl ControlTask {
    /// Serves until no handle is left.
    pub(super) async fn run(&mut self, mut requests: mpsc::Receiver<ControlRequest>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut bans = interval(APPLY_EVERY);
        bans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                request = requests.recv() => match request {
                    Some(request) => self.answer(request).await,
                    None => break,
                },
                _ = ticks.tick() => self.look().await,
                _ = bans.tick() => self.apply_bans().await,
            }
        }
    }

    /// Writes what has not been written yet.
    pub(super) fn end(&mut self) {
        self.save(true);
        self.write_ban_totals(true);
    }

    async fn answer(&mut self, request: ControlRequest) {
        // A caller that has given up gets no answer.
        match request {
            // Nobody would learn that it was made.
            ControlRequest::Change(_, reply) if reply.is_closed() => {}
            ControlRequest::Change(asked, reply) => {
                let done = self.change(*asked).await;
                let _ = reply.send(done);
            }
            ControlRequest::Lift(asked, reply) => {
                let done = self.lift(asked).await;
                let _ = reply.send(done);
            }
            ControlRequest::Find(change, reply) => {
                let found = self.find(change).await;
                let _ = reply.send(found);
            }
            ControlRequest::History(limit, reply) => {
                let _ = reply.send(self.history.last(limit));
            }
        }
    }
}

pub(super) fn random_id() -> Result<u64, ControlFault> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ControlFault::NotWritten("the system has no random numbers".to_owned()))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
