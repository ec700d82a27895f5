//! Detects whether a cluster node supports script calls with keys of several of its slots.
//!
//! Redis lets a script access undeclared keys of the node's own slots. Some managed services refuse that, and early
//! 7.0 releases counted such keys in the wrong slot. The trial writes two keys of two slots, reads them back, and
//! checks that each is counted in its own slot. If it fails (also for lack of a right), a call has keys of one
//! slot only, and `trials.rs` tries again later; nothing else changes.

use std::time::Duration;

use redis::{ErrorKind, Value};

use super::connect::Connection;
use super::context::LinkContext;
use super::topology::Address;
use weir_core::key::slot;

/// Counts, writes, reads back, counts again and deletes, atomically, so that no other client's keys are counted.
const TRIAL: &str = "
local function count(slot) return redis.call('CLUSTER', 'COUNTKEYSINSLOT', slot) end
local before, fine = { count(ARGV[3]), count(ARGV[4]) }, 1
for i = 1, 2 do redis.call('SET', ARGV[i], i, 'PX', 60000) end
for i = 1, 2 do
  if redis.call('GET', ARGV[i]) ~= tostring(i) or count(ARGV[i + 2]) ~= before[i] + 1 then fine = 0 end
end
for i = 1, 2 do redis.call('DEL', ARGV[i]) end
return fine";

/// Maximum number of tags tried to find two slots of a node. A node with so few slots that none is found does not
/// need calls over several slots.
const TRIES: u128 = 4096;

/// The reason that a trial failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// No two slots of the node were found. It does not need such calls, or will get more slots.
    #[error("the node has no two slots that were found")]
    FewSlots,
    #[error("{0}")]
    Refused(String),
    /// The script ran, and its keys were counted in other slots.
    #[error("the node counts keys of such scripts in other slots")]
    Miscounted,
    /// The trial timed out.
    #[error("the node did not answer a trial within {0:?}")]
    Silence(Duration),
    #[error("the connection has ended")]
    Disconnected,
}

impl Refusal {
    pub(super) fn to_do(&self) -> &'static str {
        // The wording depends on the version of Redis.
        let wants_right =
            |why: &str| ["NOPERM", "ACL failure", "can't run this command"].iter().any(|it| why.contains(it));
        match self {
            Self::Refused(why) if wants_right(why) => {
                "grant the user +cluster|countkeysinslot, besides the rights that docs/redis.md lists"
            }
            Self::Miscounted => "upgrade the server; early 7.0 releases do this",
            _ => "nothing, if it is over soon; otherwise look at the node",
        }
    }
}

/// Runs the trial on the node at `address`.
pub(super) async fn spans_slots(
    connection: &mut Connection,
    context: &LinkContext,
    address: &Address,
) -> Result<(), Refusal> {
    let [one, two] = two_slots(context, address).ok_or(Refusal::FewSlots)?;
    let mut command = redis::cmd("EVAL");
    command.arg(TRIAL).arg(0);
    for (tag, _) in [one, two] {
        let mut key = Vec::new();
        context.config.namespace.prefix(tag).write(&mut key);
        key.extend_from_slice(b"probe");
        command.arg(key);
    }
    command.arg(one.1).arg(two.1);
    match connection.send(&command).await {
        Ok(Value::Int(1)) => Ok(()),
        Ok(_) => Err(Refusal::Miscounted),
        Err(error) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
            Err(Refusal::Refused(error.to_string()))
        }
        Err(_) => Err(Refusal::Disconnected),
    }
}

/// Finds two unused tags of different slots, with their slots. The node owns both by the current slot map.
fn two_slots(context: &LinkContext, address: &Address) -> Option<[(u128, u16); 2]> {
    let any = u128::from(context.surroundings.random.number());
    let own = |tag: &u128| context.topology.owner(slot(*tag)).is_ok_and(|owner| owner == *address);
    let mut tags = (0..TRIES).map(|number| any.wrapping_add(number)).filter(own).map(|tag| (tag, slot(tag)));
    let first = tags.next()?;
    let second = tags.find(|(_, slot)| *slot != first.1)?;
    Some([first, second])
}
