//! Numbers of the scripts of chunks: what they are told, and what they answer.

use weir_core::algorithm::{Algorithm, Engine, State};
use weir_core::approximate::{ChunkAnswer, ChunkAsk, ChunkOp};
use weir_units::{CEILING, LATEST, Micros};

use super::{CountArguments, CountRequest};
use crate::redis::codes::chunk_op;
use crate::redis::doubles::doubles;
use crate::redis::reply::garbled;
use crate::redis::source::CountScript;
use crate::{CounterKey, StoreError};

doubles! {
    /// What a call begins with, as any on the engines.
    ChunksHead {
        /// The time, or -1 to use the server's clock.
        now,
        groups,
        repeats,
    }
}

doubles! {
    /// One request. The header of each engine's file explains p1 to p3.
    ChunkNumbers {
        engine,
        limit,
        weight,
        p1,
        p2,
        p3,
        op,
        cost,
        times,
        chunk,
        /// What is given back.
        units,
        /// Of which window it is, or since when the node had it.
        taken,
        lasts,
    }
}

/// The field names in the order they are sent. A test compares them with the script.
#[cfg(test)]
pub(in crate::redis) const DOUBLES: &[&[&str]] = &[ChunksHead::NAMES, ChunkNumbers::NAMES];

impl ChunksHead {
    pub(super) fn of(now: Option<Micros>, requests: usize) -> Self {
        let now = now.map_or(-1.0, |now| now.min(LATEST).0 as f64);
        Self { now, groups: requests as f64, repeats: 0.0 }
    }
}

impl CountRequest {
    pub(super) fn of_chunk(key: &CounterKey, limit: &Algorithm, ask: &ChunkAsk) -> Self {
        let script = match limit.engine() {
            Engine::Bucket(_) => CountScript::BucketChunks,
            _ => CountScript::WindowChunks,
        };
        Self::new(key, script, CountArguments::Chunk(ChunkNumbers::of(limit, ask)))
    }
}

impl ChunkNumbers {
    fn of(limit: &Algorithm, ask: &ChunkAsk) -> Self {
        // Strategies refuse all other engines, and other kinds of these two.
        let p1 = match *limit.engine() {
            Engine::Bucket(own) => own.drain,
            Engine::Window(own) => own.span,
            _ => 0,
        };
        let op = match ask.op {
            ChunkOp::Charge => chunk_op::CHARGE_CHUNK,
            ChunkOp::AtMost => chunk_op::AT_MOST_CHUNK,
        };
        Self {
            engine: limit.engine().kind().number() as f64,
            limit: limit.limit() as f64,
            weight: limit.weight() as f64,
            p1: p1 as f64,
            p2: 0.0,
            p3: 0.0,
            op: op as f64,
            cost: ask.cost.min(CEILING) as f64,
            times: ask.times as f64,
            chunk: ask.chunk as f64,
            units: ask.give_back.map_or(0, |rest| rest.units) as f64,
            taken: ask.give_back.map_or(0, |rest| rest.taken.0) as f64,
            lasts: ask.lasts.0 as f64,
        }
    }
}

/// The answer of these numbers.
pub(super) fn answer(limit: &Algorithm, numbers: &[u64]) -> Result<ChunkAnswer, StoreError> {
    let &[now, took_back, passed, has_chunk, ref state @ ..] = numbers else { return Err(garbled()) };
    let before: Option<State> = match state {
        [] => None,
        state => Some(limit.engine().restore(&mut state.iter().copied()).ok_or_else(garbled)?),
    };
    Ok(ChunkAnswer { now: Micros(now), took_back: took_back > 0, passed, has_chunk: has_chunk > 0, before })
}
