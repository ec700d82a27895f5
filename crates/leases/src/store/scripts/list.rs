//! The request for a page of leases. The script is `lua/leases/list.lua`; requests never share a call.

use std::time::Duration;

use weir_core::key;
use weir_store::StoreError;
use weir_store::scripts::{
    AskScripts, LaneReplies, LaneRequest, LinkReply, Script, doubles_of as doubles, garbled, next_whole,
    put_double as put,
};
use weir_units::{LATEST, Micros};

use super::decode::packed;
use super::texts::lease_list_script;
use crate::model::{HeldLease, LeasePage};
use crate::store::LeasesAsk;

/// The request for a page of leases.
pub(super) struct LeaseListRequest {
    tag: u128,
    /// The two keys, concatenated. The first one ends at `first_ends`.
    keys: Vec<u8>,
    first_ends: usize,
    after_id: Box<str>,
    after_end: Option<Micros>,
}

impl LeaseListRequest {
    /// Builds the keys.
    pub(super) fn new(access: &impl AskScripts, ask: &LeasesAsk<'_>) -> Self {
        let tag = access.tag_of(ask.strategy, &ask.subject);
        let mut keys = Vec::with_capacity(160);
        let prefix = access.namespace().prefix(tag);
        let first_ends = key::write_lease_keys(&mut keys, prefix, ask.strategy, &ask.subject);
        let (after_id, after_end) = match ask.after {
            Some(after) => (after.id.into(), Some(after.ends)),
            None => (Box::default(), None),
        };
        Self { tag, keys, first_ends, after_id, after_end }
    }
}

impl LaneRequest for LeaseListRequest {
    type Answer = LeasePage;

    fn script(&self) -> &'static Script {
        lease_list_script()
    }

    fn tag(&self) -> u128 {
        self.tag
    }

    /// A page costs about as much as 20 keys.
    fn keys(&self) -> usize {
        20
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }

    fn fits(&self, _: &[&Self]) -> bool {
        false
    }

    fn patience(&self, decisions: Duration) -> Duration {
        decisions
    }

    /// Writes the only request: requests of this script are never joined.
    fn write(requests: &[&Self], now: Option<Micros>, argument: &mut dyn FnMut(&[u8])) {
        let Some(request) = requests.first() else { return };
        let (records, ends) = request.keys.split_at(request.first_ends);
        argument(b"2");
        argument(records);
        argument(ends);
        argument(request.after_id.as_bytes());
        let mut packed = Vec::with_capacity(16);
        put(&mut packed, now.map_or(-1.0, |now| now.min(LATEST).0 as f64));
        put(&mut packed, request.after_end.map_or(-1.0, |ends| ends.0 as f64));
        argument(&packed);
    }

    fn decode(requests: &[&Self], reply: &LinkReply) -> Result<LaneReplies<LeasePage>, StoreError> {
        if requests.len() != 1 {
            return Err(garbled());
        }
        Ok(LaneReplies::from_buf([Ok(page(reply)?)]))
    }
}

fn page(reply: &LinkReply) -> Result<LeasePage, StoreError> {
    let (numbers, texts) = packed(reply)?;
    let mut numbers = doubles(numbers);
    let mut next = || next_whole(&mut numbers);
    let (now, count, more) = (Micros(next()?), next()?, next()? == 1);
    let lease = |names: &[LinkReply]| {
        let [id, partition] = names else { return Err(garbled()) };
        let (weight, acquired, ends) = (next()?, Micros(next()?), Micros(next()?));
        // A record has its partition behind a letter, so an empty one is none.
        let partition =
            partition.bytes()?.strip_prefix(b"p").map(|name| String::from_utf8_lossy(name).into());
        Ok(HeldLease { id: id.text()?.into(), weight, acquired, ends, partition })
    };
    let leases = texts.chunks(2).map(lease).collect::<Result<_, _>>()?;
    Ok(LeasePage { now, count, leases, more })
}
