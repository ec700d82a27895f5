//! States as whole numbers, whole and for any engine: how a store that is written in Rust keeps them in a file or a database
//! of its own. (Redis has the layouts of `lua/`; [`Engine::restore`](super::Engine::restore) reads what its scripts answer.)
//!
//! ```text
//!   bucket     1 level at per_token            sliding   5 start current previous span
//!   window     2 start hits span               slots     6 width window strict (part hits)…
//!   interval   3 last spent                    warm_up   7 backlog stored at most
//!   log        4 base entries (at total)… (start cost number)…
//!   marker   100 until                         record  101 cost granted fitted start wait until detail numbers…
//! ```
//!
//! The first number is that of the engine. Numbers that are no state, or a state whose arithmetic would leave the exact
//! range, are refused, so that a damaged file cannot make a decision fail.

use super::{
    EngineKind, MAX_LIMITS, OnceDetail, OnceRecord, Slots, State, bucket, interval, log, sliding, slots,
    warm_up, window,
};
use weir_units::{CEILING, LATEST, Micros};

const BUCKET: u64 = EngineKind::Bucket as u64;
const WINDOW: u64 = EngineKind::Window as u64;
const INTERVAL: u64 = EngineKind::Interval as u64;
const LOG: u64 = EngineKind::Log as u64;
const SLIDING: u64 = EngineKind::Sliding as u64;
const SLOTS: u64 = EngineKind::Slots as u64;
const WARM_UP: u64 = EngineKind::WarmUp as u64;
const MARKER: u64 = 100;
const RECORD: u64 = 101;

impl State {
    /// The state as numbers; `None` for what holds keep, which a store without
    /// [costs by limit](super::budget) never has.
    pub fn to_numbers(&self) -> Option<Vec<u64>> {
        Some(match self {
            Self::Bucket(bucket::State { level, at, per_token }) => vec![BUCKET, *level, *at, *per_token],
            Self::Window(window::State { start, hits, span }) => vec![WINDOW, *start, *hits, *span],
            Self::Interval(interval::State { last, spent }) => vec![INTERVAL, *last, *spent],
            Self::Log(state) => state.numbers(LOG),
            Self::Sliding(state) => {
                let sliding::State { start, current, previous, span } = **state;
                vec![SLIDING, start, current, previous, span]
            }
            Self::Slots(state) => {
                let own = state.parameters();
                let mut numbers = vec![SLOTS, own.width(), own.window(), own.is_strict().into()];
                numbers.extend(state.hits().flat_map(<[u64; 2]>::from));
                numbers
            }
            Self::WarmUp(state) => {
                let [stored, most] = [state.stored, state.most].map(warm_up::Permits::bits);
                vec![WARM_UP, state.backlog, stored, state.at, most]
            }
            Self::Marker { until } => vec![MARKER, until.0],
            Self::Record(record) => of_record(record),
            Self::Parts(_) | Self::Hold(_) | Self::Call(_) => return None,
        })
    }

    /// The state of these numbers, if they are one.
    pub fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let small = |number: u64| number <= CEILING;
        let time = |at: u64| at <= LATEST.0;
        let span = |span: u64| (1..=CEILING).contains(&span);
        Some(match *numbers {
            [BUCKET, level, at, per_token] if small(level) && time(at) && span(per_token) => {
                Self::Bucket(bucket::State { level, at, per_token })
            }
            [WINDOW, start, hits, length] if time(start) && small(hits) && span(length) => {
                Self::Window(window::State { start, hits, span: length })
            }
            [INTERVAL, last, spent] if time(last) && small(spent) => {
                Self::Interval(interval::State { last, spent })
            }
            [SLIDING, start, current, previous, length] => {
                let fine = time(start) && span(length) && current.max(previous) <= sliding::CEILING;
                let state = sliding::State { start, current, previous, span: length };
                fine.then(|| Self::Sliding(Box::new(state)))?
            }
            [LOG, ref own @ ..] => Self::Log(Box::new(log::State::of_numbers(own)?)),
            [SLOTS, width, window, strict @ 0..=1, ref hits @ ..] => {
                let own = Slots::new(width, window, strict == 1).filter(|_| span(window))?;
                let hits: Vec<(u64, u64)> = pairs(hits)?;
                let (_, older) = hits.split_last()?;
                let rest = older.iter().try_fold(0, |rest: u64, (_, hits)| rest.checked_add(*hits))?;
                Self::Slots(Box::new(slots::State::from_hits(own, hits, rest)?))
            }
            [WARM_UP, backlog, stored, at, most] if small(backlog) && time(at) => {
                let (stored, most) = warm_up::Permits::pair(stored, most)?;
                Self::WarmUp(Box::new(warm_up::State { backlog, stored, at, most }))
            }
            [MARKER, until] => Self::Marker { until: Micros(until) },
            [RECORD, ref own @ ..] => Self::Record(Box::new(record(own)?)),
            _ => return None,
        })
    }
}

