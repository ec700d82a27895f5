//! The task of live control: makes changes one after another, and follows the store.
//!
//! It runs on its own thread. It changes the store first and then its own copy, so that nodes agree with the store, and
//! never with one another alone.

mod audited;
mod cache;
mod changing;
mod entry;
mod handle;
mod history;
mod lifting;
mod made;
mod overlay;
mod polling;
mod request;
mod serving;
mod start;
mod view;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use weir_node::overlay_target::OverlayTarget;
use weir_node::telemetry::ConfigLoads;
use weir_time::clock::Clock;

use self::audited::ControlAudit;
use self::cache::CacheFile;
pub(crate) use self::entry::{change_of, version_message, version_of};
pub use self::handle::ControlHandle;
use self::history::ChangeHistory;
use self::made::MadeChanges;
use self::overlay::OverlayState;
use self::request::ControlRequest;
pub use self::request::{
    BanLift, ChangeAsked, Changed, ChangedEntry, ControlFault, EntryAsked, FoundChange, MAX_REASON,
};
pub use self::start::{ControlParts, ControlStart, PreparedControl};
pub use self::view::{ControlView, ViewedEntry};
use crate::bans::{APPLY_EVERY, BanKeeper};
use crate::model::ControlMirror;
use crate::store::ControlStore;

/// Interval of polls of Redis, and of looks for entries that are over.
const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// The state of live control on this node.
struct ControlTask {
    target: Arc<dyn OverlayTarget>,
    store: ControlStore,
    mirror: ControlMirror,
    audit: ControlAudit,
    /// The name of this node.
    node: String,
    cache: Option<CacheFile>,
    clock: Clock,
    shared: Arc<OverlayState>,
    view: watch::Sender<Arc<ControlView>>,
    history: ChangeHistory,
    bans: BanKeeper,
    incomplete: Option<String>,
    /// Time at which the store was last found without changes that this node knows.
    lost_at: Option<std::time::Instant>,
    /// Shows the version in force.
    loads: ConfigLoads,
    /// The ends of the entries that live.
    ends: BTreeSet<(u64, Arc<str>)>,
    /// The generations of strategies.
    generations: Arc<HashMap<Box<str>, u64>>,
    /// Changes that this node has seen.
    made: MadeChanges,
    /// Keys of records that the cache file lacks.
    unsaved: BTreeSet<Box<str>>,
    cached_at: Option<std::time::Instant>,
}

impl ControlTask {
    /// Serves until no handle is left.
    async fn run(&mut self, mut requests: mpsc::Receiver<ControlRequest>) {
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
                _ = ticks.tick() => self.tick().await,
                _ = bans.tick() => self.apply_bans().await,
            }
        }
    }

    /// Writes what has not been written yet.
    fn end(&mut self) {
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

fn random_id() -> Result<u64, ControlFault> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ControlFault::NotWritten("the system has no random numbers".to_owned()))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
