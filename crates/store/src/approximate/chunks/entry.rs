//! The chunk of one key on this node, and the callers that wait for the store's answer about it.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, State};
use weir_core::approximate::{ChunkAnswer, ChunkCall, ChunkCount, ChunkMoment, ChunkOp, ChunkVerdict};
use weir_units::{LATEST, Micros};

use crate::CounterKey;
use crate::approximate::ApproximateNode;
use crate::approximate::line::{HasKeyLine, KeyLine, KeyQuestion, KeyWaiter};
use crate::approximate::places::PlaceSet;

/// A charge of a key.
pub(super) type ChunkQuestion = KeyQuestion<ChunkOp, Algorithm>;

/// A caller that waits for the store's answer.
pub(super) type ChunkWaiter = KeyWaiter<ChunkOp, Algorithm, ChunkVerdict>;

/// The chunk of one key.
pub(in crate::approximate) struct ChunkEntry {
    pub(super) set: Arc<PlaceSet>,
    pub(super) key: CounterKey,
    /// The server that has the limit, if one is known.
    server: Option<u64>,
    pub(super) count: ChunkCount,
    /// True while the key is listed among those whose chunks grow old.
    is_listed: bool,
    pub(super) line: KeyLine<ChunkOp, Algorithm, ChunkVerdict>,
}

impl ChunkEntry {
    pub(super) fn new(set: &Arc<PlaceSet>, key: CounterKey, server: Option<u64>) -> Self {
        Self {
            set: Arc::clone(set),
            key,
            server,
            count: ChunkCount::default(),
            is_listed: false,
            line: KeyLine::default(),
        }
    }

    /// What the node knows at its time `now`.
    pub(super) fn moment(&self, node: &ApproximateNode, now: Micros) -> ChunkMoment {
        let clock = self.server.and_then(|server| node.clocks.of(server));
        ChunkMoment {
            now,
            // Before the first answer of a server its time may be any.
            store: clock.map_or((Micros::ZERO, LATEST), |clock| clock.at(now)),
            holds_place: clock.is_some() && self.set.may_take(now),
            may_spend: !self.set.is_ending(),
            denies_for: node.denies_for,
        }
    }

    /// Takes in an answer of a server.
    pub(super) fn learn(
        &mut self,
        (call, answer, after): (&ChunkCall, &ChunkAnswer, Option<State>),
        server: Option<u64>,
        node: &ApproximateNode,
        digest: u128,
    ) {
        self.server = server.or(self.server);
        let moment = self.moment(node, node.clock.now());
        self.count.learn(call, answer, after, &moment);
        self.list(digest);
    }

    /// Lists the key, if it has a chunk, by the end of this.
    pub(super) fn list(&mut self, digest: u128) {
        if let Some(until) = self.count.chunk_until().filter(|_| !self.is_listed) {
            self.is_listed = true;
            self.set.grows_old(until, digest);
        }
    }

    /// Notes that the key is listed no more.
    pub(super) fn unlist(&mut self) {
        self.is_listed = false;
    }

    pub(super) fn is_idle(&self, now: Micros, denies_for: Micros) -> bool {
        !self.line.is_in_flight() && !self.is_listed && self.count.is_idle(now, denies_for)
    }
}

impl HasKeyLine for ChunkEntry {
    type Op = ChunkOp;
    type Limit = Algorithm;
    type Verdict = ChunkVerdict;

    fn line(&mut self) -> &mut KeyLine<ChunkOp, Algorithm, ChunkVerdict> {
        &mut self.line
    }
}
