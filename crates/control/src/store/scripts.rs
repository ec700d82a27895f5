//! Records of live control in a backend with scripts, which all nodes share: the scripts of `lua/control/`, and reading all records.
//!
//! A put may be repeated under its id, and a merge or a poll always, so a lost reply needs no care.

mod bans;
mod codes;
mod decode;
mod exchange;
mod numbers;
mod pages;
mod sync;
mod texts;

use weir_store::scripts::{ScriptClient, garbled};
use weir_units::Micros;

use self::codes::control_status;
use self::decode::{ControlReply, records_of};
use self::exchange::{ControlExchange, KeysOf};
use self::numbers::{ControlNumbers, EntryNumbers};
pub use self::sync::ControlSynced;
pub use self::texts::CONTROL;
use self::texts::ControlScript;
use crate::model::{
    ControlChanges, ControlPosition, ControlPut, ControlRecord, ControlRefusal, MAX_POLLED_BYTES, RefusedPut,
    check_puts, encode_record, fault,
};

/// The most records of one merge, and about the most bytes.
const MERGED_TOGETHER: usize = 100;
const MERGED_BYTES: usize = MAX_POLLED_BYTES / 4;

/// A connection to the node that owns the slot of live control.
pub struct ControlLink {
    exchange: ControlExchange,
    /// The greatest version that it has seen. A put gets a greater one, also after a loss or with a clock that is behind.
    known: u64,
    store_time: Option<Micros>,
    /// Time at which old records of the mirror were dropped.
    dropped_at: Micros,
}

impl ControlLink {
    /// Creates a link, which connects on first use.
    #[must_use]
    pub fn open(scripts: &ScriptClient) -> Self {
        let exchange = ControlExchange::new(scripts);
        Self { exchange, known: 0, store_time: None, dropped_at: Micros::ZERO }
    }

    /// Makes a change. Returns what was written, or why nothing was.
    pub async fn put(
        &mut self,
        put: &ControlPut,
    ) -> Result<Result<Vec<ControlRecord>, ControlRefusal>, String> {
        let written = self.put_many(std::slice::from_ref(put)).await?;
        Ok(written.map_err(|refused| refused.refusal))
    }

    /// Makes several changes as one, all or none of them. They have one id.
    pub async fn put_many(
        &mut self,
        puts: &[ControlPut],
    ) -> Result<Result<Vec<ControlRecord>, RefusedPut>, String> {
        if let Err(refused) = check_puts(puts) {
            return Ok(Err(refused));
        }
        let change = puts.first().map_or(0, |put| put.change).to_be_bytes();
        let packed: Vec<_> = puts
            .iter()
            .map(|put| (EntryNumbers::packed(put), position_bytes(put.expect.unwrap_or_default())))
            .collect();
        let mut arguments: Vec<&[u8]> = vec![&change[..]];
        for (put, (numbers, expected)) in puts.iter().zip(&packed) {
            let generation = put.generation.as_deref().unwrap_or_default();
            arguments.extend([
                &numbers[..],
                &expected[..],
                put.key.as_bytes(),
                put.kept(),
                generation.as_bytes(),
            ]);
        }
        let reply = self.run(ControlScript::Put, ControlNumbers::of_put(self.known), &arguments).await?;
        let number = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let refusal = match reply.status {
            control_status::WRITTEN => return Ok(Ok(self.records(&reply)?)),
            control_status::STALE => ControlRefusal::Stale { current: reply.position },
            control_status::FULL => ControlRefusal::Full { most: number(reply.number) },
            control_status::MISSING => ControlRefusal::Missing,
            _ => return Err(garbled().to_string()),
        };
        Ok(Err(RefusedPut { place: number(reply.place), refusal }))
    }

    /// Asks for what was written after `position`.
    pub async fn poll(&mut self, position: ControlPosition) -> Result<ControlChanges, String> {
        let numbers = ControlNumbers::of_all();
        let reply = self.run(ControlScript::Poll, numbers, &[&position_bytes(position)]).await?;
        let position = reply.position;
        match reply.status {
            control_status::SINCE => Ok(ControlChanges::Since { records: self.records(&reply)?, position }),
            control_status::EVERYTHING => Ok(ControlChanges::Everything { position }),
            _ => Err(garbled().to_string()),
        }
    }

    /// Reads all records, and the position; [`ControlPosition::UNSETTLED`] if it changed meanwhile.
    pub async fn read_all(&mut self) -> Result<(Vec<ControlRecord>, ControlPosition), String> {
        let all = self.read_pages().await?;
        Ok((all.records.into_values().collect(), all.position))
    }

    /// Sends records of a node. Redis takes those that are newer than its own. Returns how many these were.
    pub async fn merge(&mut self, change: u64, records: &[ControlRecord]) -> Result<usize, String> {
        let change = change.to_be_bytes();
        let mut taken = 0;
        for part in parts(records) {
            let mut arguments = vec![change.to_vec()];
            for record in part {
                let mut bytes = Vec::new();
                encode_record(record, &mut bytes);
                arguments.extend([record.key.as_bytes().to_vec(), bytes]);
            }
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let reply = self.run(ControlScript::Merge, ControlNumbers::of_all(), &arguments).await?;
            if reply.status != control_status::WRITTEN {
                return Err(garbled().to_string());
            }
            taken += usize::try_from(reply.number).unwrap_or(0);
        }
        Ok(taken)
    }

    /// The greatest version that it has seen. A put gets a greater one.
    #[must_use]
    pub fn known_version(&self) -> u64 {
        self.known
    }

    /// The time of Redis at its last answer.
    #[must_use]
    pub fn store_time(&self) -> Option<Micros> {
        self.store_time
    }

    async fn run(
        &mut self,
        script: ControlScript,
        numbers: ControlNumbers,
        arguments: &[&[u8]],
    ) -> Result<ControlReply, String> {
        let reply = self.exchange.run(KeysOf::Records, script, numbers, arguments).await?;
        let reply = ControlReply::read(&reply).map_err(|error| error.to_string())?;
        self.store_time = Some(Micros(reply.now));
        self.note_version(reply.position.version);
        Ok(reply)
    }

    /// The records of a reply.
    fn records(&mut self, reply: &ControlReply) -> Result<Vec<ControlRecord>, String> {
        let (records, _) = records_of(&reply.pairs).map_err(|error| error.to_string())?;
        records.iter().for_each(|record| self.note_version(record.version));
        Ok(records)
    }

    /// Records a version that the node knows from elsewhere, such as the greatest of its cache file, before the first
    /// put. [`ControlLink::sync`] does so, too.
    pub fn note_version(&mut self, version: u64) {
        self.known = self.known.max(version);
    }
}

fn position_bytes(position: ControlPosition) -> [u8; 16] {
    (u128::from(position.version) << 64 | u128::from(position.change)).to_be_bytes()
}

/// Splits what a store can take into parts for one script call each.
fn parts(records: &[ControlRecord]) -> Vec<Vec<&ControlRecord>> {
    let mut parts: Vec<Vec<&ControlRecord>> = Vec::new();
    let mut bytes = 0;
    for record in records.iter().filter(|record| fault(record).is_none()) {
        let size = record.key.len() + record.body.len();
        match parts.last_mut() {
            Some(part) if part.len() < MERGED_TOGETHER && bytes + size <= MERGED_BYTES => {
                part.push(record);
                bytes += size;
            }
            _ => {
                parts.push(vec![record]);
                bytes = size;
            }
        }
    }
    parts
}
