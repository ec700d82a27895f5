//! The task of live control: makes changes one after another, and follows the store.

use std::collections::HashMap;
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use weir_core::control::{ControlMirror, ControlPut, ControlRecord, ControlRefusal, GENERATION_PREFIX};
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{ControlChange, ControlEntry};
use weir_time::clock::{Clock, monotonic};
use weir_units::Micros;

use super::audited::{AuditedChange, ControlAudit};
use super::cache::CacheFile;
use super::entry::{LiveEntry, body_of, generation_key, key_of, tombstone_of};
use super::history::ChangeHistory;
use super::keeper::{APPLY_EVERY, BanKeeper};
use super::overlay::{ControlOverlay, OverlayState, check};
use super::request::{ChangeAsked, Changed, ControlFault, ControlRequest};
use super::store::ControlStore;
use super::target::{Overlay, OverlayTarget};
use super::view::ControlView;
use crate::audit::change_id;
use crate::telemetry::ConfigLoads;

/// Interval of polls of Redis, and of looks for entries that are over.
pub(super) const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// Least time between two writings of the cache file, where Redis has the entries too.
const CACHE_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

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
    /// The sum of the records that are in force.
    pub(super) applied: u64,
    /// The cache file is older than the entries.
    pub(super) is_dirty: bool,
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
                    Some(request) => self.serve(request).await,
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

    async fn serve(&mut self, request: ControlRequest) {
        // A caller that has given up gets no answer.
        match request {
            ControlRequest::Change(asked, reply) => {
                let done = self.change(*asked).await;
                let _ = reply.send(done);
            }
            ControlRequest::Lift(asked, reply) => {
                let done = self.lift(asked).await;
                let _ = reply.send(done);
            }
            ControlRequest::History(limit, reply) => {
                let _ = reply.send(self.history.last(limit));
            }
        }
    }

    /// Follows the store, and ends entries that are over.
    pub(super) async fn look(&mut self) {
        self.poll().await;
        self.look_at_bans().await;
        let now = self.clock.now().0;
        if self.store.is_memory() {
            // On Redis its clock says what is old: one that runs ahead here must not forget deletions.
            self.mirror.drop_old(now);
        }
        let view = Arc::clone(&self.view.borrow());
        let is_over = |entry: &Arc<LiveEntry>| entry.lives(view.now) != entry.lives(now);
        if view.entries.iter().any(is_over) || view.incomplete != self.incomplete {
            self.apply();
        } else if view.position != self.mirror.last_position() {
            let position = self.mirror.last_position();
            self.loads.set_control(position.version);
            self.view
                .send_modify(|view| *view = Arc::new(ControlView { position, ..ControlView::clone(view) }));
        }
        self.save(false);
    }

    async fn change(&mut self, asked: ChangeAsked) -> Result<Changed, ControlFault> {
        let files = self.check(&asked)?;
        if asked.expect.is_some() && self.has_lost_changes().await {
            return Err(ControlFault::Lost);
        }
        let key = key_of(&asked.entry);
        let now = self.clock.now();
        let before = self.living(&key, now).map(|entry| entry.message.clone());
        if asked.deletes && before.is_none() {
            return Err(ControlFault::Missing);
        }
        let mut after = ControlEntry {
            entry: Some(asked.entry.clone()),
            reason: asked.reason.clone(),
            by: asked.by.clone(),
            changed_at: Some(super::entry::timestamp(now.0)),
            deleted: asked.deletes,
            node: self.node.clone(),
            ..ControlEntry::default()
        };
        if asked.dry_run {
            return Ok(Changed { after, before, files });
        }
        let change = random_id()?;
        let audited = AuditedChange {
            change,
            method: asked.method,
            by: &asked.by,
            reason: &asked.reason,
            before: before.as_ref(),
            after: &after,
            expires_after: asked.expires_after,
        };
        let written = self.audit.asked(now, &audited);
        written.map_err(|error| ControlFault::NotWritten(format!("the audit cannot be written: {error}")))?;
        let put = ControlPut {
            key: key.clone().into(),
            expect: asked.expect,
            change,
            expires_after: asked.expires_after,
            body: (!asked.deletes).then(|| body_of(&after)),
            tombstone: tombstone_of(&after),
            generation: generation_of(&asked),
        };
        let records = match self.put(now, &put).await {
            Ok(records) => records,
            Err(fault) => {
                self.audit.ended(self.clock.now(), change, &fault.to_string(), None);
                return Err(fault);
            }
        };
        let version = records.iter().find(|record| *record.key == *key).map(|record| record.version);
        let is_new = self.mirror.learn(&records);
        if let ControlStore::Memory(state) = &self.store {
            // There is nobody else whose changes it could have missed.
            self.mirror.apply(records.iter().cloned(), state.position());
        }
        if is_new {
            self.changed();
        }
        self.audit.ended(self.clock.now(), change, "applied", version);
        if let Some(Ok(Some(entry))) = self.mirror.get(&key).map(LiveEntry::read) {
            after = entry.message;
        }
        tracing::info!(
            caller = asked.by,
            method = asked.method,
            change = change_id(change),
            version,
            entry = %key.escape_debug(),
            "a change by live control is in force"
        );
        Ok(Changed { after, before, files })
    }

    /// Checks a change against the files. Returns the files' numbers of the limits that it names.
    fn check(&self, asked: &ChangeAsked) -> Result<HashMap<String, String>, ControlFault> {
        let (rules, written) = self.target.files();
        let (strategy, limits) = match &asked.entry {
            Entry::Override(one) => (&one.strategy, Some(&one.limits)),
            Entry::Strategy(one) => (&one.strategy, Some(&one.limits)),
            Entry::Access(one) => (&one.strategy, None),
        };
        if asked.deletes {
            return Ok(HashMap::new());
        }
        if !strategy.is_empty() {
            let found = rules.resolve("", strategy)?;
            if asked.resets && found.strategy.permits().is_some() {
                let reason = format!("state: RESET is for rate limits, and `{strategy}` limits concurrency");
                return Err(ControlFault::Invalid(vec![reason]));
            }
        }
        check(&asked.entry, &rules, &written).map_err(ControlFault::Invalid)?;
        let names = limits.into_iter().flat_map(HashMap::keys);
        let written = names.filter_map(|name| Some((name.clone(), written.written(strategy, name)?)));
        Ok(written.collect())
    }

    async fn put(&mut self, now: Micros, put: &ControlPut) -> Result<Vec<ControlRecord>, ControlFault> {
        let before = match &self.store {
            ControlStore::Memory(state) => Some(state.clone()),
            ControlStore::Redis(_) => None,
        };
        let records = self.store.put(now, put).await.map_err(ControlFault::Store)?;
        let records = records.map_err(|refusal| match refusal {
            ControlRefusal::Stale { current } => ControlFault::Stale(current),
            ControlRefusal::Full { most } => ControlFault::Full(most),
            ControlRefusal::Missing => ControlFault::Missing,
            refusal @ (ControlRefusal::Length { .. } | ControlRefusal::Reserved { .. }) => {
                ControlFault::Invalid(vec![refusal.to_string()])
            }
        })?;
        if let (ControlStore::Memory(state), Some(cache)) = (&self.store, &self.cache) {
            let all: Vec<ControlRecord> = state.records().cloned().collect();
            if let Err(error) = cache.write(&all, state.position()) {
                if let Some(before) = before {
                    self.store = ControlStore::Memory(before);
                }
                return Err(ControlFault::NotWritten(format!("the cache file cannot be written: {error}")));
            }
        }
        Ok(records)
    }

    /// Serves what the mirror has now, and keeps it.
    pub(super) fn changed(&mut self) {
        self.is_dirty = !self.store.is_memory();
        let before = Arc::clone(&self.view.borrow());
        self.apply();
        let after = Arc::clone(&self.view.borrow());
        for change in after.changes(&before) {
            let before = before.get(change.key()).cloned();
            self.history.push(ControlChange { after: Some(change.message()), before });
        }
    }

    /// Serves what the mirror has.
    pub(super) fn apply(&mut self) {
        self.applied = self.mirror_sum();
        let now = self.clock.now().0;
        let known = Arc::clone(&self.view.borrow());
        let mut entries: Vec<Arc<LiveEntry>> = Vec::new();
        let mut generations = HashMap::new();
        for record in self.mirror.records() {
            if let Some(name) = record.key.strip_prefix(GENERATION_PREFIX) {
                // Its version is the generation.
                generations.insert(name.into(), record.version);
                continue;
            }
            let place = known.entries.binary_search_by(|entry| (*entry.key).cmp(&*record.key)).ok();
            let same = place.and_then(|place| known.entries.get(place)).filter(|entry| {
                entry.version.version == record.version && entry.version.change == record.change
            });
            match same {
                Some(same) => entries.push(Arc::clone(same)),
                None => entries.extend(LiveEntry::read(record).ok().flatten().map(Arc::new)),
            }
        }
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        let living = entries.iter().filter(|entry| entry.lives(now)).cloned().collect::<Vec<_>>();
        let has_none = living.is_empty() && generations.is_empty();
        let overlay = ControlOverlay { entries: living, generations, shared: Arc::clone(&self.shared) };
        self.target.set_overlay(
            (!has_none)
                .then(|| Arc::new(move |rules: &_, written: &_| overlay.over(rules, written)) as Overlay),
        );
        let (position, incomplete) = (self.mirror.last_position(), self.incomplete.clone());
        self.loads.set_control(position.version);
        self.view.send_replace(Arc::new(ControlView { entries, position, incomplete, now }));
    }

    fn living(&self, key: &str, now: Micros) -> Option<LiveEntry> {
        let read = self.mirror.get(key).map(LiveEntry::read)?.ok()??;
        read.lives(now.0).then_some(read)
    }

    /// Writes the cache file of a node on Redis, at most once a second.
    fn save(&mut self, at_once: bool) {
        let Some(cache) = self.cache.as_ref().filter(|_| self.is_dirty) else { return };
        if !at_once
            && self.cached_at.is_some_and(|at| monotonic().saturating_duration_since(at) < CACHE_EVERY)
        {
            return;
        }
        let records: Vec<ControlRecord> = self.mirror.records().cloned().collect();
        match cache.write(&records, self.mirror.last_position()) {
            Ok(()) => self.is_dirty = false,
            Err(error) => tracing::warn!(%error, "the cache file of live control cannot be written"),
        }
        self.cached_at = Some(monotonic());
    }
}

/// The generation that a change raises.
fn generation_of(asked: &ChangeAsked) -> Option<Box<str>> {
    match &asked.entry {
        Entry::Strategy(one) if asked.resets => Some(generation_key(&one.strategy)),
        _ => None,
    }
}

pub(super) fn random_id() -> Result<u64, ControlFault> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ControlFault::NotWritten("the system has no random numbers".to_owned()))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
