//! The scripts of `lua/approximate/` on a real Redis, which get the time from the test.

use redis::{Cmd, Connection};
use weir_core::approximate::{ApproximateBound, CountAnswer, CountAsk, NodePush, PlaceAnswer, PlaceAsk};
use weir_units::Micros;

use crate::support::RedisServer;

const COUNT: &str = include_str!("../../../lua/approximate/count.lua");
const PLACES: &str = include_str!("../../../lua/approximate/places.lua");

/// `lua/approximate/count.lua`.
pub struct CountScript(Connection);

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
