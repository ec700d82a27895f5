use weir_units::Micros;

use super::super::{
    GENERATION_PREFIX, MAX_CONTROL_BODY, MAX_CONTROL_CHANGES, MAX_CONTROL_KEY, MAX_POLLED_BYTES,
    MAX_POLLED_CHANGES, MAX_POLLED_RECORDS, MAX_PUT_BYTES, MAX_PUT_TOGETHER,
};
use super::*;

const HOUR: u64 = 3_600_000_000;

fn put(key: &str, change: u64) -> ControlPut {
    let body = Some(change.to_be_bytes().into());
    ControlPut {
        key: key.into(),
        expect: None,
        change,
        expires_after: None,
        body,
        tombstone: [].into(),
        generation: None,
    }
}

fn delete(key: &str, change: u64) -> ControlPut {
    ControlPut { body: None, ..put(key, change) }
}

fn position(version: u64, change: u64) -> ControlPosition {
    ControlPosition { version, change }
}

fn since(state: &ControlState, position: ControlPosition) -> Option<Vec<u64>> {
    match state.changes_since(position) {
        ControlChanges::Since { records, .. } => Some(records.iter().map(|record| record.change).collect()),
        ControlChanges::Everything { .. } => None,
    }
}

/// Versions are the store's time, grow when its clock steps back, and are greater than what the writer knows.
#[test]
fn versions_grow() {
    let mut state = ControlState::default();
    let mut version = |now, known, change| state.put_above(now, known, put("a", change)).unwrap()[0].version;
    assert_eq!([version(100, 0, 1), version(50, 0, 2), version(90, 500, 3)], [100, 101, 501]);
    assert_eq!(state.merge(60, 9, &[ControlRecord { key: "b".into(), version: 900, ..any() }]), 1);
    assert_eq!(state.position(), position(901, 9), "a merge is a change of its own");
}

fn any() -> ControlRecord {
    let body = Box::default();
    ControlRecord { key: "a".into(), version: 1, change: 1, expires_at: 0, deleted: false, body }
}

#[test]
fn an_expected_change_is_compared() {
    let mut state = ControlState::default();
    let expecting = |expect, change| ControlPut { expect: Some(expect), ..put("a", change) };
    let stale = |version, change| Err(ControlRefusal::Stale { current: position(version, change) });
    assert_eq!(state.put(10, expecting(position(1, 1), 1)), stale(0, 0));
    let ending = ControlPut { expires_after: Some(Micros(5)), ..expecting(ControlPosition::NONE, 2) };
    assert_eq!(state.put(10, ending).unwrap()[0].expires_at, 15);
    assert_eq!(state.put(14, expecting(ControlPosition::NONE, 3)), stale(10, 2));
    assert_eq!(state.put(14, expecting(position(10, 3), 3)), stale(10, 2));
    // It has ended, so there must be none.
    assert_eq!(state.put(15, expecting(position(10, 2), 3)), stale(0, 0));
    assert!(state.put(15, expecting(ControlPosition::NONE, 3)).is_ok());
    assert!(state.put(16, expecting(position(15, 3), 4)).is_ok());
    assert!(state.put(17, ControlPut { body: None, ..expecting(position(16, 4), 5) }).is_ok());
    assert_eq!(state.put(18, ControlPut { body: None, ..expecting(position(17, 5), 6) }), stale(0, 0));
    assert_eq!(state.put(18, delete("a", 6)), Err(ControlRefusal::Missing));
}

/// The reply to a put may be lost: the same id is answered as before, and changes nothing.
#[test]
fn a_put_is_repeated_under_its_id() {
    let mut state = ControlState::default();
    let first = ControlPut {
        expect: Some(ControlPosition::NONE),
        generation: Some("generation/s".into()),
        ..put("a", 1)
    };
    let written = state.put(10, first.clone()).unwrap();
    assert_eq!(written.len(), 2);
    assert_eq!((&*written[1].key, written[1].version, written[1].change), ("generation/s", 10, 1));
    assert_eq!(state.put(20, first).unwrap(), written);
    assert_eq!(state.position(), position(10, 1));
    let gone = state.put(30, delete("a", 2)).unwrap();
    assert_eq!(state.put(40, delete("a", 2)).unwrap(), gone);
}

