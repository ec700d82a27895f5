//! One node of a trace: its clock, its place, and its chunk of the key.

use weir_core::algorithm::Algorithm;
use weir_core::approximate::{
    ApproximateBound, ChunkAnswer, ChunkCall, ChunkCount, ChunkLeft, ChunkMoment, ChunkOp, ChunkTerms,
    HeldPlace, PlaceAnswer, PlaceAsk, StoreClock,
};
use weir_units::Micros;

use super::super::random::TraceRandom;
use super::world::WithoutRule;

/// A call to the store.
#[derive(Debug, Clone, Copy)]
pub enum ChunkParcel {
    Place(PlaceAsk),
    Chunk(ChunkCall),
}

/// Its answer.
#[derive(Debug, Clone)]
pub enum ChunkReply {
    Place(PlaceAsk, PlaceAnswer),
    Chunk(ChunkCall, ChunkAnswer),
}

pub struct ChunkNode {
    bound: ApproximateBound,
    limit: Algorithm,
    without: WithoutRule,
    /// What its clock shows: the true time, faster or slower by some millionths, from an origin of its own.
    origin: u64,
    ppm: i64,
    store: Option<StoreClock>,
    place: Option<HeldPlace>,
    count: ChunkCount,
    /// The call that decides, and when the node gives it up.
    flight: Option<(ChunkCall, Micros)>,
    next_heartbeat: u64,
    pub is_ending: bool,
    pub has_ended: bool,
}

impl ChunkNode {
    pub fn new(
        bound: ApproximateBound,
        limit: Algorithm,
        without: WithoutRule,
        random: &mut TraceRandom,
    ) -> Self {
        Self {
            bound,
            limit,
            without,
            origin: random.below(1_000_000_000),
            ppm: random.below(801) as i64 - 400,
            store: None,
            place: None,
            count: ChunkCount::default(),
            flight: None,
            next_heartbeat: 0,
            is_ending: false,
            has_ended: false,
        }
    }

    /// Its own time.
    pub fn clock(&self, now: u64) -> Micros {
        Micros((self.origin + now).saturating_add_signed(now as i64 * self.ppm / 1_000_000))
    }

    /// Decides on `cost` units. True if they are admitted here; else what it asks of the store, if that decides.
    pub fn decide(&mut self, cost: u64, now: u64) -> (bool, Option<ChunkCall>) {
        let own = self.clock(now);
        if self.flight.is_some_and(|(_, until)| own < until) {
            return (false, None);
        }
        let (terms, moment) = (self.terms(), self.moment(own));
        let asked = (ChunkOp::Charge, cost);
        if let Some(verdict) = self.count.decide((&self.limit, &terms), asked, &moment) {
            return (verdict.all.allowed, None);
        }
        let mut call = self.count.ask((&self.limit, &terms), (ChunkOp::Charge, cost, 1), &moment);
        if self.without == WithoutRule::Unanswered && moment.holds_place {
            call.ask.chunk = terms.chunk;
        }
        self.flight = Some((call, Micros(own.0 + self.patience())));
        (false, Some(call))
    }

    /// What it sends by itself now: a heartbeat, what it gives back, or that it frees its place.
    pub fn due(&mut self, now: u64) -> Vec<ChunkParcel> {
        let own = self.clock(now);
        let (terms, moment) = (self.terms(), self.moment(own));
        let mut parcels = Vec::new();
        let left = self.count.left(&terms, &moment, self.is_ending);
        if let ChunkLeft::GivesBack(call) = left {
            parcels.push(ChunkParcel::Chunk(call));
        }
        if self.is_ending {
            // It frees its place only if it knows that nothing of it is on its way.
            let is_flying = self.flight.is_some_and(|(_, until)| own < until);
            if !is_flying && self.count.is_settled(own) && left == ChunkLeft::Nothing {
                let held = self.place.map(|HeldPlace { place, incarnation, .. }| (place, incarnation));
                let free = |(place, incarnation)| ChunkParcel::Place(PlaceAsk::Free { place, incarnation });
                parcels.extend(held.map(free));
                self.has_ended = true;
            }
            return parcels;
        }
        if own.0 >= self.next_heartbeat {
            self.next_heartbeat = own.0 + self.bound.heartbeat().0;
            parcels.push(ChunkParcel::Place(match self.place {
                Some(HeldPlace { place, incarnation, .. }) => PlaceAsk::Keep { place, incarnation },
                None => PlaceAsk::Take,
            }));
        }
        parcels
    }

    /// Takes in an answer to what it sent at `sent` by its clock.
    pub fn learn(&mut self, reply: ChunkReply, sent: Micros, now: u64) {
        let own = self.clock(now);
        match reply {
            ChunkReply::Place(ask, PlaceAnswer::Holds { place, incarnation, now: time }) => {
                let error = self.know(time, sent, own);
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
            ChunkReply::Place(PlaceAsk::Keep { incarnation, .. }, PlaceAnswer::None) => {
                self.place = self.place.filter(|held| held.incarnation != incarnation);
            }
            ChunkReply::Place(..) => {}
            ChunkReply::Chunk(call, answer) => {
                if own.0 > sent.0 + self.patience() {
                    return;
                }
                if call.ask.times > 0 && self.flight.take_if(|(flying, _)| *flying == call).is_none() {
                    return;
                }
                self.know(answer.now, sent, own);
                let after = answer.verdicts(&self.limit, &call.ask, |_| ()).expect("the answer is sound");
                let moment = self.moment(own);
                self.count.learn(&call, &answer, after, &moment);
            }
        }
    }

    fn know(&mut self, time: Micros, sent: Micros, own: Micros) -> Micros {
        let known = StoreClock::of_answer(time, sent, own);
        let store = self.store.map_or(known, |store| store.and(known));
        self.store = Some(store);
        store.error(own)
    }

    fn terms(&self) -> ChunkTerms {
        self.bound.chunks().expect("it has chunks")
    }

    /// How long it waits for an answer.
    fn patience(&self) -> u64 {
        self.terms().max_age.0 / 2
    }

    fn moment(&self, own: Micros) -> ChunkMoment {
        let store = self.store.map_or((Micros(0), Micros(0)), |store| store.at(own));
        // Without the error: as if the earliest time were the true one.
        let store = if self.without == WithoutRule::ClockError { (store.0, store.0) } else { store };
        let holds = self.place.is_some_and(|place| place.may_count(own));
        ChunkMoment {
            now: own,
            store,
            holds_place: holds && self.store.is_some() && !self.is_ending,
            may_spend: !self.is_ending,
            denies_for: Micros(self.terms().max_age.0 / 20),
        }
    }
}
