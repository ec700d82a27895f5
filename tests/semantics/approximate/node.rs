//! One node of a trace: its clock, its place, and its counter of the key.

use weir_core::approximate::{
    ApproximateBound, CountAnswer, CountAsk, CountOp, HeldPlace, LocalAnswer, LocalWindow, NodeCount,
    NodePush, PlaceAnswer, PlaceAsk, StoreClock,
};
use weir_units::Micros;

use super::random::TraceRandom;
use super::world::SwitchedOff;

/// A call to the store.
#[derive(Debug, Clone, Copy)]
pub enum StoreCall {
    Place(PlaceAsk),
    Count(CountAsk),
}

/// The answer of the store.
#[derive(Debug, Clone, Copy)]
pub enum StoreReply {
    Place(PlaceAsk, PlaceAnswer),
    Count(CountAsk, CountAnswer),
}

pub struct TraceNode {
    bound: ApproximateBound,
    off: SwitchedOff,
    /// The origin of the node's clock, and the millionths by which the clock runs faster or slower than the true
    /// time.
    origin: u64,
    ppm: i64,
    store: Option<StoreClock>,
    place: Option<HeldPlace>,
    count: NodeCount,
    /// Units that the store has admitted in the counter's window.
    central: u64,
    next_heartbeat: u64,
    next_push: u64,
    pub is_ending: bool,
    pub has_ended: bool,
}

impl TraceNode {
    pub fn new(bound: ApproximateBound, off: SwitchedOff, random: &mut TraceRandom) -> Self {
        Self {
            bound,
            off,
            origin: random.below(1_000_000_000),
            ppm: random.below(801) as i64 - 400,
            store: None,
            place: None,
            count: NodeCount::default(),
            central: 0,
            next_heartbeat: 0,
            next_push: 0,
            is_ending: false,
            has_ended: false,
        }
    }

    /// Returns the node's own time.
    pub fn clock(&self, now: u64) -> Micros {
        Micros((self.origin + now).saturating_add_signed(now as i64 * self.ppm / 1_000_000))
    }

    /// Decides on `cost` units. True if they are admitted here; else what it asks of the store, if that decides.
    pub fn decide(&mut self, cost: u64, limit: u64, now: u64) -> (bool, Option<StoreCall>) {
        let own = self.clock(now);
        let share = self.bound.share();
        let charge = CountAsk { push: None, op: CountOp::Charge, cost, times: 1, limit, share, most: 0 };
        let ask = |push| Some(StoreCall::Count(CountAsk { push, ..charge }));
        let (Some(local), Some(store)) = (self.local(own), self.store) else { return (false, ask(None)) };
        let length = self.bound.window();
        let ends = Micros((local.window + 1) * length.0);
        match self.count.decide(local, (cost, limit, share), store.at(own).1, ends) {
            LocalAnswer::Allowed { .. } => (true, None),
            LocalAnswer::Denied { .. } => (false, None),
            LocalAnswer::Central => {
                let push = self.count.charge(local.place);
                (false, ask(Some(self.pushed(push))))
            }
        }
    }

    /// Returns the calls that the node sends by itself now: a heartbeat, a push, or the release of its place.
    pub fn due(&mut self, limit: u64, now: u64) -> Vec<StoreCall> {
        let own = self.clock(now);
        let mut calls = Vec::new();
        if let Some(place) = self.place
            && self.is_ending
            && self.count.owes() == 0
        {
            let HeldPlace { place, incarnation, .. } = place;
            self.has_ended = true;
            return vec![StoreCall::Place(PlaceAsk::Free { place, incarnation })];
        }
        if self.is_ending && self.place.is_none() {
            self.has_ended = true;
            return calls;
        }
        if own.0 >= self.next_heartbeat {
            self.next_heartbeat = own.0 + self.bound.heartbeat().0;
            calls.push(StoreCall::Place(match self.place {
                Some(HeldPlace { place, incarnation, .. }) => PlaceAsk::Keep { place, incarnation },
                None => PlaceAsk::Take,
            }));
        }
        if own.0 >= self.next_push
            && let Some(place) = self.place
        {
            self.next_push = own.0 + self.bound.window().0 / 8;
            let push = self.count.push(place.place);
            let push = self.pushed(push);
            calls.push(StoreCall::Count(CountAsk::of_push(push, limit)));
        }
        calls
    }

    /// Takes in an answer to what it sent at `sent` by its clock.
    pub fn learn(&mut self, reply: StoreReply, sent: Micros, now: u64) {
        let own = self.clock(now);
        match reply {
            StoreReply::Place(ask, PlaceAnswer::Holds { place, incarnation, now: time }) => {
                let known = StoreClock::of_answer(time, sent, own);
                self.store = Some(self.store.map_or(known, |store| store.and(known)));
                let error = self.store.map_or(Micros(0), |store| store.error(own));
                match (&mut self.place, ask) {
                    (Some(held), _) if (held.place, held.incarnation) == (place, incarnation) => {
                        held.keep(&self.bound, sent, error);
                    }
                    (None, PlaceAsk::Take) => {
                        let held = HeldPlace::new(&self.bound, (place, incarnation), time, sent, error);
                        self.place = Some(held);
                    }
                    // A second place, which it does not use: it is blocked until it is free again.
                    _ => {}
                }
            }
            StoreReply::Place(PlaceAsk::Keep { incarnation, .. }, PlaceAnswer::None) => {
                self.place = self.place.filter(|held| held.incarnation != incarnation);
            }
            StoreReply::Place(..) => {}
            StoreReply::Count(ask, answer) => {
                let known = StoreClock::of_answer(answer.now, sent, own);
                self.store = Some(self.store.map_or(known, |store| store.and(known)));
                let Some(push) = ask.push else { return };
                if ask.cost > 0 && answer.passed > 0 && push.window == answer.window {
                    self.central += ask.cost;
                }
                self.count.learn(push, answer);
            }
        }
    }

    /// Forgets the key, as a table without R3 would.
    pub fn evict(&mut self) {
        self.count = NodeCount::default();
    }

    fn local(&mut self, own: Micros) -> Option<LocalWindow> {
        if self.is_ending {
            return None;
        }
        let local = self.place?.window(&self.bound, self.store?, own)?;
        if local.window != self.count.window() {
            self.central = 0;
        }
        // R2 is switched off.
        let begins_at_store = local.begins_at_store && self.off != SwitchedOff::CentralBegin;
        Some(LocalWindow { begins_at_store, ..local })
    }

    fn pushed(&self, push: NodePush) -> NodePush {
        let more = if self.off == SwitchedOff::CountedOnce { self.central } else { 0 };
        NodePush { units: push.units + more, ..push }
    }
}
