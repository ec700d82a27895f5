use super::*;

const RULE: BanRule = BanRule { after: 20, within: Micros::from_secs(60) };

/// SplitMix64: the same story for the same number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) % bound
    }
}

/// Random callers, more of them than there are places, with pauses and a clock that is set back. Whoever is banned was
/// denied as often as the rule says within its time. Whoever was, within seven eighths of it, is banned if there is room.
#[test]
fn nobody_is_banned_for_fewer_denials() {
    let (mut banned, mut found) = (0, 0);
    for number in 0..2_000 {
        let mut dice = Dice(number);
        let (places, callers) = (1 + dice.below(8), 1 + dice.below(12));
        let rule = BanRule { after: 1 + dice.below(6) as u32, within: Micros(8 + dice.below(2_000)) };
        let mut sketch = DenialSketch::new(places as usize);
        let mut denials: Vec<Vec<u64>> = vec![Vec::new(); callers as usize];
        let (mut now, mut steps_back) = (1_000_000, false);
        for _ in 0..300 {
            now += dice.below(1 + rule.within.0 / 3);
            if dice.below(200) == 0 {
                now -= dice.below(10_000);
                steps_back = true;
            }
            let caller = dice.below(callers).min(dice.below(callers)) as usize;
            let since = &mut denials[caller];
            since.push(now);
            let is_due = sketch.count(caller as u128, rule, now);
            // Where the clock was set back within a slice, a denial may seem to come later than now.
            let within = |span: u64| since.iter().filter(|at| now.abs_diff(**at) < span).count() as u64;
            if is_due {
                banned += 1;
                assert!(within(rule.within.0) >= u64::from(rule.after), "{number}: {rule:?} {since:?}");
                // Those were counted for this ban.
                since.clear();
            } else if places >= callers && !steps_back && rule.within.0 >= 64 {
                found += 1;
                assert!(
                    within(rule.within.0 / 8 * 7) < u64::from(rule.after),
                    "{number}: {rule:?} {since:?}"
                );
            }
            assert!(sketch.len() <= places as usize);
        }
    }
    assert!(banned > 1_000 && found > 1_000, "{banned} {found}");
}

/// A caller with many denials is found among more callers than there are places.
#[test]
fn a_frequent_caller_is_found() {
    let mut sketch = DenialSketch::new(100);
    let (mut now, mut next) = (1_000_000_000, 1_u128);
    let mut found = false;
    for round in 0..20_000_u64 {
        now += 100;
        if round % 10 == 0 {
            found |= sketch.count(0, RULE, now);
        } else {
            assert!(!sketch.count(next, RULE, now), "each of the others is denied once");
            next += 1;
        }
    }
    assert!(found && sketch.len() == 100);
}

/// Counters of callers that are gone make room without an error.
#[test]
fn what_has_lapsed_makes_room() {
    let mut sketch = DenialSketch::new(10);
    for key in 0..10 {
        (0..19).for_each(|_| assert!(!sketch.count(key, RULE, 1_000_000_000)));
    }
    let later = 1_000_000_000 + 2 * RULE.within.0;
    (100..110).for_each(|key| assert!(!sketch.count(key, RULE, later)));
    assert!(sketch.counters.iter().all(|counter| (counter.error, counter.count) == (0, 1)));
    assert_eq!((sketch.places.len(), sketch.by_count.len(), sketch.is_empty()), (10, 10, false));
}

#[test]
fn counting_begins_again_after_a_ban() {
    let mut sketch = DenialSketch::default();
    let due: Vec<u64> = (1..=60).filter(|at| sketch.count(7, RULE, 1_000_000_000 + at)).collect();
    assert_eq!(due, [20, 40, 60]);
}