#[test]
fn a_node_gets_what_came_after_its_position() {
    let mut state = ControlState::default();
    assert_eq!(since(&state, ControlPosition::NONE), Some(vec![]));
    for change in 1..=3 {
        state.put(change, put("a", change)).unwrap();
    }
    assert_eq!(since(&state, position(1, 1)), Some(vec![2, 3]));
    assert_eq!(since(&state, position(3, 3)), Some(vec![]));
    for unknown in [ControlPosition::NONE, ControlPosition::UNSETTLED, position(2, 9), position(4, 4)] {
        assert_eq!(since(&state, unknown), None, "{unknown:?}");
    }
    let restored = ControlState::restore(state.records().cloned(), state.position());
    assert_eq!(since(&restored, position(3, 3)), Some(vec![]));
    assert_eq!(since(&restored, position(2, 2)), None, "its changes are gone");
}

#[test]
fn answers_and_changes_are_bounded() {
    let mut state = ControlState::default();
    for change in 1..=MAX_CONTROL_CHANGES as u64 + 1 {
        state.put(change, put("a", change)).unwrap();
    }
    assert_eq!(since(&state, position(1, 1)), None);
    let ControlChanges::Since { records, position } = state.changes_since(position(2, 2)) else { panic!() };
    assert_eq!((records.len(), position.change), (MAX_POLLED_CHANGES, 2 + MAX_POLLED_CHANGES as u64));
    let large = |change| ControlPut { body: Some(vec![0; MAX_CONTROL_BODY].into()), ..put("b", change) };
    (200_000..200_090).for_each(|change| {
        state.put(change, large(change)).unwrap();
    });
    let first = ControlPosition { version: 10_001, change: 10_001 };
    assert_eq!(since(&state, first).unwrap().len(), MAX_POLLED_BYTES / MAX_CONTROL_BODY);
}

#[test]
fn entries_are_bounded() {
    let mut state = ControlState::default();
    for change in 1..=MAX_CONTROL_ENTRIES as u64 {
        let generation = (change < 9).then(|| format!("{GENERATION_PREFIX}{change}").into());
        let expires_after = (change == 1).then_some(Micros(HOUR));
        state.put(1, ControlPut { generation, expires_after, ..put(&format!("{change}"), change) }).unwrap();
    }
    let full = Err(ControlRefusal::Full { most: MAX_CONTROL_ENTRIES });
    assert_eq!(state.put(HOUR, put("more", 200_000)), full);
    assert!(state.put(HOUR, put("7", 200_001)).is_ok(), "it is there already");
    assert!(state.put(HOUR + 1, put("more", 200_002)).is_ok(), "one has expired");
    assert_eq!(state.put(HOUR + 1, put("1", 200_003)), full);
    state.put(HOUR + 2, delete("2", 200_004)).unwrap();
    assert!(state.put(HOUR + 3, put("1", 200_005)).is_ok(), "one was deleted");
    assert_eq!(state.put(HOUR + 3, put("2", 200_006)), full);
}

#[test]
fn deletions_are_bounded() {
    let mut state = ControlState::default();
    let mut change = 0;
    loop {
        change += 1;
        match state.put(change, put(&change.to_string(), change)) {
            Ok(_) => state.put(change, delete(&change.to_string(), change + (1 << 40))).unwrap(),
            Err(refusal) => break assert_eq!(refusal, ControlRefusal::Full { most: MAX_CONTROL_RECORDS }),
        };
    }
    assert_eq!(change as usize, MAX_CONTROL_RECORDS + 1);
    let later = 24 * HOUR + MAX_CONTROL_RECORDS as u64;
    assert!(state.put(later, put("new", 1 << 41)).is_ok());
    assert_eq!(state.records().count(), MAX_CONTROL_RECORDS - MAX_DROPPED + 1);
}

