//! Slots of a cluster that move: first some of the keys, then the slots with all others.

use std::collections::{BTreeMap, BTreeSet};

use weir_simulator::redis::{SimulatedNode, SimulatedRange, SimulatedSlots, slot_of};

use super::SimulatedWorld;
use super::faults::ScheduledFault;
use crate::log::WorldFault;
use crate::network::{FIRST_PORT, HOST};

/// Number of slots of a cluster.
const SLOTS: usize = 16_384;

/// The owners of all slots.
pub(super) struct ClusterSlots {
    /// In rows: first, last, owner.
    rows: Vec<(u16, u16, usize)>,
    moving: Option<MovingSlots>,
}

/// Slots on their way, the end of a row.
#[derive(Debug, Clone, Copy)]
struct MovingSlots {
    row: usize,
    first: u16,
    last: u16,
    from: usize,
    to: usize,
}

impl ClusterSlots {
    /// All slots, in one row for each server.
    pub(super) fn new(servers: usize) -> Self {
        let begin = |server: usize| SLOTS * server / servers;
        let row = |server| (begin(server) as u16, (begin(server + 1) - 1) as u16, server);
        Self { rows: (0..servers).map(row).collect(), moving: None }
    }
}

impl SimulatedWorld {
    /// Tells all servers of a cluster who has which slots.
    pub(super) fn show_slots(&self) {
        if self.servers.len() < 2 {
            return;
        }
        let node = |server: usize| SimulatedNode { host: HOST.to_owned(), port: FIRST_PORT + server as u16 };
        let range = |&(first, last, owner): &(u16, u16, usize)| SimulatedRange {
            first,
            last,
            master: node(owner),
            replicas: Vec::new(),
        };
        let ranges: Vec<_> = self.slots.rows.iter().map(range).collect();
        for (number, server) in self.servers.iter().enumerate() {
            let (mut migrating, mut importing) = (BTreeMap::new(), BTreeSet::new());
            if let Some(MovingSlots { first, last, from, to, .. }) = self.slots.moving {
                if number == from {
                    migrating = (first..=last).map(|slot| (slot, node(to))).collect();
                }
                if number == to {
                    importing = (first..=last).collect();
                }
            }
            let own = node(number);
            server.redis.serve_slots(Some(SimulatedSlots {
                own,
                ranges: ranges.clone(),
                migrating,
                importing,
            }));
        }
    }

    /// Some slots of a row begin to move to another server, with half of their keys.
    pub(super) fn begin_move(&mut self) {
        if self.servers.len() < 2 || self.slots.moving.is_some() {
            return;
        }
        let row = self.random.below(self.slots.rows.len() as u64) as usize;
        let (first, last, from) = self.slots.rows[row];
        let to = (from + 1 + self.random.below(self.servers.len() as u64 - 1) as usize) % self.servers.len();
        let first = first + self.random.below(u64::from(last - first) + 1) as u16;
        let moving = MovingSlots { row, first, last, from, to };
        self.slots.moving = Some(moving);
        self.log.fault(WorldFault::SlotsBeginToMove { from, to, first, last });
        let mut random = self.random.fork();
        self.move_keys(moving, |_| random.one_in(2));
        self.show_slots();
        let lasts = self.random.between(5_000, 400_000);
        self.schedule(lasts, ScheduledFault::EndMove);
    }

    /// The others follow.
    pub(super) fn end_move(&mut self) {
        let Some(moving) = self.slots.moving.take() else { return };
        let MovingSlots { row, first, last, from, to } = moving;
        self.move_keys(moving, |_| true);
        let (begins, _, _) = self.slots.rows[row];
        self.slots.rows[row] = (first, last, to);
        if first > begins {
            self.slots.rows.push((begins, first - 1, from));
        }
        self.log.fault(WorldFault::SlotsHaveMoved { from, to, first, last });
        self.show_slots();
    }

    /// Drops the keys of slots that a server has not, as Redis does when it starts.
    pub(super) fn drop_others_keys(&mut self, server: usize) {
        let moving = self.slots.moving.filter(|moving| moving.to == server);
        let is_own = |slot: &u16| {
            let comes = moving.is_some_and(|moving| (moving.first..=moving.last).contains(slot));
            let mut rows = self.slots.rows.iter();
            comes || rows.any(|(first, last, owner)| *owner == server && (first..=last).contains(&slot))
        };
        let mut data = self.servers[server].redis.data();
        let dropped = data.split_off(|key| !is_own(&slot_of(key)));
        let keys = dropped.names().map(<[u8]>::to_vec).collect();
        self.servers[server].redis.restore(data);
        self.log.fault(WorldFault::KeysDropped { server, keys });
    }

    /// Moves the keys that `moves` says. Of those that both servers have, after a failover, that of the new owner stays.
    fn move_keys(&mut self, moving: MovingSlots, mut moves: impl FnMut(&[u8]) -> bool) {
        let MovingSlots { first, last, from, to, .. } = moving;
        let mut own = self.servers[to].redis.data();
        let has: BTreeSet<Vec<u8>> = own.names().map(<[u8]>::to_vec).collect();
        let mut data = self.servers[from].redis.data();
        let moved =
            data.split_off(|key| (first..=last).contains(&slot_of(key)) && !has.contains(key) && moves(key));
        let keys = moved.names().map(<[u8]>::to_vec).collect();
        self.servers[from].redis.restore(data);
        own.merge(moved);
        self.servers[to].redis.restore(own);
        self.log.fault(WorldFault::KeysMove { from, to, keys });
    }
}
