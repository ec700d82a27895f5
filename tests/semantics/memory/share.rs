//! A flood of one strategy neither resets nor disables the keys of another.
//!
//! docs/configuration/store.md says what a flood can do to a half-used key. If another strategy floods that holds more than
//! its share, or more than the key's own strategy, the key stays. If the key's own strategy floods, the key may be
//! evicted, and its holder gets a full limit. An exhausted key always stays.

use std::sync::Arc;

use weir_config::{MemoryConfig, WhenFull};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{Owner, Strategy};
use weir_store::StoreError;
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::{Fixture, HOUR, MIB, START, hourly_log, per_consumer, slow_bucket};

/// A bucket of ten that comes back at one a minute.
fn bucket(name: &str) -> Arc<Strategy> {
    per_consumer(name, Algorithm::bucket(10, Rate { count: 1, period: Micros::from_secs(60) }).unwrap())
}

impl Fixture {
    fn sharing(config: &MemoryConfig) -> Self {
        let clock = ManualClock::at(START);
        Self { store: MemoryStore::new(config, Clock::Manual(clock.clone())), clock }
    }

    /// Makes so many keys, each with so much spent. Returns how many got a place.
    fn flood(&self, strategy: &Arc<Strategy>, keys: usize, cost: u64) -> usize {
        (0..keys).filter(|key| self.charge(strategy, &format!("flood {key}"), cost).is_ok()).count()
    }

    /// Makes `keys` with half of ten spent, all of which find a place.
    fn half_used(&self, strategy: &Arc<Strategy>, keys: std::ops::Range<usize>) {
        for key in keys {
            assert_eq!(self.charge(strategy, &format!("half {key}"), 5), Ok(true), "{key}");
        }
    }

    /// Counts the forgotten ones of these keys.
    fn forgotten(&self, strategy: &Arc<Strategy>, keys: std::ops::Range<usize>) -> usize {
        keys.filter(|key| self.peek(strategy, &format!("half {key}"), 6)).count()
    }
}

/// Whatever the flood spends of each key, and whether the others' keys come before or after it.
#[test]
fn a_flood_of_one_strategy_leaves_the_keys_of_another() {
    // A tenth of the smallest budget is some 1,600 keys.
    for (budget, keys) in [(MIB, 1_200), (4 * MIB, 6_000)] {
        for when_full in [WhenFull::Evict, WhenFull::Refuse] {
            for cost in [1, 10] {
                let story = format!("{budget} bytes, {when_full:?}, {cost} of 10 spent");
                let fixture = Fixture::new(budget, when_full);
                let (flood, other) = (bucket("flood"), bucket("other"));
                fixture.half_used(&other, 0..keys / 2);
                // Twice as many as there is room for.
                let kept = fixture.flood(&flood, budget / 32, cost);
                assert!(kept < budget / 32 || (when_full, cost) == (WhenFull::Evict, 1), "{story}");
                fixture.half_used(&other, keys / 2..keys);
                fixture.flood(&flood, budget / 64, cost);
                assert_eq!(fixture.forgotten(&other, 0..keys), 0, "{story}");
                let stats = fixture.store.stats();
                assert!(stats.bytes <= budget, "{story}: {stats:?}");
                // The flood has what the others leave.
                assert!(stats.keys * 64 > budget * 7 / 10, "{story}: {stats:?}");
            }
        }
    }
}

/// Their logs grow, and each growth would take what the others have left.
#[test]
fn a_flood_of_growing_logs_leaves_the_keys_of_another() {
    for when_full in [WhenFull::Evict, WhenFull::Refuse] {
        let (fixture, logs, other) = (Fixture::new(2 * MIB, when_full), hourly_log(10_000), bucket("other"));
        fixture.half_used(&other, 0..1_000);
        for call in 0..120_000 {
            fixture.pass(Micros(1));
            let _ = fixture.charge(&logs, &format!("log {}", call % 200), 1);
        }
        fixture.half_used(&other, 1_000..2_500);
        let stats = fixture.store.stats();
        assert!(stats.bytes <= 2 * MIB, "{when_full:?}: {stats:?}");
        assert!(stats.bytes > 3 * MIB / 2, "{when_full:?}: the flood has the rest: {stats:?}");
        assert_eq!(fixture.forgotten(&other, 0..2_500), 0, "{when_full:?}");
    }
}

