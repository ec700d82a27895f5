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

fn any() -> ControlRecord {
    let body = Box::default();
    ControlRecord { key: "a".into(), version: 1, change: 1, expires_at: 0, deleted: false, body }
}

#[test]
fn a_restored_state_has_no_changes() {
    let mut state = ControlState::default();
    for change in 1..=3 {
        state.put(change, put("a", change)).unwrap();
    }
    let restored = ControlState::restore(state.records().cloned(), state.position());
    assert_eq!(since(&restored, position(3, 3)), Some(vec![]));
    assert_eq!(since(&restored, position(2, 2)), None);
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
    let twice = state.put_many(1, 0, &[put("b", 1), put("b", 1)]).unwrap_err();
    assert_eq!(why(twice), "`b` is changed twice in one call");
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
