//! The scripts of `lua/approximate/` on a real Redis, which get the time from the test.

use redis::{Connection, Script};
use weir_core::approximate::{ApproximateBound, CountAnswer, CountAsk, NodePush, PlaceAnswer, PlaceAsk};
use weir_units::Micros;

use crate::support::RedisServer;

/// `lua/approximate/count.lua`.
pub struct CountScript(Connection, Script);

/// `lua/approximate/places.lua`.
pub struct PlacesScript(Connection, Script);

impl CountScript {
    pub fn on(redis: &RedisServer) -> Self {
        Self(redis.connection(), Script::new(include_str!("../../../lua/approximate/count.lua")))
    }

    pub fn answer(&mut self, key: &str, length: Micros, ask: CountAsk, now: Micros) -> CountAnswer {
        let none = NodePush { window: 0, place: 0, incarnation: 0, sequence: 0, units: 0 };
        let (push, has_push) = (ask.push.unwrap_or(none), u8::from(ask.push.is_some()));
        let mut call = self.1.key(key);
        call.arg(now.0).arg(length.0).arg(ask.cost).arg(ask.limit).arg(ask.share);
        call.arg(has_push).arg(push.window).arg(push.place).arg(push.incarnation);
        call.arg(push.sequence).arg(push.units);
        let (allowed, window, count, version, now): (u8, u64, u64, u64, u64) =
            call.invoke(&mut self.0).unwrap();
        CountAnswer { allowed: allowed == 1, window, count, version, now: Micros(now) }
    }
}

impl PlacesScript {
    pub fn on(redis: &RedisServer) -> Self {
        Self(redis.connection(), Script::new(include_str!("../../../lua/approximate/places.lua")))
    }

    pub fn answer(&mut self, key: &str, bound: &ApproximateBound, ask: PlaceAsk, now: Micros) -> PlaceAnswer {
        let (kind, place, incarnation) = match ask {
            PlaceAsk::Take => ("take", 0, 0),
            PlaceAsk::Keep { place, incarnation } => ("keep", place, incarnation),
            PlaceAsk::Free { place, incarnation } => ("free", place, incarnation),
        };
        let mut call = self.1.key(key);
        call.arg(now.0).arg(bound.window().0).arg(bound.nodes()).arg(kind).arg(place).arg(incarnation);
        match call.invoke::<Vec<u64>>(&mut self.0).unwrap()[..] {
            [place, incarnation, now] => PlaceAnswer::Holds { place, incarnation, now: Micros(now) },
            _ => PlaceAnswer::None,
        }
    }
}