/// With more than ten strategies the shares are more than the budget. A flood still takes nothing from strategies that
/// hold less than the flooding one.
#[test]
fn a_flood_leaves_the_keys_of_eleven_others() {
    let fixture = Fixture::new(2 * MIB, WhenFull::Evict);
    let others: Vec<_> = (0..11).map(|other| bucket(&format!("other-{other}"))).collect();
    for other in &others {
        fixture.half_used(other, 0..250);
    }
    let flood = bucket("flood");
    assert_eq!(fixture.flood(&flood, 60_000, 1), 60_000);
    for other in &others {
        assert_eq!(fixture.forgotten(other, 0..250), 0);
    }
    assert!(fixture.store.stats().evictions > 0);
}

/// The rules of a domain share one share, and so do a strategy and what a changed configuration makes of it.
#[test]
fn a_share_belongs_to_a_name() {
    let fixture = Fixture::new(2 * MIB, WhenFull::Evict);
    let other = bucket("other");
    fixture.half_used(&other, 0..2_000);
    for round in 0..8 {
        let domain = Arc::new(Owner::of_domain("edge"));
        let rule = bucket(&format!("rule-{round}"));
        let rule = Arc::new(Arc::unwrap_or_clone(rule).owned_by(&domain));
        fixture.store.share_among([&**other.owner(), &*domain]);
        assert_eq!(fixture.flood(&rule, 10_000, 1), 10_000);
    }
    assert_eq!(fixture.forgotten(&other, 0..2_000), 0);
}

/// A strategy that the configuration no longer has still holds its keys, and makes way like any other.
#[test]
fn keys_of_a_strategy_that_is_gone_make_way() {
    let fixture = Fixture::new(2 * MIB, WhenFull::Evict);
    let (gone, stays, comes) = (bucket("gone"), bucket("stays"), bucket("comes"));
    fixture.half_used(&stays, 0..2_000);
    fixture.flood(&gone, 50_000, 1);
    fixture.store.share_among([&**stays.owner(), &**comes.owner()]);
    // Its flood has ended, and the other strategies take over its share step by step.
    fixture.half_used(&comes, 0..10_000);
    assert_eq!((fixture.forgotten(&stays, 0..2_000), fixture.forgotten(&comes, 0..10_000)), (0, 0));
}

/// Two strategies within a share that is less than the budget's half: the third has the rest.
#[test]
fn a_configured_share_bounds_owners_above_it() {
    let config = MemoryConfig { budget: 4 * MIB, share: Some(MIB), ..MemoryConfig::default() };
    let fixture = Fixture::sharing(&config);
    let (flood, others) = (bucket("flood"), [bucket("one"), bucket("two")]);
    fixture.flood(&flood, 80_000, 1);
    for other in &others {
        fixture.half_used(other, 0..MIB / 64);
    }
    fixture.flood(&flood, 50_000, 1);
    for other in &others {
        assert_eq!(fixture.forgotten(other, 0..MIB / 64), 0);
    }
}

/// A flood of its own strategy may evict a half-used key. Each eviction gives its holder a full limit.
/// An exhausted key stays.
#[test]
fn a_flood_of_its_own_strategy_may_reset_a_half_used_key_and_no_exhausted_one() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), slow_bucket());
    fixture.half_used(&strategy, 0..1_000);
    for key in 0..1_000 {
        assert!(fixture.charge(&strategy, &format!("exhausted {key}"), 10).unwrap());
    }
    fixture.flood(&strategy, 40_000, 9);
    // The flood is full again later, so those that are half used go first.
    assert!(fixture.forgotten(&strategy, 0..1_000) > 900);
    for key in 0..1_000 {
        assert!(!fixture.charge(&strategy, &format!("exhausted {key}"), 1).unwrap(), "{key} was forgotten");
    }
}

/// A flood that has spent all of its keys leaves nothing to evict: its own new keys are refused, and the last tenth
/// of the budget is the others'.
#[test]
fn a_flood_of_exhausted_keys_is_refused_in_the_last_tenth() {
    let (fixture, flood, other) = (Fixture::new(4 * MIB, WhenFull::Evict), bucket("flood"), bucket("other"));
    fixture.half_used(&other, 0..1);
    fixture.flood(&flood, 100_000, 10);
    let stats = fixture.store.stats();
    assert!((4 * MIB * 8 / 10..=4 * MIB * 9 / 10).contains(&stats.bytes), "{stats:?}");
    assert_eq!(fixture.charge(&flood, "one more", 10), Err(StoreError::Full(4 * MIB)));
    assert_eq!(fixture.charge(&flood, "flood 0", 1), Ok(false), "it goes on being denied");
    fixture.half_used(&other, 1..4 * MIB / 10 / 64);
    assert_eq!(fixture.charge(&flood, "one more", 10), Err(StoreError::Full(4 * MIB)));
    // Its keys expire, and it may have new ones.
    fixture.pass(HOUR);
    fixture.store.sweep();
    assert!(fixture.flood(&flood, 10_000, 10) == 10_000);
}