#[test]
fn the_newer_record_stays() {
    let mut state = ControlState::default();
    state.put(10, put("a", 5)).unwrap();
    let with = |version, change| ControlRecord { version, change, ..any() };
    assert_eq!(state.merge(11, 1, &[with(9, 9), with(10, 4), with(10, 5)]), 0);
    assert_eq!(state.position(), position(10, 5), "nothing has changed");
    assert_eq!(state.merge(11, 1, &[with(10, 6), with(9, 9)]), 1);
    assert_eq!((since(&state, position(10, 5)), state.position()), (Some(vec![6]), position(11, 1)));
    let deletion = ControlRecord { deleted: true, expires_at: 12, ..with(12, 1) };
    assert_eq!(state.merge(13, 2, &[deletion]), 1);
    assert_eq!(state.merge(14, 3, &[with(11, 9)]), 0, "no deletion is undone");
}

/// A record that no store writes changes nothing.
#[test]
fn damaged_records_are_not_merged() {
    let mut state = ControlState::default();
    let damaged = [
        ControlRecord { version: MAX_CONTROL_VERSION + 1, ..any() },
        ControlRecord { deleted: true, ..any() },
        ControlRecord { key: "generation/a".into(), expires_at: 9, ..any() },
    ];
    assert_eq!(state.merge(1, 1, &damaged), 0);
}

#[test]
fn what_has_ended_is_kept_for_a_day() {
    let mut state = ControlState::default();
    state.put(HOUR, put("a", 1)).unwrap();
    state.put(2 * HOUR, delete("a", 2)).unwrap();
    let ending = ControlPut { expires_after: Some(Micros(HOUR)), ..put("b", 3) };
    state.put(2 * HOUR, ending).unwrap();
    state.drop_old(26 * HOUR - 1);
    let deletion = state.records().next().unwrap().clone();
    assert_eq!(state.records().count(), 2);
    state.drop_old(26 * HOUR);
    assert_eq!(state.records().count(), 1);
    assert_eq!(state.merge(26 * HOUR, 4, std::slice::from_ref(&deletion)), 0, "it is not added again");
    state.drop_old(27 * HOUR);
    assert_eq!(state.records().count(), 0);
    let version = deletion.version - 1;
    assert_eq!(state.merge(20 * HOUR, 5, &[ControlRecord { version, ..any() }]), 1);
    assert_eq!(state.merge(27 * HOUR, 6, &[deletion]), 1, "but it still replaces what is older");
}

#[test]
fn bad_arguments_are_named() {
    let mut state = ControlState::default();
    let long = "k".repeat(MAX_CONTROL_KEY + 1);
    let body = Some(vec![0; MAX_CONTROL_BODY + 1].into());
    let refused = [
        (put("", 1), "`key` has 0 bytes, and must have 1 to 4096"),
        (put(&long, 1), "`key` has 4097 bytes, and must have 1 to 4096"),
        (ControlPut { body, ..put("a", 1) }, "`body` has 16385 bytes, and must have 0 to 16384"),
        (
            put("generation/a", 1),
            "`generation/a`: keys of generations begin with \"generation/\", and others do not",
        ),
        (
            ControlPut { generation: Some("a".into()), ..put("a", 1) },
            "`a`: keys of generations begin with \"generation/\", and others do not",
        ),
    ];
    for (put, why) in refused {
        assert_eq!(state.put(1, put).unwrap_err().to_string(), why);
    }
    assert_eq!(state.position(), ControlPosition::NONE);
}

