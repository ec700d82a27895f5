//! Counters and places of strategies that nodes count, against their models.

use std::collections::HashMap;

use weir_core::approximate::{
    ApproximateBound, CountAsk, CountOp, NodePush, PlaceAnswer, PlaceAsk, Places, SharedCount,
};
use weir_units::Micros;

use super::resp::RespValue;
use crate::log::{ScriptEvent, WorldFault};
use crate::setup::counted_bound;

/// Arguments of a call of `lua/approximate/count.lua`.
const WIDTH: usize = 13;

/// The counters and places of a server in the models, with their expiries.
#[derive(Clone, Default)]
struct ServerCounters {
    counts: HashMap<Vec<u8>, (SharedCount, Micros)>,
    places: HashMap<Vec<u8>, (Places, Micros)>,
}

/// The models of all servers.
pub(super) struct CountingModel {
    bound: ApproximateBound,
    servers: Vec<ServerCounters>,
    replicas: Vec<ServerCounters>,
}

impl CountingModel {
    pub(super) fn new(servers: usize) -> Self {
        let empty = || vec![ServerCounters::default(); servers];
        Self { bound: counted_bound(), servers: empty(), replicas: empty() }
    }

    pub(super) fn fault(&mut self, fault: &WorldFault) {
        match fault {
            &WorldFault::Replicated(server) => self.replicas[server] = self.servers[server].clone(),
            &WorldFault::ServerFailsOver(server) => self.servers[server] = self.replicas[server].clone(),
            WorldFault::KeysDropped { server, keys } => {
                for key in keys {
                    self.servers[*server].counts.remove(key);
                    self.servers[*server].places.remove(key);
                }
            }
            WorldFault::KeysMove { from, to, keys } => {
                for key in keys {
                    if let Some(count) = self.servers[*from].counts.remove(key) {
                        self.servers[*to].counts.insert(key.clone(), count);
                    }
                    if let Some(places) = self.servers[*from].places.remove(key) {
                        self.servers[*to].places.insert(key.clone(), places);
                    }
                }
            }
            _ => {}
        }
    }

    /// Counters have counted and decided.
    pub(super) fn count(&mut self, script: &ScriptEvent) -> Result<(), String> {
        let Some(RespValue::Array(replies)) = RespValue::parse(&script.reply) else { return Ok(()) };
        let now = script.now;
        for (index, (key, reply)) in script.keys.iter().zip(&replies).enumerate() {
            let first = 1 + index * WIDTH;
            let arguments = script.arguments.get(first..first + WIDTH).ok_or("a call has no arguments")?;
            let (window, ask) = ask_of(arguments).ok_or("the arguments of a call cannot be read")?;
            let Some(numbers) = reply.numbers() else { continue };
            let counts = &mut self.servers[script.server].counts;
            counts.retain(|of, (_, expires)| of != key || !has_expired(*expires, now));
            let (count, expires) = counts.entry(key.clone()).or_default();
            let answer = count.answer(ask, now, window);
            let lasts = ((answer.window + 2) * window.0).saturating_sub(now.0);
            *expires = expiry(now, lasts);
            let model = [answer.passed, answer.units, answer.at, answer.before, answer.window, answer.count];
            if numbers.get(..6) != Some(&model[..]) {
                return Err(format!(
                    "counter {} was asked {ask:?} and answered {numbers:?}; the model answers {answer:?}",
                    key.escape_ascii()
                ));
            }
        }
        Ok(())
    }

    /// Places were taken, kept or given back.
    pub(super) fn places(&mut self, script: &ScriptEvent) -> Result<(), String> {
        let [key] = &script.keys[..] else { return Err("places have one key".to_owned()) };
        let Some(numbers) = RespValue::parse(&script.reply).and_then(|reply| reply.numbers()) else {
            return Ok(());
        };
        let ask = place_of(&script.arguments).ok_or("the arguments of places cannot be read")?;
        let (bound, now) = (self.bound, script.now);
        let all = &mut self.servers[script.server].places;
        all.retain(|of, (_, expires)| of != key || !has_expired(*expires, now));
        let (places, expires) =
            all.entry(key.clone()).or_insert_with(|| (Places::new(bound), Micros(u64::MAX)));
        let before = places.clone();
        let answer = places.answer(ask, now);
        let is_written = match ask {
            PlaceAsk::Free { place, incarnation } => {
                before.clone().answer(PlaceAsk::Keep { place, incarnation }, now) != PlaceAnswer::None
            }
            _ => answer != PlaceAnswer::None,
        };
        if is_written {
            *expires = expiry(now, 3 * bound.window().0);
        }
        let model = match answer {
            PlaceAnswer::Holds { place, incarnation, now } => vec![place, incarnation, now.0],
            PlaceAnswer::None => Vec::new(),
        };
        if numbers == model {
            return Ok(());
        }
        Err(format!(
            "places were asked {ask:?} and answered {numbers:?}; the model answers {model:?} of {before:?}"
        ))
    }
}

/// Returns the expiry of a key that lives for `lasts`: PEXPIRE counts in milliseconds.
fn expiry(now: Micros, lasts: u64) -> Micros {
    Micros((now.0 / 1_000 + lasts.div_ceil(1_000)) * 1_000)
}

/// True after the millisecond of the expiry. A key goes when it is looked at, and not before: if the clock goes back until
/// then, it is still there.
fn has_expired(expires: Micros, now: Micros) -> bool {
    now.0 / 1_000 > expires.0 / 1_000
}

fn ask_of(arguments: &[Vec<u8>]) -> Option<(Micros, CountAsk)> {
    let number = |index: usize| text(arguments.get(index)?)?.parse::<u64>().ok();
    let op = match text(arguments.get(1)?)? {
        "charge" => CountOp::Charge,
        "at_most" => CountOp::AtMost,
        "peek" => CountOp::Peek,
        "force" => CountOp::Force,
        "refund" => CountOp::Refund,
        _ => CountOp::Reset,
    };
    let push = NodePush {
        window: number(8)?,
        place: number(9)?,
        incarnation: number(10)?,
        sequence: number(11)?,
        units: number(12)?,
    };
    let push = (number(7)? == 1).then_some(push);
    let (cost, times, limit) = (number(2)?, number(3)?, number(4)?);
    Some((Micros(number(0)?), CountAsk { push, op, cost, times, limit, share: number(5)?, most: number(6)? }))
}

fn place_of(arguments: &[Vec<u8>]) -> Option<PlaceAsk> {
    let number = |index: usize| text(arguments.get(index)?)?.parse::<u64>().ok();
    let (place, incarnation) = (number(4)?, number(5)?);
    Some(match text(arguments.get(3)?)? {
        "take" => PlaceAsk::Take,
        "keep" => PlaceAsk::Keep { place, incarnation },
        _ => PlaceAsk::Free { place, incarnation },
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
