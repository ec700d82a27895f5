//! A change by a caller: checked, written to the audit, made in the store, and then served here.

use std::collections::HashMap;

use weir_node::audit::change_id;
use weir_proto::v1::ControlEntry;
use weir_proto::v1::control_entry::Entry;
use weir_units::Micros;

use super::entry::{body_of, generation_key, key_of, tombstone_of};
use super::overlay::check;
use super::request::{ChangeAsked, Changed, ChangedEntry, ControlFault, EntryAsked, FoundChange};
use super::{ControlTask, random_id};
use crate::model::{ControlPut, ControlRecord, ControlRefusal, RefusedPut};
use crate::store::ControlStore;
use crate::timestamp::timestamp;

/// Mistakes that are named.
const MAX_MISTAKES: usize = 20;

impl ControlTask {
    pub(super) async fn change(&mut self, asked: ChangeAsked) -> Result<Changed, ControlFault> {
        let files = self.check(&asked)?;
        if asked.entries.iter().any(|one| one.expect.is_some()) && self.has_lost_changes().await {
            return Err(ControlFault::Lost);
        }
        let now = self.clock.now();
        let mut entries = self.planned(&asked, files, now)?;
        if asked.dry_run {
            return Ok(Changed { entries, change: None });
        }
        let change = asked.id.map_or_else(random_id, Ok)?;
        let written = self.audit.asked(now, change, &asked, &entries);
        written.map_err(|error| ControlFault::NotWritten(format!("the audit cannot be written: {error}")))?;
        let puts = asked.entries.iter().zip(&entries);
        let puts: Vec<_> = puts.map(|(one, planned)| put_of(&asked, one, &planned.after, change)).collect();
        let records = match self.put(now, &puts).await {
            Ok(records) => records,
            Err(fault) => {
                self.audit.ended(self.clock.now(), change, &fault.to_string(), None);
                return Err(fault);
            }
        };
        let version = records.first().map(|record| record.version);
        self.mirror.take_acknowledged(&records);
        if let ControlStore::Memory(state) = &self.store {
            // There is nobody else whose changes it could have missed.
            self.mirror.apply(records.iter().cloned(), state.position());
        }
        self.changed();
        self.audit.ended(self.clock.now(), change, "applied", version);
        let view = std::sync::Arc::clone(&self.view.borrow());
        for (put, changed) in puts.iter().zip(&mut entries) {
            if let Some(entry) = view.entries.get(&*put.key) {
                changed.after = entry.message.clone();
            }
        }
        tracing::info!(
            caller = asked.by,
            method = asked.method,
            change = change_id(change),
            version,
            entries = puts.len(),
            entry = %puts.first().map_or("", |put| &put.key).escape_debug(),
            "a change by live control is in force"
        );
        Ok(Changed { entries, change: Some((change, version.unwrap_or_default())) })
    }

    /// Finds out if a change was made, as far as this node can.
    pub(super) async fn find(&mut self, change: u64) -> FoundChange {
        if self.made.version(change).is_none() {
            self.poll().await;
        }
        match (self.made.version(change), &self.incomplete) {
            (Some(version), _) => FoundChange::Made { version },
            (None, None) => FoundChange::NotMade { position: self.mirror.last_position() },
            (None, Some(error)) => FoundChange::Unknown { error: error.clone() },
        }
    }

    /// Pairs of each entry before the change and after it.
    fn planned(
        &self,
        asked: &ChangeAsked,
        files: Vec<HashMap<String, String>>,
        now: Micros,
    ) -> Result<Vec<ChangedEntry>, ControlFault> {
        let view = self.view.borrow();
        let mut planned = Vec::with_capacity(files.len());
        for (place, (one, files)) in asked.entries.iter().zip(files).enumerate() {
            let known = view.entries.get(&*key_of(&one.entry)).filter(|known| known.lives(now.0));
            let before = known.map(|known| known.message.clone());
            // Under an id of the caller, it may be a repeated call: the store knows.
            if one.deletes && before.is_none() && asked.id.is_none() {
                return Err(ControlFault::Missing.in_entry(place, asked));
            }
            let after = ControlEntry {
                entry: Some(one.entry.clone()),
                reason: asked.reason.clone(),
                by: asked.by.clone(),
                changed_at: Some(timestamp(now.0)),
                deleted: one.deletes,
                node: self.node.clone(),
                ..ControlEntry::default()
            };
            planned.push(ChangedEntry { after, before, files });
        }
        Ok(planned)
    }

