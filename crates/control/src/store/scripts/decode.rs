//! Replies of the scripts of live control.

use weir_store::StoreError;
use weir_store::scripts::{LinkReply, doubles_of, garbled, next_whole, whole};

use crate::model::{Ban, ControlPosition, ControlRecord, decode_record};

/// The reply of a script.
#[derive(Debug)]
pub(super) struct ControlReply {
    pub(super) now: u64,
    pub(super) status: u64,
    /// A bound, or how many records were taken over.
    pub(super) number: u64,
    /// Index of the refused entry.
    pub(super) place: u64,
    pub(super) position: ControlPosition,
    /// Keys and records, or members and ends, in turn.
    pub(super) pairs: Vec<LinkReply>,
}

impl ControlReply {
    pub(super) fn read(reply: &LinkReply) -> Result<Self, StoreError> {
        let LinkReply::List(parts) = reply else { return Err(garbled()) };
        let [numbers, position, pairs @ ..] = &parts[..] else { return Err(garbled()) };
        let mut numbers = doubles_of(numbers.bytes()?);
        let mut next = || next_whole(&mut numbers);
        Ok(Self {
            now: next()?,
            status: next()?,
            number: next()?,
            place: next()?,
            position: position_of(position.bytes()?).ok_or_else(garbled)?,
            pairs: pairs.to_vec(),
        })
    }
}

/// Reads members and the ends of their bans, in turn.
pub(super) fn bans_of(pairs: &[LinkReply]) -> Result<Vec<Ban>, StoreError> {
    let ban = |pair: &[LinkReply]| {
        let [member, until] = pair else { return Err(garbled()) };
        let until = match until {
            LinkReply::Double(until) => whole(*until)?,
            until => until.text()?.parse().map_err(|_| garbled())?,
        };
        Ok(Ban { member: member.text()?.into(), until })
    };
    pairs.chunks(2).map(ban).collect()
}

/// Reads a position. Anything but 16 bytes is none, and neither is a version of 2^53 or more.
pub(super) fn position_of(bytes: &[u8]) -> Option<ControlPosition> {
    let number = u128::from_be_bytes(bytes.try_into().ok()?);
    let (version, change) = ((number >> 64) as u64, number as u64);
    (version < 1 << 53).then_some(ControlPosition { version, change })
}

/// Reads keys and records, in turn. Records that this version cannot read are kept aside, with one line of the log each.
/// Their keys are the second result.
pub(super) fn records_of(pairs: &[LinkReply]) -> Result<(Vec<ControlRecord>, Vec<Box<str>>), StoreError> {
    let (mut records, mut aside) = (Vec::with_capacity(pairs.len() / 2), Vec::new());
    for pair in pairs.chunks_exact(2) {
        let [key, record] = pair else { continue };
        let key = key.text()?;
        match decode_record(&key, record.bytes()?) {
            Ok(record) => records.push(record),
            Err(error) => {
                tracing::warn!(%key, %error, "cannot read a record of live control in Redis; keeping it aside");
                aside.push(key.into());
            }
        }
    }
    Ok((records, aside))
}
