//! One round of a node's mirror with Redis: a poll and its consequences.

use weir_units::Micros;

use super::ControlLink;
use crate::model::{ControlChanges, ControlLoss, ControlMirror, MAX_CONTROL_CHANGES, MAX_POLLED_CHANGES};

/// The most polls of a round: twice what it takes to see all changes. The next round goes on.
const MAX_POLLS: usize = 2 * MAX_CONTROL_CHANGES / MAX_POLLED_CHANGES;

/// Most readings of all records in a round: at first, after the merge, and once more if others write meanwhile.
const MAX_READS: usize = 3;

/// Interval between drops of old records of the mirror.
const DROP_EVERY: Micros = Micros::from_secs(60);

/// Result of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlSynced {
    /// True if records of the mirror changed.
    pub changed: bool,
    /// The changes that Redis has lost, if it has.
    pub lost: Option<ControlLoss>,
    /// Number of records that Redis took over from this node.
    pub sent: usize,
    /// Number of records in Redis that this version cannot read. Only a round that reads everything counts them.
    pub aside: usize,
    /// Keys of records that ended so long ago that the mirror dropped them.
    pub dropped: Vec<Box<str>>,
}

impl ControlLink {
    /// Brings the mirror up to date, and sends Redis what it has lost. `new_change` makes a random id. After an error
    /// the next round begins where this one ended.
    pub async fn sync(
        &mut self,
        mirror: &mut ControlMirror,
        mut new_change: impl FnMut() -> u64,
    ) -> Result<ControlSynced, String> {
        let (mut synced, mut reads) = (ControlSynced::default(), 0);
        self.note_version(mirror.greatest_version());
        for _ in 0..MAX_POLLS {
            match self.poll(mirror.position()).await? {
                ControlChanges::Since { records, position } => {
                    let is_last = records.is_empty();
                    synced.changed |= mirror.apply(records, position);
                    if is_last && mirror.position() == position {
                        break;
                    }
                }
                ControlChanges::Everything { .. } if reads == MAX_READS => break,
                ControlChanges::Everything { .. } => {
                    reads += 1;
                    self.reconcile(mirror, new_change(), &mut synced).await?;
                }
            }
        }
        synced.dropped = self.drop_old(mirror);
        Ok(synced)
    }

    async fn reconcile(
        &mut self,
        mirror: &mut ControlMirror,
        change: u64,
        synced: &mut ControlSynced,
    ) -> Result<(), String> {
        let all = self.read_pages().await?;
        synced.aside = all.aside.len();
        let now = self.store_time.unwrap_or_default();
        // What cannot be read stays in Redis as it is, so this node's record of that key is not sent.
        let aside = all.aside.iter().filter_map(|key| mirror.get(key).cloned());
        let records: Vec<_> = all.records.into_values().chain(aside).collect();
        let reconciled = mirror.everything(now.0, records, all.position);
        synced.changed |= reconciled.changed;
        synced.lost = synced.lost.or(reconciled.lost);
        synced.sent += self.merge(change, &reconciled.to_send).await?;
        Ok(())
    }

    fn drop_old(&mut self, mirror: &mut ControlMirror) -> Vec<Box<str>> {
        let Some(now) = self.store_time else { return Vec::new() };
        if now.0.abs_diff(self.dropped_at.0) < DROP_EVERY.0 {
            return Vec::new();
        }
        self.dropped_at = now;
        mirror.drop_old(now.0)
    }
}
