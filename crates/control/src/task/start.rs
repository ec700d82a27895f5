//! The start of live control, before the server takes its first call.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use weir_node::audit::AuditLog;
use weir_node::overlay_target::OverlayTarget;
use weir_node::owned_thread::OwnedThread;
use weir_node::readiness::RefusedFiles;
use weir_node::telemetry::ConfigLoads;
use weir_node::watch::ReloadRequests;
use weir_time::clock::Clock;

use super::ControlTask;
use super::audited::ControlAudit;
use super::cache::{CacheFile, CachedRecords};
use super::handle::{ControlHandle, MAX_WAITING};
use super::history::ChangeHistory;
use super::made::MadeChanges;
use super::overlay::OverlayState;
use super::request::ControlRequest;
use super::view::ControlView;
use crate::bans::BanGuard;
use crate::bans::BanKeeper;
use crate::model::{ControlMirror, ControlState};
use crate::store::ControlLink;
use crate::store::ControlStore;

/// Time for which the start waits for the entries of Redis.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Parts of the node that live control works with.
pub struct ControlParts<'a> {
    /// The file with the last known entries, if there is one.
    pub cache_file: Option<&'a Path>,
    /// The name of this node.
    pub node: String,
    /// Log of changes, written before they are made.
    pub audit: AuditLog,
    /// The configuration in force.
    pub target: Arc<dyn OverlayTarget>,
    /// The link to Redis; without it, entries live in memory and in the cache file.
    pub link: Option<ControlLink>,
    /// The clock of entries that end.
    pub clock: Clock,
    /// Requests for reloads of the files.
    pub reloads: ReloadRequests,
    /// Results of the files' readings.
    pub loads: ConfigLoads,
    /// Files that are refused.
    pub refused: RefusedFiles,
    /// The bans that decisions ask for.
    pub bans: Arc<BanGuard>,
}

/// The reason why live control cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct ControlStart {
    what: String,
    error: io::Error,
}

/// Live control that has read its files, and has not begun.
pub struct PreparedControl {
    task: ControlTask,
    requests: mpsc::Receiver<ControlRequest>,
    runtime: Runtime,
}

/// Returns the error of what could not be started.
fn failed(what: String) -> impl FnOnce(io::Error) -> ControlStart {
    move |error| ControlStart { what, error }
}

impl PreparedControl {
    /// Reads the cache file.
    pub fn new(parts: ControlParts<'_>) -> Result<(Self, ControlHandle), ControlStart> {
        let ControlParts { cache_file, node, audit, target, link, clock, reloads, loads, refused, bans } =
            parts;
        let mut cache = cache_file.map(CacheFile::new);
        let shown = cache_file.unwrap_or_else(|| Path::new("")).display();
        let cached = cache.as_mut().map(CacheFile::read).transpose();
        let cached = cached.map_err(failed(format!("the cache file {shown}")))?.flatten();
        let is_new = cached.is_none();
        let CachedRecords { records, position } = cached.unwrap_or_default();
        let mut mirror = ControlMirror::restore(records.clone(), position);
        // The file has them, and the first look at all entries serves them.
        mirror.take_touched();
        let store = match link {
            Some(link) => ControlStore::Redis(Box::new(link)),
            None => ControlStore::Memory(Box::new(ControlState::restore(records, position))),
        };
        if let (true, Some(cache)) = (is_new, &mut cache) {
            // A directory that cannot be written to is found now and not at the first change.
            cache.write(&[], position).map_err(failed(format!("the cache file {shown}")))?;
        }
        let waits = (!store.is_memory()).then(|| "Redis has not answered yet".to_owned());
        if waits.is_some() && is_new {
            tracing::info!("live control is waiting for Redis; only the files are in force until it answers");
        }
        let (view, seen) = watch::channel(Arc::<ControlView>::default());
        let shared = Arc::<OverlayState>::default();
        let (requests, received) = mpsc::channel(MAX_WAITING);
        let task = ControlTask {
            target: Arc::clone(&target),
            store,
            mirror,
            audit: ControlAudit::new(audit),
            node,
            cache,
            clock,
            shared: Arc::clone(&shared),
            view,
            history: ChangeHistory::default(),
            bans: BanKeeper::new(Arc::clone(&bans)),
            incomplete: waits,
            lost_at: None,
            loads: loads.clone(),
            ends: BTreeSet::new(),
            generations: Arc::default(),
            made: MadeChanges::default(),
            unsaved: BTreeSet::new(),
            cached_at: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed("its runtime".to_owned()))?;
        let handle =
            ControlHandle { requests, view: seen, overlay: shared, target, reloads, loads, refused, bans };
        Ok((Self { task, requests: received, runtime }, handle))
    }

    /// Starts the thread, and waits until the entries are in force, on Redis for two seconds at most.
    pub fn begin(self) -> Result<OwnedThread, ControlStart> {
        let Self { mut task, requests, runtime } = self;
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = OwnedThread::spawn("weir-control", move |stopped| {
            runtime.block_on(async move {
                task.apply();
                task.tick().await;
                // The start may have given up.
                let _ = ready.send(());
                tokio::select! {
                    () = task.run(requests) => {}
                    _ = stopped => {}
                }
                task.end();
            });
        });
        let thread = thread.map_err(failed("its thread".to_owned()))?;
        let _ = is_ready.recv_timeout(FIRST_LOOK);
        Ok(thread)
    }
}
