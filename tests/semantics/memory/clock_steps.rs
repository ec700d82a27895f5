//! The wall clock steps while a limit is used up, at any age of the process. A step back admits nothing more and locks
//! nobody out for longer than the docs say, a forward step gives one limit at most, and states expire all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use weir_config::WhenFull;
use weir_core::algorithm::{Algorithm, Calendar, Op, Rate};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::{Fixture, HOUR, MIB, SECOND, START, decide_for, per_consumer};

const MINUTE: Micros = Micros::from_secs(60);
const WINDOW: Micros = Micros::from_secs(900);
const TEN_YEARS: i64 = 3650 * 86_400;

/// Uptimes of the process.
const AGES: [Micros; 3] = [Micros::ZERO, Micros::from_secs(2), Micros::from_secs(5 * 3600)];

/// Steps in seconds, one after the other.
const STEPS: [&[i64]; 9] = [
    &[],
    &[-1],
    &[-3600],
    &[-TEN_YEARS],
    &[3600],
    &[3600, -3600],
    &[-3600, 3600],
    &[-TEN_YEARS, TEN_YEARS],
    &[-3600, -TEN_YEARS],
];

impl Fixture {
    fn step(&self, seconds: i64) {
        self.clock.step(Micros(self.clock.now().0.saturating_add_signed(seconds * 1_000_000)));
    }

    /// Time passes as in a process: the store is swept every second.
    fn pass_swept(&self, time: Micros) {
        for _ in 0..time.0 / SECOND.0 {
            self.pass(SECOND);
            self.store.sweep();
        }
        self.pass(Micros(time.0 % SECOND.0));
    }

    fn take(&self, strategy: &Arc<Strategy>) -> bool {
        self.charge(strategy, "consumer", 1).unwrap()
    }

    /// Takes all that there is; how much that was.
    fn use_up(&self, strategy: &Arc<Strategy>) -> u64 {
        (0..1000).take_while(|_| self.take(strategy)).count() as u64
    }
}

/// Five, or one where there can be no more, in 15 minutes or more: of every engine and kind.
fn each_engine() -> Vec<Arc<Strategy>> {
    let rate = Rate { count: 1, period: Micros(WINDOW.0 / 5) };
    let all = [
        ("uniform", Algorithm::uniform(WINDOW)),
        ("bucket", Algorithm::bucket(5, rate)),
        ("queue", Algorithm::leaky_queue(5, rate, 0)),
        ("after", Algorithm::charge_after(5, rate, 5)),
        ("warm-up", Algorithm::warm_up(rate, WINDOW, 3, None)),
        ("window", Algorithm::fixed_window(5, WINDOW, false, false)),
        ("anchored", Algorithm::fixed_window(5, WINDOW, true, false)),
        ("counting", Algorithm::fixed_window(5, WINDOW, false, true)),
        ("spread", Algorithm::spread_window(5, WINDOW, false)),
        ("month", Algorithm::calendar_window(5, Calendar::Month, 0, false)),
        ("interval", Algorithm::interval_refill(5, 5, WINDOW, false)),
        ("aligned", Algorithm::interval_refill(5, 5, WINDOW, true)),
        ("log", Algorithm::sliding_log(5, WINDOW)),
        ("strict", Algorithm::strict_log(5, WINDOW, true, Micros(WINDOW.0 / 100))),
        ("held", Algorithm::held_log(5, WINDOW, 100)),
        ("sliding", Algorithm::sliding_window(5, WINDOW)),
        ("slots", Algorithm::bucketed_window(5, WINDOW, 15, false)),
        ("sparse", Algorithm::bucketed_window(5, WINDOW, 900, true)),
    ];
    all.map(|(name, algorithm)| per_consumer(name, algorithm.unwrap())).to_vec()
}

/// A process of an age that has used up a limit, and how much that was.
fn used_up(strategy: &Arc<Strategy>, age: Micros) -> (Fixture, u64) {
    let fixture = Fixture::new(8 * MIB, WhenFull::Evict);
    if age < MINUTE {
        fixture.pass_swept(age)
    } else {
        fixture.pass(age)
    }
    let used = fixture.use_up(strategy);
    assert!(used > 0, "{}", strategy.name());
    (fixture, used)
}

