use super::super::{ControlChanges, ControlPut, ControlState};
use super::*;

const HOUR: u64 = 3_600_000_000;

/// A reconciliation that lost nothing and found a new record.
const CHANGED: ControlReconciled = ControlReconciled { to_send: Vec::new(), lost: None, changed: true };

fn put(state: &mut ControlState, now: u64, key: &str, change: u64) -> Vec<ControlRecord> {
    change_to(state, now, (key, change), Some(change.to_be_bytes().into()))
}

fn delete(state: &mut ControlState, now: u64, key: &str, change: u64) {
    change_to(state, now, (key, change), None);
}

fn change_to(
    state: &mut ControlState,
    now: u64,
    (key, change): (&str, u64),
    body: Option<Box<[u8]>>,
) -> Vec<ControlRecord> {
    let (expect, expires_after, generation) = (None, None, None);
    let (key, tombstone) = (key.into(), [].into());
    state.put(now, ControlPut { key, expect, change, expires_after, body, tombstone, generation }).unwrap()
}

/// Performs one poll with its follow-up, except for the merge.
fn poll(mirror: &mut ControlMirror, state: &ControlState) -> Option<ControlReconciled> {
    match state.changes_since(mirror.position()) {
        ControlChanges::Since { records, position } => {
            mirror.apply(records, position);
            None
        }
        ControlChanges::Everything { position } => {
            Some(mirror.everything(position.version, state.records().cloned(), position))
        }
    }
}

fn send(state: &mut ControlState, now: u64, reconciled: Option<ControlReconciled>) -> Option<ControlLoss> {
    let reconciled = reconciled.unwrap();
    assert!(!reconciled.to_send.is_empty());
    state.merge(now, now, &reconciled.to_send);
    reconciled.lost
}

fn agree(mirror: &ControlMirror, state: &ControlState) {
    assert!(mirror.records().eq(state.records()), "{mirror:?} {state:?}");
    assert_eq!(mirror.position(), state.position());
}

#[test]
fn a_node_follows_the_store() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    assert_eq!(poll(&mut mirror, &state), None, "an empty store has nothing to read");
    put(&mut state, 1, "a", 1);
    put(&mut state, 2, "b", 2);
    // A node that is new reads everything, and this is no loss.
    assert_eq!(poll(&mut mirror, &state), Some(CHANGED));
    agree(&mirror, &state);
    delete(&mut state, 3, "a", 3);
    assert_eq!(poll(&mut mirror, &state), None);
    agree(&mirror, &state);
}

/// FLUSHALL, or a master without data: the node sends all of it back, and deletions, too.
#[test]
fn a_store_without_data_gets_them_back() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    put(&mut state, 1, "a", 1);
    put(&mut state, 2, "b", 2);
    delete(&mut state, 3, "b", 3);
    poll(&mut mirror, &state);
    let before = mirror.clone();
    let mut state = ControlState::default();
    put(&mut state, 4, "c", 4);
    let lost = poll(&mut mirror, &state);
    assert_eq!(mirror.position(), ControlPosition::UNSETTLED);
    assert_eq!(mirror.last_position(), before.position(), "it may have to begin again");
    // The merge is lost. The next poll repeats it, and does not report the loss again.
    let again = poll(&mut mirror, &state).unwrap();
    assert_eq!((&again.to_send, again.lost), (&lost.as_ref().unwrap().to_send, None));
    assert_eq!(send(&mut state, 5, lost), Some(ControlLoss { from: 0, to: 4 }));
    assert_eq!(poll(&mut mirror, &state), Some(ControlReconciled::default()));
    agree(&mirror, &state);
    assert_eq!(state.records().filter(|record| record.is_live(9)).count(), 2);
}

/// A failover loses the last change, and the new master makes others. The position is older than that of the master.
#[test]
fn a_change_that_a_failover_lost_is_sent_back() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    put(&mut state, 1, "a", 1);
    poll(&mut mirror, &state);
    let replica = state.clone();
    put(&mut state, 2, "a", 2);
    put(&mut state, 3, "b", 3);
    poll(&mut mirror, &state);
    let mut state = replica;
    put(&mut state, 8, "b", 8);
    let lost = poll(&mut mirror, &state);
    assert_eq!(send(&mut state, 9, lost), Some(ControlLoss { from: 1, to: 8 }));
    poll(&mut mirror, &state);
    agree(&mirror, &state);
    let versions: Vec<u64> = state.records().map(|record| record.version).collect();
    assert_eq!(versions, [2, 8]);
}

/// The node has not yet seen its own change in the store when a failover loses it: the position is still known.
#[test]
fn an_acknowledged_change_is_not_lost_while_the_position_is_known() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    put(&mut state, 1, "a", 1);
    poll(&mut mirror, &state);
    let replica = state.clone();
    assert!(mirror.take_acknowledged(&put(&mut state, 2, "b", 2)));
    let mut state = replica;
    assert_eq!(poll(&mut mirror, &state), None);
    assert_eq!(mirror.position(), ControlPosition::UNSETTLED);
    let lost = poll(&mut mirror, &state);
    assert_eq!(send(&mut state, 9, lost), Some(ControlLoss { from: 1, to: 2 }));
    poll(&mut mirror, &state);
    agree(&mirror, &state);
}

/// The store repeats an acknowledged change with the next poll, which shows nothing unless changes were lost.
#[test]
fn an_acknowledged_change_is_seen_again() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    put(&mut state, 1, "a", 1);
    poll(&mut mirror, &state);
    mirror.take_acknowledged(&put(&mut state, 2, "b", 2));
    put(&mut state, 3, "b", 3);
    for _ in 0..3 {
        assert_eq!(poll(&mut mirror, &state), None);
        agree(&mirror, &state);
    }
}

/// A node that was away for longer than the changes go back has nothing to report.
#[test]
fn a_node_that_was_away_is_no_loss() {
    let mut state = ControlState::default();
    put(&mut state, 1, "a", 1);
    let mut mirror = ControlMirror::default();
    poll(&mut mirror, &state);
    put(&mut state, 2, "a", 2);
    let state = ControlState::restore(state.records().cloned(), state.position());
    let mut restored = ControlMirror::restore(mirror.records().cloned(), mirror.last_position());
    assert_eq!(poll(&mut restored, &state), Some(CHANGED));
    agree(&restored, &state);
}

/// The store has dropped a deletion that the node still has: it is not sent, so that the node settles.
#[test]
fn what_is_old_is_not_sent() {
    let (mut state, mut mirror) = (ControlState::default(), ControlMirror::default());
    put(&mut state, HOUR, "a", 1);
    delete(&mut state, 2 * HOUR, "a", 2);
    poll(&mut mirror, &state);
    state.drop_old(26 * HOUR);
    put(&mut state, 26 * HOUR, "b", 3);
    let state = ControlState::restore(state.records().cloned(), state.position());
    assert_eq!(poll(&mut mirror, &state), Some(CHANGED));
    mirror.drop_old(26 * HOUR);
    agree(&mirror, &state);
}
