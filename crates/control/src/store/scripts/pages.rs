//! Reads all records in pages, so that no command takes Redis long.

use std::collections::BTreeMap;

use weir_store::StoreError;
use weir_store::scripts::{Commands, LinkReply, garbled};
use weir_units::Micros;

use super::ControlLink;
use super::decode::{position_of, records_of};
use super::exchange::KeysOf;
use crate::model::{ControlPosition, ControlRecord};

/// About how many records a page has.
const PAGE: u32 = 100;

/// All records of Redis.
pub(super) struct AllRecords {
    pub(super) records: BTreeMap<Box<str>, ControlRecord>,
    /// Keys of records that this version cannot read.
    pub(super) aside: Vec<Box<str>>,
    /// The position before the first page and after the last one; [`ControlPosition::UNSETTLED`] if they differ.
    pub(super) position: ControlPosition,
}

impl ControlLink {
    pub(super) async fn read_pages(&mut self) -> Result<AllRecords, String> {
        let key = self.exchange.key(KeysOf::Records);
        let position = self.read_position(&key).await?;
        let mut all = AllRecords { records: BTreeMap::new(), aside: Vec::new(), position };
        let mut cursor = "0".to_owned();
        loop {
            let mut page = Commands::default();
            page.add("HSCAN").arg(&key).arg(&cursor).arg("COUNT").number(PAGE);
            let reply = self.exchange.send(&page).await?;
            cursor = all.add(&reply).map_err(written)?;
            if cursor == "0" {
                break;
            }
        }
        if self.read_position(&key).await? != all.position {
            all.position = ControlPosition::UNSETTLED;
        }
        self.note_version(all.position.version);
        all.records.values().for_each(|record| self.note_version(record.version));
        Ok(all)
    }

    async fn read_position(&mut self, key: &str) -> Result<ControlPosition, String> {
        let mut commands = Commands::default();
        commands.add("TIME");
        commands.add("HGET").arg(key).arg("");
        let replies = self.exchange.send(&commands).await?;
        let [time, position] = &replies[..] else { return Err(garbled().to_string()) };
        self.store_time = Some(self.exchange.now().map_or_else(|| time_of(time), Ok).map_err(written)?);
        Ok(match position {
            LinkReply::Bytes(bytes) => position_of(bytes).unwrap_or_default(),
            _ => ControlPosition::NONE,
        })
    }
}

impl AllRecords {
    /// Adds a page, and returns the cursor of the next one. A key may come twice, the second time with a newer record.
    fn add(&mut self, reply: &[LinkReply]) -> Result<String, StoreError> {
        let [LinkReply::List(page)] = reply else { return Err(garbled()) };
        let [cursor, LinkReply::List(fields)] = &page[..] else { return Err(garbled()) };
        // The empty field is the position.
        let pairs = fields
            .chunks_exact(2)
            .filter(|pair| !matches!(&pair[0], LinkReply::Bytes(key) if key.is_empty()));
        let pairs: Vec<LinkReply> = pairs.flatten().cloned().collect();
        let (records, aside) = records_of(&pairs)?;
        for record in records {
            let known = self.records.get(&record.key);
            if known.is_none_or(|known| record.is_newer_than(known)) {
                self.records.insert(record.key.clone(), record);
            }
        }
        self.aside.extend(aside);
        Ok(cursor.text()?.into_owned())
    }
}

fn time_of(reply: &LinkReply) -> Result<Micros, StoreError> {
    let LinkReply::List(parts) = reply else { return Err(garbled()) };
    let [seconds, micros] = &parts[..] else { return Err(garbled()) };
    let number = |value: &LinkReply| -> Result<u64, StoreError> {
        std::str::from_utf8(value.bytes()?).ok().and_then(|text| text.parse().ok()).ok_or_else(garbled)
    };
    Ok(Micros(number(seconds)?.saturating_mul(1_000_000).saturating_add(number(micros)?)))
}

fn written(error: StoreError) -> String {
    error.to_string()
}
