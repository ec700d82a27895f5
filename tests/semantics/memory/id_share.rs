//! Ids have a share of their own: callers who make them up do not take the room of new consumers.

use std::sync::Arc;

use weir_config::{MemoryConfig, WhenFull};
use weir_core::algorithm::{Op, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_store::memory::MemoryStore;
use weir_store::{Decision, Part, StoreError};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::{Fixture, MIB, START, decide, slow_bucket};

const DAY: Micros = Micros::from_secs(24 * 3600);

fn under_id(fixture: &Fixture, strategy: &Arc<Strategy>, op: Op, id: &str) -> Result<Verdict, StoreError> {
    let subject = Subject { resource: "", consumer: "attacker", ..Subject::default() };
    let part = Part { id, ..Part::ALL };
    let decision = Decision { part: Some(&part), ..Decision::new(strategy, subject, op, &[]) };
    decide(&fixture.store, &decision, op, 1).map(|out| *out.get(0).unwrap().0)
}

/// Makes up ids until one is refused. Returns how many were kept.
fn flood(fixture: &Fixture, strategy: &Arc<Strategy>, op: Op) -> (usize, StoreError) {
    let kept = (0..).map(|id| under_id(fixture, strategy, op, &format!("{op:?} {id}")));
    let mut count = 0;
    for answer in kept {
        match answer {
            Ok(_) => count += 1,
            Err(error) => return (count, error),
        }
    }
    unreachable!("the ids are endless")
}

#[test]
fn ids_take_no_room_of_new_consumers() {
    for when_full in [WhenFull::Evict, WhenFull::Refuse] {
        for op in [Op::Force, Op::Refund] {
            let fixture = Fixture::new(8 * MIB, when_full);
            let strategy = slow_bucket();
            let (kept, refused) = flood(&fixture, &strategy, op);
            assert!((5_000..=2 * MIB / 64).contains(&kept), "{op:?}: {kept}");
            assert_eq!(refused, StoreError::IdsFull(2 * MIB), "{op:?}");
            let known = under_id(&fixture, &strategy, op, &format!("{op:?} 0")).unwrap();
            assert!(
                !known.applied || known.granted == 0,
                "{op:?}: an id that has its place is known: {known:?}"
            );
            // As many as fit into what is left.
            for consumer in 0..50_000 {
                let charged = fixture.charge(&strategy, &format!("consumer {consumer}"), 1);
                assert_eq!(charged, Ok(true), "{op:?}, {when_full:?}: consumer {consumer}");
            }
            assert!(under_id(&fixture, &strategy, op, "one more").is_err());
            fixture.pass(Micros(DAY.0 + 60_000_000));
            fixture.store.sweep();
            assert!(under_id(&fixture, &strategy, op, "one more").is_ok(), "{op:?}: ids expire");
            let refusals = fixture.store.stats().refusals;
            assert_eq!(refusals, 2, "{op:?}");
        }
    }
}

/// A charge under a new id is refused before anything is charged.
#[test]
fn a_refused_id_charges_nothing() {
    let clock = ManualClock::at(START);
    let config = MemoryConfig { budget: MIB, id_share: Some(MIB / 16), ..MemoryConfig::default() };
    let fixture = Fixture { store: MemoryStore::new(&config, Clock::Manual(clock.clone())), clock };
    let strategy = slow_bucket();
    let (kept, refused) = flood(&fixture, &strategy, Op::Refund);
    assert!((900..=1024).contains(&kept), "{kept}");
    assert_eq!(refused, StoreError::IdsFull(MIB / 16));
    assert_eq!(under_id(&fixture, &strategy, Op::Charge, "charge"), Err(StoreError::IdsFull(MIB / 16)));
    assert!(fixture.peek(&strategy, "attacker", 10), "nothing is charged");
}