fn forward(steps: &[i64]) -> u64 {
    steps.iter().filter(|step| **step > 0).count() as u64
}

/// Up for two seconds, an exhausted log of 5 in 15 minutes admitted 99 of 100 calls in the ten seconds after the clock was
/// set back by an hour: expiry was counted from the start by the wall clock, so every sweep dropped the log.
#[test]
fn a_step_past_the_start_of_the_process_admits_nothing() {
    let strategy = per_consumer("log", Algorithm::sliding_log(5, WINDOW).unwrap());
    let (fixture, used) = used_up(&strategy, Micros::from_secs(2));
    assert_eq!(used, 5);
    fixture.step(-3600);
    let mut admitted = 0;
    for _ in 0..100 {
        fixture.pass(Micros::from_millis(100));
        fixture.store.sweep();
        admitted += u64::from(fixture.take(&strategy));
    }
    println!("{admitted} admitted in 10 s after a step of -1 h");
    assert_eq!(admitted, 0);
}

/// A minute of calls between and after the steps.
#[test]
fn a_forward_step_gives_one_limit_more_and_a_step_back_none() {
    let mut cases = 0;
    for strategy in each_engine() {
        for age in AGES {
            for steps in STEPS {
                let (fixture, used) = used_up(&strategy, age);
                let mut admitted = 0;
                for step in steps {
                    fixture.step(*step);
                    for _ in 0..60 {
                        admitted += u64::from(fixture.take(&strategy));
                        fixture.pass_swept(SECOND);
                    }
                }
                let most = used * forward(steps);
                let name = strategy.name();
                assert!(admitted <= most, "{name}, up {age}, {steps:?}: {admitted} of {most}");
                cases += 1;
            }
        }
    }
    println!("{cases} cases");
}

/// The longest wait is twice the time that the state needs to become fresh, counted from the last step.
#[test]
fn nobody_is_locked_out_for_longer_than_twice_the_time_to_become_fresh() {
    for strategy in each_engine() {
        for age in AGES {
            for steps in STEPS {
                let (fixture, _) = used_up(&strategy, age);
                let reset = fresh_after(&fixture, &strategy);
                for step in steps {
                    fixture.step(*step);
                    // Something is refused, which may move a state.
                    fixture.take(&strategy);
                }
                fixture.pass(Micros(2 * reset + SECOND.0));
                assert!(fixture.take(&strategy), "{}, up {age}, {steps:?}", strategy.name());
            }
        }
    }
}

/// States that nothing asks for again are dropped, and none has to be evicted.
#[test]
fn states_expire_whatever_the_clock_does() {
    for strategy in each_engine() {
        for age in AGES {
            for steps in STEPS {
                let (fixture, _) = used_up(&strategy, age);
                // A window that is moved back is kept for its whole length, wherever the clock is in it.
                let reset = fresh_after(&fixture, &strategy).max(WINDOW.0);
                let empty = Fixture::new(8 * MIB, WhenFull::Evict).store.stats().bytes;
                for step in steps {
                    fixture.step(*step);
                    fixture.pass_swept(SECOND);
                }
                fixture.pass(Micros(2 * reset + 2 * SECOND.0));
                fixture.store.sweep();
                let stats = fixture.store.stats();
                let name = strategy.name();
                assert_eq!((stats.keys, stats.bytes), (0, empty), "{name}, up {age}, {steps:?}");
            }
        }
    }
}

/// Microseconds until the limit is fresh.
fn fresh_after(fixture: &Fixture, strategy: &Arc<Strategy>) -> u64 {
    let subject = weir_core::key::Subject { resource: "", consumer: "consumer", ..Default::default() };
    let decision = weir_store::Decision::new(strategy, subject, Op::Peek, &[]);
    let out = super::decide(&fixture.store, &decision, Op::Peek, 0).unwrap();
    out.limits[0].reset_after.0
}