    /// Checks a change against the files. Returns the files' numbers of the limits that each entry names.
    fn check(&self, asked: &ChangeAsked) -> Result<Vec<HashMap<String, String>>, ControlFault> {
        let (rules, written) = self.target.files();
        let (mut mistakes, mut numbers) = (Vec::new(), Vec::with_capacity(asked.entries.len()));
        for (place, one) in asked.entries.iter().enumerate() {
            let (strategy, limits) = match &one.entry {
                Entry::Override(one) => (&one.strategy, Some(&one.limits)),
                Entry::Strategy(one) => (&one.strategy, Some(&one.limits)),
                Entry::Access(one) => (&one.strategy, None),
            };
            if one.deletes {
                numbers.push(HashMap::new());
                continue;
            }
            if !strategy.is_empty() {
                let found = rules.resolve("", strategy);
                let found = found.map_err(|unknown| ControlFault::from(unknown).in_entry(place, asked))?;
                if one.resets && found.strategy.permits().is_some() {
                    let reason =
                        format!("state: RESET is for rate limits, and `{strategy}` limits concurrency");
                    return Err(ControlFault::Invalid(vec![reason]).in_entry(place, asked));
                }
            }
            if let Err(own) = check(&one.entry, &rules, &written) {
                let named = own.into_iter().map(|mistake| asked.named(place, &mistake));
                mistakes.extend(named.take(MAX_MISTAKES.saturating_sub(mistakes.len())));
            }
            let names = limits.into_iter().flat_map(HashMap::keys);
            let files = names.filter_map(|name| Some((name.clone(), written.written(strategy, name)?)));
            numbers.push(files.collect());
        }
        if mistakes.is_empty() { Ok(numbers) } else { Err(ControlFault::Invalid(mistakes)) }
    }

    /// Makes the change in the store. After a call without an answer it is made again under its id, which changes nothing
    /// if it was made.
    async fn put(&mut self, now: Micros, puts: &[ControlPut]) -> Result<Vec<ControlRecord>, ControlFault> {
        match &mut self.store {
            ControlStore::Memory(state) => {
                let planned = state.plan(now.0, 0, puts).map_err(|refused| refused_as(puts, refused))?;
                if let (Some(position), Some(cache)) = (planned.position(), &mut self.cache) {
                    cache.append(&planned.records, position).map_err(|error| {
                        ControlFault::NotWritten(format!("the cache file cannot be written: {error}"))
                    })?;
                }
                let records = planned.records.clone();
                state.make(planned);
                Ok(records)
            }
            ControlStore::Redis(link) => {
                let mut put = link.put_many(puts).await;
                if put.is_err() {
                    put = link.put_many(puts).await;
                }
                let change = puts.first().map_or(0, |put| put.change);
                let put = put.map_err(|error| ControlFault::Store { error, change: change_id(change) })?;
                put.map_err(|refused| refused_as(puts, refused))
            }
        }
    }
}

fn put_of(asked: &ChangeAsked, one: &EntryAsked, after: &ControlEntry, change: u64) -> ControlPut {
    let generation = match &one.entry {
        Entry::Strategy(strategy) if one.resets => Some(generation_key(&strategy.strategy)),
        _ => None,
    };
    ControlPut {
        key: key_of(&one.entry).into(),
        expect: one.expect,
        change,
        expires_after: asked.expires_after,
        body: (!one.deletes).then(|| body_of(after)),
        tombstone: tombstone_of(after),
        generation,
    }
}

fn refused_as(puts: &[ControlPut], refused: RefusedPut) -> ControlFault {
    let RefusedPut { place, refusal } = refused;
    let fault = match refusal {
        ControlRefusal::Stale { current } => ControlFault::Stale(current),
        ControlRefusal::Full { most } => ControlFault::Full(most),
        ControlRefusal::Missing => ControlFault::Missing,
        refusal @ (ControlRefusal::Length { .. }
        | ControlRefusal::Reserved { .. }
        | ControlRefusal::Count { .. }
        | ControlRefusal::Twice { .. }) => ControlFault::Invalid(vec![refusal.to_string()]),
    };
    if puts.len() == 1 { fault } else { ControlFault::Entry { place, fault: Box::new(fault) } }
}
