//! Ids are known for their time, by the monotonic clock, whatever the wall clock does.

use std::sync::Arc;

use weir_config::WhenFull;
use weir_core::algorithm::{Algorithm, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_store::{Decision, Part};
use weir_units::Micros;

use super::{Fixture, MIB, SECOND, decide, per_consumer};

const STEPS: [i64; 5] = [-1, -3600, -3650 * 86_400, 3600, 3650 * 86_400];
const AGES: [Micros; 3] = [Micros::ZERO, Micros::from_secs(2), Micros::from_secs(5 * 3600)];
const DAY: Micros = Micros::from_secs(24 * 3600);

fn under_id(fixture: &Fixture, strategy: &Arc<Strategy>, op: Op, id: &str) -> Verdict {
    let subject = Subject { resource: "", consumer: "consumer", ..Subject::default() };
    let part = Part { id, ..Part::ALL };
    let decision = Decision { part: Some(&part), ..Decision::new(strategy, subject, op, &[]) };
    *decide(&fixture.store, &decision, op, 1).unwrap().get(0).unwrap().0
}

fn hourly_bucket() -> Arc<Strategy> {
    let rate = Rate { count: 1, period: Micros::from_secs(3600) };
    per_consumer("hourly", Algorithm::bucket(100, rate).unwrap())
}

/// Calls `each` with a store of every age, and every step, as something to do.
fn each_case(each: impl Fn(&Fixture, &dyn Fn())) {
    for age in AGES {
        for step in STEPS {
            let fixture = Fixture::new(8 * MIB, WhenFull::Evict);
            fixture.pass(age);
            fixture.store.sweep();
            let now = || fixture.clock.now().0;
            each(&fixture, &|| fixture.clock.step(Micros(now().saturating_add_signed(step * 1_000_000))));
        }
    }
}

fn pass_to(fixture: &Fixture, time: Micros) {
    fixture.pass(time);
    fixture.store.sweep();
}

#[test]
fn an_id_is_known_for_its_time_and_no_longer() {
    for (op, lasts) in [(Op::Charge, Micros::from_secs(60)), (Op::Force, DAY), (Op::Refund, DAY)] {
        each_case(|fixture, step| {
            let strategy = hourly_bucket();
            for _ in 0..50 {
                assert!(fixture.charge(&strategy, "consumer", 1).unwrap());
            }
            assert_eq!(under_id(fixture, &strategy, op, "id").granted, 1);
            step();
            pass_to(fixture, Micros(lasts.0 - 1));
            let again = under_id(fixture, &strategy, op, "id");
            assert!(!again.applied || again.granted == 0, "{op:?}: it is known: {again:?}");
            pass_to(fixture, Micros(1));
            let new = under_id(fixture, &strategy, op, "id");
            assert!(new.applied, "{op:?}: it is new: {new:?}");
        });
    }
}

#[test]
fn a_reservation_waits_for_the_time_that_it_was_told() {
    let rate = Rate { count: 1, period: Micros::from_secs(20) };
    let strategy = per_consumer("paced", Algorithm::bucket(1, rate).unwrap());
    let reserve = Op::Reserve { max_wait: Micros::from_secs(60) };
    each_case(|fixture, step| {
        assert!(fixture.charge(&strategy, "consumer", 1).unwrap());
        assert_eq!(under_id(fixture, &strategy, reserve, "id").wait, Micros::from_secs(20));
        step();
        pass_to(fixture, Micros::from_secs(5));
        let again = under_id(fixture, &strategy, reserve, "id");
        assert_eq!((again.applied, again.wait), (false, Micros::from_secs(15)));
        pass_to(fixture, Micros::from_secs(15));
        assert_eq!(under_id(fixture, &strategy, reserve, "id").wait, Micros::ZERO);
        assert!(!under_id(fixture, &strategy, Op::Cancel, "id").applied, "its start has come");
    });
}

#[test]
fn records_do_not_outlive_their_time() {
    each_case(|fixture, step| {
        under_id(fixture, &hourly_bucket(), Op::Force, "id");
        step();
        fixture.store.sweep();
        fixture.pass(Micros(DAY.0 + 10 * SECOND.0));
        fixture.store.sweep();
        assert_eq!(fixture.store.stats().keys, 0);
    });
}