/// In no 15 minutes that really pass more than a limit, and one for each forward step: of a log, which promises it for
/// every span.
#[test]
fn random_steps_admit_a_limit_in_every_span_and_one_for_each_forward_step() {
    const SPANS: [i64; 7] = [300, 1_000, 1_700, 30_000, 700_000, 3_600_000, TEN_YEARS * 1000];
    let strategy = per_consumer("log", Algorithm::sliding_log(5, WINDOW).unwrap());
    for story in 0..200_u64 {
        let mut random = story;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let fixture = Fixture::new(8 * MIB, WhenFull::Evict);
        // Times that have really passed, of what was admitted and of forward steps.
        let (mut passed, mut admitted, mut forward) = (0, Vec::new(), Vec::new());
        for _ in 0..300 {
            match next(8) {
                0 => {
                    let step = SPANS[next(7) as usize] * if next(2) == 0 { 1000 } else { -1000 };
                    let to = fixture.clock.now().0.saturating_add_signed(step);
                    // Neither before 1970 nor past what is counted exactly.
                    if (TEN_YEARS as u64 * 1_000_000..START.0 * 2).contains(&to) {
                        fixture.clock.step(Micros(to));
                        forward.extend((step > 0).then_some(passed));
                    }
                }
                1 => {
                    let time = [100, 1_000, 60_000, 400_000, 1_000_000][next(5) as usize] * 1000;
                    fixture.pass(Micros(time));
                    passed += time;
                }
                2 => fixture.store.sweep(),
                _ => admitted.extend(fixture.take(&strategy).then_some(passed)),
            }
        }
        for (index, &first) in admitted.iter().enumerate() {
            let within = |at: &&u64| (first..first + WINDOW.0).contains(*at);
            let count = admitted[index..].iter().take_while(within).count();
            let most = 5 * (1 + forward.iter().filter(within).count());
            assert!(count <= most, "story {story}: {count} of {most} after {first}");
        }
    }
}

/// Ten thousand keys of a clock that was years ahead make room again within the time that they last.
#[test]
fn a_clock_that_was_years_ahead_leaves_the_budget_free() {
    let fixture = Fixture::new(64 * MIB, WhenFull::Refuse);
    let strategy = per_consumer("log", Algorithm::sliding_log(5, HOUR).unwrap());
    let empty = fixture.store.stats().bytes;
    for key in 0..10_000 {
        decide_for(&fixture.store, &strategy, &key.to_string(), Op::Charge, 5).unwrap();
    }
    let before = fixture.store.stats();
    fixture.step(-TEN_YEARS);
    fixture.store.sweep();
    assert_eq!(fixture.store.stats(), before, "they still count");
    fixture.pass(Micros(HOUR.0 + SECOND.0));
    fixture.store.sweep();
    let after = fixture.store.stats();
    println!("{} keys, {} bytes of states; then {} keys", before.keys, before.bytes - empty, after.keys);
    assert_eq!((after.keys, after.evictions), (0, 0));
}

/// Threads that have read the clock before a step decide after it. What they write is neither lost nor kept for years.
#[test]
fn threads_that_decide_while_the_clock_steps_agree() {
    let fixture = Fixture::new(8 * MIB, WhenFull::Evict);
    let strategy = per_consumer("log", Algorithm::sliding_log(5, WINDOW).unwrap());
    let (stopped, admitted) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stopped.load(Relaxed) {
                    admitted.fetch_add(u64::from(fixture.take(&strategy)), Relaxed);
                }
            });
        }
        for step in 0..400 {
            fixture.step(if step % 40 == 0 { -365 * 86_400 } else { -3600 });
            fixture.store.sweep();
            std::thread::yield_now();
        }
        stopped.store(true, Relaxed);
    });
    assert_eq!(fixture.use_up(&strategy) + admitted.into_inner(), 5);
    fixture.pass(Micros(2 * WINDOW.0 + 2 * SECOND.0));
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 0);
}
