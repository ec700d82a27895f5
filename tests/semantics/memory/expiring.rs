//! Keys whose limits are full again: evicting them costs nothing, so they are evicted first, and the sweep drops them.

use weir_config::WhenFull;
use weir_core::algorithm::Algorithm;
use weir_units::Micros;

use super::{Fixture, MIB, SECOND, gate_of_a_second, per_consumer, quick_bucket, slow_bucket};

/// Neither evicting nor refusing a key that counts while there are others that do not.
#[test]
fn expired_keys_make_room_first() {
    for when_full in [WhenFull::Evict, WhenFull::Refuse] {
        let (fixture, slow, quick) = (Fixture::new(2 * MIB, when_full), slow_bucket(), quick_bucket());
        for key in 0..10_000 {
            fixture.charge(&slow, &format!("slow {key}"), 9).unwrap();
        }
        for round in 0..20 {
            for key in 0..10_000 {
                fixture.charge(&quick, &format!("quick {round} {key}"), 10).unwrap();
            }
            fixture.pass(Micros(2 * SECOND.0));
        }
        let stats = fixture.store.stats();
        assert_eq!((stats.evictions, stats.refusals), (0, 0));
        for key in 0..10_000 {
            assert!(!fixture.peek(&slow, &format!("slow {key}"), 2), "{key} was forgotten");
        }
    }
}

#[test]
fn a_sweep_drops_what_has_expired_and_nothing_else() {
    let (fixture, slow, quick) = (Fixture::new(64 * MIB, WhenFull::Evict), slow_bucket(), quick_bucket());
    for key in 0..100_000 {
        fixture.charge(&quick, &format!("quick {key}"), 10).unwrap();
    }
    for key in 0..1000 {
        fixture.charge(&slow, &format!("slow {key}"), 1).unwrap();
    }
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 101_000);
    fixture.pass(Micros(2 * SECOND.0));
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 1000);
    fixture.pass(Micros(60 * SECOND.0));
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 0);
}

/// A window with `expire` is kept for so long after its last charge, and decides meanwhile as if it were gone.
#[test]
fn a_state_with_an_expiry_of_its_own_stays_for_so_long() {
    let fixture = Fixture::new(MIB, WhenFull::Evict);
    let window = Algorithm::bucketed_window(2, Micros(10 * SECOND.0), 10, true).unwrap();
    let strategy = per_consumer("expiring", window.with_expiry(Micros(60 * SECOND.0)).unwrap());
    assert!(fixture.charge(&strategy, "bob", 2).unwrap());
    assert!(!fixture.peek(&strategy, "bob", 1));
    fixture.pass(Micros(59 * SECOND.0));
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 1);
    assert!(fixture.peek(&strategy, "bob", 2));
    fixture.pass(Micros(4 * SECOND.0));
    fixture.store.sweep();
    assert_eq!(fixture.store.stats().keys, 0);
}

/// The coarse time that keys are dropped by is never earlier than the exact time they count until.
#[test]
fn nothing_is_dropped_before_its_time() {
    let (fixture, strategy) = (Fixture::new(64 * MIB, WhenFull::Evict), gate_of_a_second());
    for offset in [0, 1, 499_999, 999_999] {
        fixture.pass(Micros(10 * SECOND.0 + offset));
        let consumer = format!("at {offset}");
        assert!(fixture.charge(&strategy, &consumer, 1).unwrap());
        fixture.pass(Micros(999_999));
        fixture.store.sweep();
        assert!(!fixture.peek(&strategy, &consumer, 1), "dropped before its time");
        fixture.pass(Micros(1));
        assert!(fixture.peek(&strategy, &consumer, 1));
    }
}