fn pairs(numbers: &[u64]) -> Option<Vec<(u64, u64)>> {
    let (pairs, rest) = numbers.as_chunks();
    rest.is_empty().then(|| pairs.iter().map(|[first, second]| (*first, *second)).collect())
}

fn of_record(record: &OnceRecord) -> Vec<u64> {
    let OnceRecord { cost, granted, fitted, start, wait, until, ref detail } = *record;
    let mut all = vec![RECORD, cost, granted, fitted.into(), start, wait, until];
    match detail {
        OnceDetail::None => all.push(0),
        OnceDetail::Reserved { level, at, numbers } => {
            all.extend([1, *level, *at]);
            all.extend(numbers);
        }
        OnceDetail::Debited(charged) => {
            all.push(2);
            all.extend(charged);
        }
        OnceDetail::Cancelled => all.push(3),
    }
    all
}

fn record(numbers: &[u64]) -> Option<OnceRecord> {
    let &[cost, granted, fitted @ 0..=1, start, wait, until, kind, ref detail @ ..] = numbers else {
        return None;
    };
    let detail = match (kind, detail) {
        (0, []) => OnceDetail::None,
        (1, &[level, at, a, b, c, d]) if level.max(at) <= LATEST.0 => {
            OnceDetail::Reserved { level, at, numbers: [a, b, c, d] }
        }
        (2, charged) => OnceDetail::Debited(<[u64; MAX_LIMITS]>::try_from(charged).ok()?),
        (3, []) => OnceDetail::Cancelled,
        _ => return None,
    };
    let fine = cost.max(granted).max(wait) <= CEILING && start <= 2 * LATEST.0;
    fine.then_some(OnceRecord { cost, granted, fitted: fitted == 1, start, wait, until, detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No number of a state may be replaced by any other that a decision could not compute with.
    #[test]
    fn numbers_that_are_no_state_are_refused() {
        let refused: &[&[u64]] = &[
            &[],
            &[BUCKET, 1, 2],
            &[BUCKET, 1, 2, 0],
            &[BUCKET, u64::MAX, 2, 1],
            &[WINDOW, u64::MAX, 1, 1],
            &[SLIDING, 1, u64::MAX, 1, 1],
            &[LOG],
            &[LOG, 0, 2, 5, 1, 4, 2],
            &[LOG, 0, u64::MAX],
            &[LOG, 0, 0, 1, u64::MAX, 0],
            &[SLOTS, 0, 1, 0, 1, 1],
            &[SLOTS, 1, 2, 2, 1, 1],
            &[SLOTS, 1, 2, 0, 1],
            &[SLOTS, 1, 2, 0],
            &[SLOTS, 1, 2, 0, 2, 1, 1, 1],
            &[WARM_UP, 1, f64::NAN.to_bits(), 1, 1f64.to_bits()],
            &[WARM_UP, 1, 1f64.to_bits(), 1, 0],
            &[RECORD, 1, 1, 2, 1, 1, 1, 0],
            &[RECORD, 1, 1, 1, 1, 1, 1, 2, 1],
            &[99, 1],
        ];
        for numbers in refused {
            assert_eq!(State::from_numbers(numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn a_state_is_what_its_numbers_say() {
        let record = OnceRecord {
            cost: 3,
            granted: 2,
            fitted: true,
            start: 7,
            wait: 1,
            until: 9,
            detail: OnceDetail::Debited([1, 2, 3, 4, 5, 6, 7, 8]),
        };
        let details = [OnceDetail::None, OnceDetail::Cancelled, record.detail];
        for detail in details.into_iter().chain([OnceDetail::Reserved { level: 1, at: 2, numbers: [3; 4] }]) {
            let state = State::Record(Box::new(OnceRecord { detail, ..record }));
            assert_eq!(state.to_numbers().and_then(|numbers| State::from_numbers(&numbers)), Some(state));
        }
        let numbers: &[&[u64]] = &[
            &[BUCKET, 1, 2, 3],
            &[WINDOW, 1, 2, 3],
            &[INTERVAL, 1, 2],
            &[LOG, 5, 2, 1, 6, 2, 8, 9, 1, 7],
            &[SLIDING, 1, 2, 3, 4],
            &[SLOTS, 2, 5, 1, 1, 2, 4, 1],
            &[WARM_UP, 1, 1.5f64.to_bits(), 2, 2f64.to_bits()],
            &[MARKER, 8],
        ];
        for numbers in numbers {
            let state = State::from_numbers(numbers);
            assert_eq!(state.and_then(|state| state.to_numbers()).as_deref(), Some(*numbers));
        }
    }
}
