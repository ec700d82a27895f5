//! Tests of turns: who is next, who makes room, and what is left.

use super::*;

type TestQueues = FairQueues<usize, VecDeque<(usize, u32)>>;

fn next<Q: TurnQueue>(queues: &mut Q) -> Option<Q::Call> {
    queues.pop(&mut usize::MAX.clone(), &mut Some)
}

/// The owners of the calls that are taken.
fn owners(queues: &mut TestQueues, count: usize) -> Vec<usize> {
    (0..count).map_while(|_| next(queues)).map(|(owner, _)| owner).collect()
}

fn flood(queues: &mut TestQueues, owner: usize, calls: u32) {
    (0..calls).for_each(|call| queues.push((owner, ()), (owner, call)));
}

#[test]
fn each_owner_has_one_turn_in_a_round() {
    let mut queues = TestQueues::default();
    flood(&mut queues, 1, 5);
    flood(&mut queues, 2, 2);
    flood(&mut queues, 3, 1);
    assert_eq!(owners(&mut queues, 8), [3, 2, 1, 2, 1, 1, 1, 1]);
    assert!(queues.is_empty());
}

#[test]
fn who_comes_beside_a_flood_is_next_and_not_twice() {
    let mut queues = TestQueues::default();
    flood(&mut queues, 1, 100);
    assert_eq!(owners(&mut queues, 3), [1, 1, 1]);
    flood(&mut queues, 2, 1);
    assert_eq!(owners(&mut queues, 1), [2]);
    flood(&mut queues, 2, 1);
    assert_eq!(owners(&mut queues, 2), [1, 2], "it had its turn in this round");
    // However often others come, the flood has its turn in each round.
    for other in 3..50 {
        flood(&mut queues, other, 1);
    }
    let taken = owners(&mut queues, 60);
    assert_eq!(taken.iter().filter(|owner| **owner > 2).count(), 47);
    assert_eq!(taken[47..], [1; 13]);
}

#[test]
fn calls_of_one_owner_keep_their_order_and_lost_ones_take_no_turn() {
    let mut queues = TestQueues::default();
    flood(&mut queues, 1, 6);
    flood(&mut queues, 2, 2);
    let is_live = |call: &(usize, u32)| call.0 == 2 || call.1 % 3 == 2;
    let taken: Vec<_> =
        std::iter::from_fn(|| queues.pop(&mut usize::MAX.clone(), &mut |call| Some(call).filter(is_live)))
            .collect();
    assert_eq!(taken, [(2, 0), (1, 2), (2, 1), (1, 5)]);
    assert!(queues.is_empty());
}

#[test]
fn the_newest_of_the_longest_queue_makes_room() {
    let mut queues = TestQueues::default();
    flood(&mut queues, 1, 4);
    flood(&mut queues, 2, 2);
    assert_eq!(queues.displace((1, ())), None, "its own is the longest");
    assert_eq!(queues.displace((2, ())), Some((1, 3)));
    assert_eq!(queues.displace((2, ())), None, "both would have three");
    assert_eq!(queues.displace((3, ())), Some((1, 2)));
    assert_eq!((queues.len(), owners(&mut queues, 9).len()), (4, 4));
}

#[test]
fn nothing_is_left_of_owners_that_have_gone() {
    let mut queues = TestQueues::default();
    for owner in 0..1_000 {
        flood(&mut queues, owner, 2);
        flood(&mut queues, 1_000_000, 2);
        queues.retain(&mut |call| call.0 == 1_000_000 || call.1 == 0);
        assert_eq!(queues.len(), 3);
        assert_eq!(owners(&mut queues, 9).len(), 3);
        assert!(queues.owners.len() <= 3, "{}", queues.owners.len());
    }
    flood(&mut queues, 1, 3);
    queues.retain(&mut |_| false);
    assert_eq!((queues.len(), next(&mut queues)), (0, None));
    flood(&mut queues, 1, 1);
    assert_eq!(owners(&mut queues, 2), [1]);
}

type ByCaller = FairQueues<u32, FairQueues<char, VecDeque<(u32, char)>>>;

fn flood_of(queues: &mut ByCaller, caller: u32, strategy: char, calls: u32) {
    (0..calls).for_each(|_| queues.push((caller, (strategy, ())), (caller, strategy)));
}

#[test]
fn turns_go_round_callers_first_and_within_a_caller_by_strategy() {
    let mut queues = ByCaller::default();
    flood_of(&mut queues, 1, 'a', 100);
    flood_of(&mut queues, 1, 'b', 3);
    flood_of(&mut queues, 2, 'a', 3);
    assert_eq!((queues.ahead_of(3), queues.ahead_of(2), queues.ahead_of(1)), (2, 8, 106));
    let taken: Vec<_> = (0..8).map_while(|_| next(&mut queues)).collect();
    let of_second = taken.iter().filter(|(caller, _)| *caller == 2).count();
    let of_b = taken.iter().filter(|call| **call == (1, 'b')).count();
    assert_eq!((of_second, of_b), (3, 3), "{taken:?}");
    assert_eq!(queues.len(), 98);
}

#[test]
fn within_a_caller_the_longest_strategy_makes_room() {
    let mut queues = ByCaller::default();
    flood_of(&mut queues, 1, 'a', 5);
    flood_of(&mut queues, 2, 'a', 2);
    assert_eq!(queues.displace((3, ('a', ()))), Some((1, 'a')));
    assert_eq!(queues.displace((1, ('b', ()))), Some((1, 'a')));
    assert_eq!(queues.displace((1, ('a', ()))), None);
    assert_eq!(queues.len(), 5);
}

#[test]
fn what_is_dropped_at_once_is_bounded() {
    let mut queues = ByCaller::default();
    flood_of(&mut queues, 1, 'a', 100);
    flood_of(&mut queues, 2, 'a', 1);
    let mut drops = 30;
    let mut keep = |call: (u32, char)| Some(call).filter(|(caller, _)| *caller == 2);
    assert_eq!(queues.pop(&mut drops, &mut keep), Some((2, 'a')), "its turn is first");
    assert_eq!(queues.pop(&mut drops, &mut keep), None);
    assert_eq!((drops, queues.len()), (0, 70));
    assert_eq!(next(&mut queues), Some((1, 'a')), "nothing is lost");
}
