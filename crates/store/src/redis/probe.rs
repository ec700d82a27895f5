//! Whether a node of a cluster lets one script call decide over keys of several of its slots.
//!
//! A script may touch keys that were not declared, if they are the node's own. Some services refuse that,
//! and early servers of version 7.0 counted such keys in the wrong slot. So it is tried: two keys of two
//! slots are written, read back, and must be counted in their own slots. Where that fails (also for want of
//! a right to ask), a call has keys of one slot only; nothing else changes.

use redis::Value;

use super::connect::Connection;
use super::topology::{Address, Topology};
use weir_core::key::{KeySecret, slot};

/// In one step, so that nobody else's keys come between: counts, writes, reads back, counts again, and
/// leaves nothing behind.
const TRIAL: &str = "
local function count(slot) return redis.call('CLUSTER', 'COUNTKEYSINSLOT', slot) end
local before, fine = { count(ARGV[3]), count(ARGV[4]) }, 1
for i = 1, 2 do redis.call('SET', ARGV[i], i, 'PX', 60000) end
for i = 1, 2 do
  if redis.call('GET', ARGV[i]) ~= tostring(i) or count(ARGV[i + 2]) ~= before[i] + 1 then fine = 0 end
end
for i = 1, 2 do redis.call('DEL', ARGV[i]) end
return fine";

/// Tags that are tried to find two slots of a node. One that has so few slots as not to be met needs none
/// of this.
const TRIES: u128 = 4096;

/// Tries it on the node at `address`.
pub(super) async fn spans_slots(
    connection: &mut Connection,
    topology: &Topology,
    address: &Address,
) -> Result<(), String> {
    let [one, two] = two_slots(topology, address).ok_or("it has no two slots that were found")?;
    let mut command = redis::cmd("EVAL");
    command.arg(TRIAL).arg(0);
    for (tag, _) in [one, two] {
        command.arg(format!("weir:{{{:016x}}}:probe", tag as u64));
    }
    command.arg(one.1).arg(two.1);
    match connection.send(&command).await {
        Ok(Value::Int(1)) => Ok(()),
        Ok(_) => Err("it counts keys in other slots".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Two tags that nobody else has, with their slots, which the node holds as far as is known.
fn two_slots(topology: &Topology, address: &Address) -> Option<[(u128, u16); 2]> {
    let any = KeySecret::random().hash(b"probe");
    let own = |tag: &u128| topology.owner(slot(*tag)).is_ok_and(|owner| owner == *address);
    let mut tags = (0..TRIES).map(|number| any.wrapping_add(number)).filter(own).map(|tag| (tag, slot(tag)));
    let first = tags.next()?;
    let second = tags.find(|(_, slot)| *slot != first.1)?;
    Some([first, second])
}
