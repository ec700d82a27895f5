//! The scripts of `lua/approximate/` on a real Redis, which get the time from the test.

use redis::{Cmd, Connection};
use weir_core::algorithm::{Algorithm, Engine};
use weir_core::approximate::{
    ApproximateBound, ChunkAnswer, ChunkAsk, ChunkOp, CountAnswer, CountAsk, GivenBack, NodePush,
    PlaceAnswer, PlaceAsk,
};
use weir_units::Micros;

use crate::support::RedisServer;

macro_rules! lua {
    ($($path:literal)+) => {
        concat!($(include_str!(concat!("../../../lua/", $path, ".lua")), "\n"),+)
    };
}

const BUCKET_CHUNKS: &str = lua!("start" "numbers" "bucket" "limit" "approximate/chunks");
const WINDOW_CHUNKS: &str = lua!("start" "numbers" "window" "limit" "approximate/chunks");
const COUNT: &str = include_str!("../../../lua/approximate/count.lua");
const PLACES: &str = include_str!("../../../lua/approximate/places.lua");

/// `lua/approximate/count.lua`.
pub struct CountScript(Connection);

/// `lua/approximate/chunks.lua` with its engine.
pub struct ChunksScript(Connection);

/// `lua/approximate/places.lua`.
pub struct PlacesScript(Connection);

impl CountScript {
    pub fn on(redis: &RedisServer) -> Self {
        Self(redis.connection())
    }

    pub fn answer(&mut self, key: &str, length: Micros, ask: CountAsk, now: Micros) -> CountAnswer {
        let none = NodePush { window: 0, place: 0, incarnation: 0, sequence: 0, units: 0 };
        let (push, has_push) = (ask.push.unwrap_or(none), u8::from(ask.push.is_some()));
        let mut call = eval(COUNT, key);
        call.arg(now.0).arg(length.0).arg(ask.op.name()).arg(ask.cost).arg(ask.times);
        call.arg(ask.limit).arg(ask.share).arg(ask.most);
        call.arg(has_push).arg(push.window).arg(push.place).arg(push.incarnation);
        call.arg(push.sequence).arg(push.units);
        let replies: Vec<Vec<u64>> = call.query(&mut self.0).unwrap();
        let [passed, units, at, before, window, count, version, refunded, over, now] = replies[0][..] else {
            panic!("{replies:?}")
        };
        let now = Micros(now);
        CountAnswer { passed, units, at, before, window, count, version, refunded, over, now }
    }
}

impl ChunksScript {
    pub fn on(redis: &RedisServer) -> Self {
        Self(redis.connection())
    }

    pub fn answer(&mut self, key: &str, limit: &Algorithm, ask: &ChunkAsk, now: Micros) -> ChunkAnswer {
        let (script, p1) = match limit.engine() {
            Engine::Bucket(bucket) => (BUCKET_CHUNKS, bucket.drain),
            Engine::Window(window) => (WINDOW_CHUNKS, window.span),
            other => panic!("{other:?}"),
        };
        let op = match ask.op {
            ChunkOp::Charge => 1,
            ChunkOp::AtMost => 2,
        };
        let rest = ask.give_back.unwrap_or(GivenBack { units: 0, taken: Micros(0) });
        let engine = limit.engine().kind().number() as u64;
        let numbers = [
            [now.0, 1, 0, engine, limit.limit(), limit.weight(), p1, 0],
            [0, op, ask.cost, ask.times, ask.chunk, rest.units, rest.taken.0, ask.lasts.0],
        ];
        let request: Vec<u8> =
            numbers.as_flattened().iter().flat_map(|number| (*number as f64).to_le_bytes()).collect();
        let replies: Vec<Vec<u64>> = eval(script, key).arg(request).query(&mut self.0).unwrap();
        let [now, took_back, passed, has_chunk, ref state @ ..] = replies[0][..] else {
            panic!("{replies:?}")
        };
        let restored = || limit.engine().restore(&mut state.iter().copied()).expect("it is a state");
        let before = (!state.is_empty()).then(restored);
        ChunkAnswer { now: Micros(now), took_back: took_back == 1, passed, has_chunk: has_chunk == 1, before }
    }
}

impl PlacesScript {
    pub fn on(redis: &RedisServer) -> Self {
        Self(redis.connection())
    }

    pub fn answer(&mut self, key: &str, bound: &ApproximateBound, ask: PlaceAsk, now: Micros) -> PlaceAnswer {
        let (kind, place, incarnation) = match ask {
            PlaceAsk::Take => ("take", 0, 0),
            PlaceAsk::Keep { place, incarnation } => ("keep", place, incarnation),
            PlaceAsk::Free { place, incarnation } => ("free", place, incarnation),
        };
        let mut call = eval(PLACES, key);
        call.arg(now.0).arg(bound.window().0).arg(bound.nodes()).arg(kind).arg(place).arg(incarnation);
        match call.query::<Vec<u64>>(&mut self.0).unwrap()[..] {
            [place, incarnation, now] => PlaceAnswer::Holds { place, incarnation, now: Micros(now) },
            _ => PlaceAnswer::None,
        }
    }
}

fn eval(script: &str, key: &str) -> Cmd {
    let mut call = redis::cmd("EVAL");
    call.arg(script).arg(1).arg(key);
    call
}