/// Several changes are one: one version, one position, and all of them or none.
#[test]
fn several_changes_are_made_together_or_not_at_all() {
    let mut state = ControlState::default();
    state.put(5, put("a", 1)).unwrap();
    let refused = |place, refusal| Err(RefusedPut { place, refusal });
    let before = state.records().cloned().collect::<Vec<_>>();
    let stale = ControlPut { expect: Some(ControlPosition::NONE), ..put("a", 2) };
    let current = position(5, 1);
    assert_eq!(
        state.put_many(10, 0, &[put("b", 2), stale, put("c", 2)]),
        refused(1, ControlRefusal::Stale { current })
    );
    assert_eq!(state.put_many(10, 0, &[put("b", 2), delete("c", 2)]), refused(1, ControlRefusal::Missing));
    let twice = ControlRefusal::Twice { key: "b".into() };
    assert_eq!(state.put_many(10, 0, &[put("b", 2), put("b", 2)]), refused(1, twice));
    assert_eq!((state.records().cloned().collect::<Vec<_>>(), state.position()), (before, current));
    let all = [put("b", 2), delete("a", 2), put("c", 2)];
    let written = state.put_many(10, 0, &all).unwrap();
    assert_eq!(written.iter().map(|record| record.version).collect::<Vec<_>>(), [10; 3]);
    assert_eq!((state.position(), since(&state, current)), (position(10, 2), Some(vec![2; 3])));
    assert_eq!(state.put_many(20, 0, &all).unwrap(), written, "repeated under its id");
    assert_eq!(state.position(), position(10, 2));
}

#[test]
fn changes_of_one_put_are_bounded() {
    let mut state = ControlState::default();
    let keys = |count: usize| (0..count).map(|number| put(&number.to_string(), 1)).collect::<Vec<_>>();
    let why = |refused: RefusedPut| refused.refusal.to_string();
    assert_eq!(
        why(state.put_many(1, 0, &[]).unwrap_err()),
        "there are 0 changes in one call: it must have 1 to 1000"
    );
    assert!(state.put_many(1, 0, &keys(MAX_PUT_TOGETHER + 1)).is_err());
    let body = Some(vec![0; MAX_CONTROL_BODY].into());
    let large = keys(MAX_PUT_BYTES / MAX_CONTROL_BODY).into_iter();
    let large: Vec<_> = large.map(|put| ControlPut { body: body.clone(), ..put }).collect();
    assert!(state.put_many(1, 0, &large).is_err());
    assert!(state.put_many(1, 0, &large[1..]).is_ok());
    let first = state.position();
    for change in 2..=200 {
        let all: Vec<_> =
            keys(MAX_PUT_TOGETHER).into_iter().map(|put| ControlPut { change, ..put }).collect();
        state.put_many(change, 0, &all).unwrap();
    }
    assert_eq!(since(&state, first), None, "as many records as there may be entries are kept");
    let known = position(101, 101);
    assert_eq!(since(&state, known).unwrap().len(), MAX_POLLED_RECORDS);
    assert_eq!(state.changes.len(), MAX_CONTROL_ENTRIES / MAX_PUT_TOGETHER);
}

/// The bound of entries holds over time, also when the clock is set back.
#[test]
fn entries_that_have_ended_are_counted_once() {
    let mut state = ControlState::default();
    let mut number = 3_u64;
    for step in 0..5_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = number >> 33;
        let now = HOUR + step * 1_000 - if step % 701 == 0 { 900_000 } else { 0 };
        let key = (random % 300).to_string();
        let ends = Some(Micros(random % 400_000)).filter(|_| random.is_multiple_of(3));
        let change = if random.is_multiple_of(5) { delete(&key, step + 1) } else { put(&key, step + 1) };
        let _ = state.put(now, ControlPut { expires_after: ends, ..change });
        let lasting = state.records().filter(|record| record.ends().is_some_and(|ends| ends > now)).count();
        assert_eq!(state.lasting(now), lasting, "step {step}");
    }
}
