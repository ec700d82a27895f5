//! States as whole numbers, which is how a store keeps them elsewhere than in this process.

use super::{Engine, State, bucket, interval, log, sliding, slots, window};
use weir_units::{CEILING, LATEST};

impl Engine {
    /// The state that `numbers` begin with, in the order in which the engine's twin in `lua/` stores them, or,
    /// of a log, answers with them. All that are its own are taken, also where they are no state of this
    /// engine, which is `None`.
    pub fn restore(&self, numbers: &mut impl Iterator<Item = u64>) -> Option<State> {
        match self {
            Self::Bucket(_) => {
                // The last is when its key goes, which is the script's own affair.
                let [level, at, per_token, _] = take(numbers)?;
                let fine = level <= CEILING && at <= LATEST.0 && (1..=CEILING).contains(&per_token);
                fine.then_some(State::Bucket(bucket::State { level, at, per_token }))
            }
            Self::Window(_) => {
                let [start, hits, span] = take(numbers)?;
                let fine = start <= LATEST.0 && hits <= CEILING && (1..=CEILING).contains(&span);
                fine.then_some(State::Window(window::State { start, hits, span }))
            }
            Self::Sliding(_) => {
                let [start, current, previous, span] = take(numbers)?;
                let fine = start <= LATEST.0 && current.max(previous) <= sliding::CEILING;
                let state = sliding::State { start, current, previous, span };
                (fine && (1..=CEILING).contains(&span)).then(|| State::Sliding(Box::new(state)))
            }
            Self::Interval(_) => {
                let [last, spent, _] = take(numbers)?;
                let fine = last <= LATEST.0 && spent <= CEILING;
                fine.then_some(State::Interval(interval::State { last, spent }))
            }
            // It has no short path, whose states alone come here.
            Self::WarmUp(_) => take::<4>(numbers).and(None),
            Self::Log(_) => {
                let [base, freeing, freed, newest, total] = take(numbers)?;
                log::State::of_two(base, (freeing, freed), (newest, total))
                    .map(|state| State::Log(Box::new(state)))
            }
            Self::Slots(own) => {
                let [older, width, frame, rest, newest, hits] = take(numbers)?;
                let older = (0..older).map_while(|_| take(numbers).map(<[u64; 2]>::into));
                let hit = older.chain([(newest, hits)]).collect();
                let fine = (width, frame) == (own.width(), own.frame());
                fine.then_some(slots::State::from_hits(*own, hit, rest)?)
                    .map(|state| State::Slots(Box::new(state)))
            }
        }
    }
}

fn take<const N: usize>(numbers: &mut impl Iterator<Item = u64>) -> Option<[u64; N]> {
    let mut all = [0; N];
    let mut missing = false;
    for number in &mut all {
        match numbers.next() {
            Some(next) => *number = next,
            None => missing = true,
        }
    }
    (!missing).then_some(all)
}
