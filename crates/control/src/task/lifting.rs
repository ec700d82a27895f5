//! Bans in the task of live control: what is due, what callers lift, and the audit of both.

use weir_node::audit::change_id;

use super::request::{BanLift, ControlFault};
use super::{ControlTask, random_id};
use crate::bans::{BannedCaller, BannedUntil};
use crate::store::ControlStore;

impl ControlTask {
    /// Gives the store the bans that are due. While Redis does not answer, they wait.
    pub(super) async fn apply_bans(&mut self) {
        if self.incomplete.is_some() {
            return;
        }
        let Ok(change) = random_id() else { return };
        if let Err(error) = self.bans.apply_due(&mut self.store, change).await {
            tracing::warn!(%error, "cannot write bans to Redis; will retry");
        }
    }

    /// Follows the bans of other nodes, forgets those that have ended, and gives the audit its totals.
    pub(super) async fn poll_bans(&mut self) {
        if let ControlStore::Redis(link) = &mut self.store
            && self.incomplete.is_none()
            && (self.bans.has_bans() || self.target.rules().has_bans())
            && let Err(error) = self.bans.follow(link).await
        {
            tracing::debug!(%error, "cannot read bans of other nodes; will retry");
        }
        self.bans.drop_ended();
        self.write_ban_totals(false);
    }

    /// Writes the totals of the last minute. What cannot be written is part of the next ones.
    pub(super) fn write_ban_totals(&mut self, is_last: bool) {
        let Some(totals) = self.bans.take_totals(is_last) else { return };
        if let Err(error) = self.audit.bans(self.clock.now(), &totals) {
            tracing::error!(%error, "cannot write the totals of bans to the audit log; will retry");
            self.bans.keep_totals(totals);
        }
    }

    /// Lifts a ban, if there is one.
    pub(super) async fn lift(&mut self, asked: BanLift) -> Result<BannedUntil, ControlFault> {
        let guard = &self.bans.guard;
        let until = guard.bans().until(&asked.member, guard.now()).ok_or(ControlFault::NoBan)?;
        let caller = BannedCaller::read(&asked.member).ok_or(ControlFault::NoBan)?;
        let lifted = BannedUntil { caller, until };
        if asked.dry_run {
            return Ok(lifted);
        }
        let change = random_id()?;
        let written = self.audit.lift(self.clock.now(), change, &asked, &lifted);
        written.map_err(|error| ControlFault::NotWritten(format!("the audit cannot be written: {error}")))?;
        let done = self.bans.lift(&mut self.store, change, &asked.member).await;
        let done = match done {
            Ok(true) => Ok(lifted),
            Ok(false) => Err(ControlFault::NoBan),
            Err(error) => Err(ControlFault::Bans(error)),
        };
        let result = done.as_ref().map_or_else(ToString::to_string, |_| "applied".to_owned());
        self.audit.ended(self.clock.now(), change, &result, None);
        if done.is_ok() {
            let (caller, ban) = (&asked.by, asked.member.escape_debug());
            tracing::info!(caller, method = "LiftBan", change = change_id(change), %ban, "ban lifted");
        }
        done
    }
}
