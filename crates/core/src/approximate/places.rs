//! The places of a strategy in a store. Twin: `lua/approximate/places.lua`.
//!
//! Each place has the incarnation of its last holder. Incarnations only grow, by the store's clock where its data was lost,
//! so a holder of before never passes for one of today.

use weir_units::Micros;

use super::ApproximateBound;

/// The places of one strategy.
#[derive(Debug, Clone)]
pub struct Places {
    bound: ApproximateBound,
    /// For how many windows after its last heartbeat a place is blocked.
    blocked_windows: u64,
    /// By their numbers, from 0.
    places: Vec<Option<TakenPlace>>,
    incarnation: u64,
}

#[derive(Debug, Clone, Copy)]
struct TakenPlace {
    incarnation: u64,
    heartbeat: Micros,
    is_free: bool,
}

/// Request of a node for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAsk {
    /// A place.
    Take,
    /// To keep its place.
    Keep {
        /// The place.
        place: u64,
        /// The incarnation.
        incarnation: u64,
    },
    /// To give its place back, after everything that it owes was pushed.
    Free {
        /// The place.
        place: u64,
        /// The incarnation.
        incarnation: u64,
    },
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAnswer {
    /// The node holds this place.
    Holds {
        /// The place.
        place: u64,
        /// The incarnation under which the node holds it.
        incarnation: u64,
        /// The store's time.
        now: Micros,
    },
    /// No place is free, or the node's place is not its own.
    None,
}

impl Places {
    /// No place is taken.
    pub fn new(bound: ApproximateBound) -> Self {
        // R1: two windows.
        Self::blocked_for(bound, 2)
    }

    /// Creates places that are blocked for another number of windows. With less than two the bound does not hold.
    pub fn blocked_for(bound: ApproximateBound, blocked_windows: u64) -> Self {
        Self { bound, blocked_windows, places: Vec::new(), incarnation: 0 }
    }

    /// Answers a node at the store's time `now`.
    pub fn answer(&mut self, ask: PlaceAsk, now: Micros) -> PlaceAnswer {
        match ask {
            PlaceAsk::Take => self.take(now),
            PlaceAsk::Keep { place, incarnation } => match self.held(place, incarnation) {
                Some(held) => {
                    held.heartbeat = held.heartbeat.max(now);
                    PlaceAnswer::Holds { place, incarnation, now }
                }
                None => PlaceAnswer::None,
            },
            PlaceAsk::Free { place, incarnation } => {
                if let Some(held) = self.held(place, incarnation) {
                    held.is_free = true;
                }
                PlaceAnswer::None
            }
        }
    }

    fn take(&mut self, now: Micros) -> PlaceAnswer {
        let blocked = self.blocked_windows * self.bound.window().0;
        let is_free = |place: &Option<TakenPlace>| {
            place.is_none_or(|taken| taken.is_free || now.0 >= taken.heartbeat.0 + blocked)
        };
        let place = match self.places.iter().position(is_free) {
            Some(place) => place,
            None if (self.places.len() as u64) < self.bound.nodes() => {
                self.places.push(None);
                self.places.len() - 1
            }
            None => return PlaceAnswer::None,
        };
        self.incarnation = (self.incarnation + 1).max(now.0);
        let incarnation = self.incarnation;
        self.places[place] = Some(TakenPlace { incarnation, heartbeat: now, is_free: false });
        PlaceAnswer::Holds { place: place as u64, incarnation, now }
    }

    fn held(&mut self, place: u64, incarnation: u64) -> Option<&mut TakenPlace> {
        let place = self.places.get_mut(place as usize)?.as_mut()?;
        (place.incarnation == incarnation && !place.is_free).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_freed_and_blocked() {
        let window = Micros::from_secs(10);
        let mut places = Places::new(ApproximateBound::new(4, 2, window).unwrap());
        let at = |secs: u64| Micros::from_secs(1_000 + secs);
        let holds = |answer| match answer {
            PlaceAnswer::Holds { place, incarnation, .. } => Some((place, incarnation)),
            PlaceAnswer::None => None,
        };
        let (first, its) = holds(places.answer(PlaceAsk::Take, at(0))).unwrap();
        let (second, other) = holds(places.answer(PlaceAsk::Take, at(0))).unwrap();
        assert_eq!((first, second, other), (0, 1, its + 1));
        assert_eq!(places.answer(PlaceAsk::Take, at(19)), PlaceAnswer::None, "all are taken");
        let keep = PlaceAsk::Keep { place: 0, incarnation: its };
        assert_eq!(holds(places.answer(keep, at(19))), Some((0, its)));
        let (place, newer) = holds(places.answer(PlaceAsk::Take, at(20))).unwrap();
        assert_eq!((place, newer), (1, at(20).0), "two windows after its last heartbeat");
        let late = PlaceAsk::Keep { place: 1, incarnation: other };
        assert_eq!(places.answer(late, at(20)), PlaceAnswer::None);
        places.answer(PlaceAsk::Free { place: 1, incarnation: other }, at(20));
        assert_eq!(places.answer(PlaceAsk::Take, at(21)), PlaceAnswer::None, "it was not its own");
        places.answer(PlaceAsk::Free { place: 1, incarnation: newer }, at(21));
        assert_eq!(holds(places.answer(PlaceAsk::Take, at(21))), Some((1, at(21).0)));
    }
}
