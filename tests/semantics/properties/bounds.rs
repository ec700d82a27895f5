//! Never above the limit: what was admitted over a whole trace, counted over every span it can be
//! counted over, by the plain meaning of each limit.

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Engine, Grid, Interval, Slots, Window};

use super::machine::Machine;
use super::random::{any_bucket, charges, config, held_log, limits, warm_up};

/// A charge that was admitted.
struct Admitted {
    at: u64,
    cost: u64,
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn never_above_the_limit(limits in prop_oneof![4 => limits().boxed(), 1 => shaping()], steps in charges(40)) {
        let mut machine = Machine::new(limits);
        let mut admitted = Vec::new();
        for step in &steps {
            let (op, cost) = machine.advance(step);
            if machine.decide(op, cost).verdict.allowed && cost > 0 {
                admitted.push(Admitted { at: machine.now.0, cost });
            }
        }
        for (limit, &phase) in machine.limits.iter().zip(&machine.phases) {
            if let Err(excess) = check(limit, phase, &admitted) {
                prop_assert!(false, "{:?}: {}", limit, excess);
            }
        }
    }
}

/// Limits whose answers have exceptions of their own.
fn shaping() -> BoxedStrategy<Vec<Algorithm>> {
    prop_oneof![any_bucket(), warm_up(), held_log()].prop_map(|limit| vec![limit]).boxed()
}

fn check(limit: &Algorithm, phase: u64, admitted: &[Admitted]) -> Result<(), String> {
    let most = limit.limit();
    match limit.engine() {
        // In any time at most the burst and what has drained: in ticks, without rounding.
        Engine::Bucket(bucket) => every_interval(admitted, |time| {
            let drained = u128::from(time) * u128::from(bucket.drain);
            let debt = if limit.charges_after() { u128::from(most) } else { 0 };
            (u128::from(limit.capacity()) + drained) / u128::from(limit.weight()) + debt
        }),
        // In any time at most what is stored, what becomes due, and the largest cost.
        Engine::WarmUp(warm) => every_interval(admitted, |time| {
            let due = |time: u64| u128::from(time) * u128::from(warm.count) / u128::from(warm.period);
            due(warm.warm_up) + due(time) + u128::from(most) + 2
        }),
        // In any time at most the capacity and all refills that can fall into it.
        Engine::Interval(Interval { refill, period, .. }) => every_interval(admitted, |time| {
            u128::from(most) + u128::from(time.div_ceil(*period)) * u128::from(*refill)
        }),
        Engine::Log(log) => {
            every_span(admitted, log.span, most)?;
            every_gap(admitted, log.min_gap)
        }
        // Less than twice the limit wherever the span lies, and no window above it.
        Engine::Sliding(sliding) => {
            every_span(admitted, sliding.span, (2 * most).saturating_sub(1))?;
            every_window(admitted, most, |first, at| first / sliding.span == at / sliding.span)
        }
        // In any so many slots; strict, that is more than any span of the window can touch.
        Engine::Slots(slots) => {
            // Strict, in any span of the window; lenient, in any that is shorter by a part.
            let span = if slots.is_strict() { slots.window() } else { slots.window() - slots.width() };
            every_span(admitted, span, most)?;
            every_slots(admitted, slots, most)
        }
        Engine::Window(Window { span, grid: Grid::Aligned { ahead } }) => {
            every_window(admitted, most, |first, at| (first + ahead) / span == (at + ahead) / span)
        }
        Engine::Window(Window { span, grid: Grid::Spread }) => {
            every_window(admitted, most, |first, at| (first + phase) / span == (at + phase) / span)
        }
        Engine::Window(Window { grid: Grid::Month { ahead }, .. }) => {
            every_window(admitted, most, |first, at| month(first + ahead) == month(at + ahead))
        }
        Engine::Window(Window { span, grid: Grid::Anchored }) => {
            every_window(admitted, most, |first, at| at - first < *span)
        }
    }
}

/// Returns the months from January 1970 to the day before `time`, counted one by one.
fn month(time: u64) -> u64 {
    let (mut day, mut month) = ((time / 86_400_000_000).saturating_sub(1), 0);
    loop {
        let year = 1970 + month / 12;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month % 12 {
            1 if is_leap => 29,
            1 => 28,
            3 | 5 | 8 | 10 => 30,
            _ => 31,
        };
        if day < length {
            return month;
        }
        day -= length;
        month += 1;
    }
}

/// From any admitted call to any later one.
fn every_interval(admitted: &[Admitted], most: impl Fn(u64) -> u128) -> Result<(), String> {
    for (index, first) in admitted.iter().enumerate() {
        let mut sum = 0;
        for last in &admitted[index..] {
            sum += u128::from(last.cost);
            let time = last.at - first.at;
            if sum > most(time) {
                return Err(format!("{sum} in {time} us, at most {}", most(time)));
            }
        }
    }
    Ok(())
}

/// Every half-open span that ends with an admitted call.
fn every_span(admitted: &[Admitted], span: u64, most: u64) -> Result<(), String> {
    for last in admitted {
        let counts = |one: &&Admitted| one.at <= last.at && one.at + span > last.at;
        // Those of its own microsecond that came later are counted too, which is only stricter.
        let sum: u64 = admitted.iter().filter(counts).map(|one| one.cost).sum();
        if sum > most {
            return Err(format!("{sum} in the span up to {}, at most {most}", last.at));
        }
    }
    Ok(())
}

/// The slots up to that of any admitted call.
fn every_slots(admitted: &[Admitted], slots: &Slots, most: u64) -> Result<(), String> {
    for last in admitted {
        let slot = slots.part(last.at);
        let counts =
            |one: &&Admitted| slots.part(one.at) <= slot && slots.part(one.at) + slots.count() > slot;
        let sum: u64 = admitted.iter().filter(counts).map(|one| one.cost).sum();
        if sum > most {
            return Err(format!("{sum} in the slots up to {slot}, at most {most}"));
        }
    }
    Ok(())
}

/// Each admitted call comes so long after the one before.
fn every_gap(admitted: &[Admitted], least: u64) -> Result<(), String> {
    match admitted.windows(2).find(|pair| pair[1].at - pair[0].at < least) {
        Some(pair) => Err(format!("{} us apart, at least {least}", pair[1].at - pair[0].at)),
        None => Ok(()),
    }
}

/// Windows one after the other: each begins with the first call that is not in the one before.
fn every_window(admitted: &[Admitted], most: u64, same: impl Fn(u64, u64) -> bool) -> Result<(), String> {
    let mut rest = admitted;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|one| same(first.at, one.at)).count();
        let sum: u64 = rest[..count].iter().map(|one| one.cost).sum();
        if sum > most {
            return Err(format!("{sum} in the window that has {}, at most {most}", first.at));
        }
        rest = &rest[count..];
    }
    Ok(())
}
