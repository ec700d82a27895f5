//! Bans in Redis, which all nodes share.

use weir_store::scripts::{Commands, LinkReply, garbled};
use weir_units::Micros;

use super::codes::control_status;
use super::decode::{ControlReply, bans_of};
use super::exchange::KeysOf;
use super::numbers::ControlNumbers;
use super::texts::ControlScript;
use super::{ControlLink, position_bytes};
use crate::model::{Ban, BanChanges, BanSet, ControlPosition, MAX_BANS};

/// The most bans of one script call.
const ADDED_TOGETHER: usize = 500;

/// About how many bans a page has.
const PAGE: u32 = 200;

/// The most polls in [`ControlLink::sync_bans`]. The next one goes on.
const MAX_POLLS: usize = 100;

impl ControlLink {
    /// Adds bans. Of two bans of a member the later end stays. Returns how many were new or longer.
    pub async fn add_bans(&mut self, change: u64, bans: &[Ban]) -> Result<usize, String> {
        let change = change.to_be_bytes();
        let valid: Vec<&Ban> = bans.iter().filter(|ban| ban.is_valid()).collect();
        let mut added = 0;
        for part in valid.chunks(ADDED_TOGETHER) {
            let ends: Vec<String> = part.iter().map(|ban| ban.until.to_string()).collect();
            let pairs =
                part.iter().zip(&ends).flat_map(|(ban, ends)| [ban.member.as_bytes(), ends.as_bytes()]);
            let arguments: Vec<&[u8]> = std::iter::once(&change[..]).chain(pairs).collect();
            added += self.run_bans(ControlScript::AddBans, &arguments).await?.number;
        }
        Ok(usize::try_from(added).unwrap_or(usize::MAX))
    }

    /// Lifts the ban of a member. Returns whether there was one.
    pub async fn lift_ban(&mut self, change: u64, member: &str) -> Result<bool, String> {
        let arguments: [&[u8]; 2] = [&change.to_be_bytes(), member.as_bytes()];
        Ok(self.run_bans(ControlScript::LiftBan, &arguments).await?.number > 0)
    }

    /// Asks for what has changed after `position`, which is one of bans.
    pub async fn bans_since(&mut self, position: ControlPosition) -> Result<BanChanges, String> {
        let reply = self.run_bans(ControlScript::PollBans, &[&position_bytes(position)]).await?;
        let position = reply.position;
        match reply.status {
            control_status::SINCE => {
                let records = bans_of(&reply.pairs).map_err(|error| error.to_string())?;
                Ok(BanChanges::Since { records, position })
            }
            control_status::EVERYTHING => Ok(BanChanges::Everything { position }),
            _ => Err(garbled().to_string()),
        }
    }

    /// Reads all bans, and the position before that.
    pub async fn read_bans(&mut self) -> Result<(BanSet, ControlPosition), String> {
        let position = match self.bans_since(ControlPosition::UNSETTLED).await? {
            BanChanges::Since { position, .. } | BanChanges::Everything { position } => position,
        };
        let (key, mut cursor, mut bans) =
            (self.exchange.key(KeysOf::Bans), "0".to_owned(), BanSet::default());
        loop {
            let mut page = Commands::default();
            page.add("ZSCAN").arg(&key).arg(&cursor).arg("COUNT").number(PAGE);
            let replies = self.exchange.send(&page).await?;
            let [LinkReply::List(page)] = &replies[..] else { return Err(garbled().to_string()) };
            let [next, LinkReply::List(pairs)] = &page[..] else { return Err(garbled().to_string()) };
            let read = bans_of(pairs).map_err(|error| error.to_string())?;
            read.into_iter().for_each(|ban| bans.apply(ban));
            cursor = next.text().map_err(|error| error.to_string())?.into_owned();
            if cursor == "0" {
                return Ok((bans, position));
            }
        }
    }

    /// Brings a node's bans up to date. Returns whether something changed. If Redis has lost its bans, so has the node.
    pub async fn sync_bans(
        &mut self,
        bans: &mut BanSet,
        position: &mut ControlPosition,
    ) -> Result<bool, String> {
        let mut changed = false;
        for _ in 0..MAX_POLLS {
            match self.bans_since(*position).await? {
                BanChanges::Since { records, .. } if records.is_empty() => break,
                BanChanges::Since { records, position: last } => {
                    records.into_iter().for_each(|ban| bans.apply(ban));
                    (*position, changed) = (last, true);
                }
                BanChanges::Everything { .. } => {
                    (*bans, *position) = self.read_bans().await?;
                    changed = true;
                }
            }
        }
        Ok(changed)
    }

    async fn run_bans(&mut self, script: ControlScript, arguments: &[&[u8]]) -> Result<ControlReply, String> {
        let numbers = ControlNumbers { most_entries: MAX_BANS as f64, ..ControlNumbers::of_all() };
        let reply = self.exchange.run(KeysOf::Bans, script, numbers, arguments).await?;
        let reply = ControlReply::read(&reply).map_err(|error| error.to_string())?;
        self.store_time = Some(Micros(reply.now));
        Ok(reply)
    }
}
