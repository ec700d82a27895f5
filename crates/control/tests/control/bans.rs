//! Bans: the same answers from Redis as from the state machine.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use weir_config::Topology;
use weir_control::model::{Ban, BanSet, BanState, ControlPosition, MAX_BANS};
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{START, link};
use crate::support::random;

#[derive(Debug, Clone)]
enum RandomOp {
    /// Members, and when their bans end, from now.
    Add(Vec<(usize, i64)>),
    Lift(usize),
    /// From which of the positions seen so far, counted from the last.
    Poll(usize),
    ReadAll,
}

const MEMBERS: [&str; 4] = ["each\nbob", "é{x}", "a", "100"];

#[test]
fn redis() {
    tell_stories(Topology::Single, 2);
}

#[test]
fn cluster() {
    tell_stories(Topology::Cluster, 16);
}

fn tell_stories(topology: Topology, share: u32) {
    let mut config = random::config();
    config.cases /= share;
    config.source_file = Some(file!());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = ManualClock::at(Micros(START));
    let mut runner = TestRunner::new(config);
    let step = (prop_oneof![8 => 0..500_i64, 1 => -300..0_i64], op());
    let story = prop::collection::vec(step, 1..50);
    let outcome = runner.run(&story, |steps| runtime.block_on(tell(topology, &clock, &steps)));
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
}

async fn tell(
    topology: Topology,
    clock: &ManualClock,
    steps: &[(i64, RandomOp)],
) -> Result<(), TestCaseError> {
    let mut link = link(topology, clock).await;
    let (mut state, mut now, mut seen) = (BanState::default(), START, vec![ControlPosition::UNSETTLED]);
    let (mut node, mut at) = (BanSet::default(), ControlPosition::NONE);
    for (number, (step, op)) in steps.iter().enumerate() {
        now = now.saturating_add_signed(*step);
        clock.set(Micros(now));
        let change = (number as u64 + 1).rotate_right(9);
        match op {
            RandomOp::Add(bans) => {
                let ban = |&(member, ends): &(usize, i64)| Ban {
                    member: MEMBERS[member].into(),
                    until: now.saturating_add_signed(ends),
                };
                let bans: Vec<Ban> = bans.iter().map(ban).collect();
                let there = link.add_bans(change, &bans).await.unwrap();
                prop_assert_eq!(there, state.add(now, change, &bans), "add {}", number);
            }
            RandomOp::Lift(member) => {
                let there = link.lift_ban(change, MEMBERS[*member]).await.unwrap();
                prop_assert_eq!(there, state.lift(now, change, MEMBERS[*member]), "lift {}", number);
            }
            RandomOp::Poll(back) => {
                let position = seen[seen.len() - 1 - back % seen.len()];
                let there = link.bans_since(position).await.unwrap();
                prop_assert_eq!(there, state.bans_since(position), "poll {}", number);
            }
            RandomOp::ReadAll => {
                let (there, position) = link.read_bans().await.unwrap();
                prop_assert_eq!(in_force(&there, now), in_force(state.bans(), now));
                prop_assert_eq!(position, state.position());
            }
        }
        seen.push(state.position());
    }
    link.sync_bans(&mut node, &mut at).await.unwrap();
    prop_assert_eq!(in_force(&node, now), in_force(state.bans(), now));
    prop_assert_eq!(at, state.position());
    Ok(())
}

fn in_force(bans: &BanSet, now: u64) -> Vec<Ban> {
    bans.iter().filter(|ban| ban.until > now).collect()
}

fn op() -> impl Strategy<Value = RandomOp> {
    let ban = (0..MEMBERS.len(), -50..800_i64);
    prop_oneof![
        4 => prop::collection::vec(ban, 1..5).prop_map(RandomOp::Add),
        2 => (0..MEMBERS.len()).prop_map(RandomOp::Lift),
        2 => (0..6_usize).prop_map(RandomOp::Poll),
        1 => Just(RandomOp::ReadAll),
    ]
}

/// The bans that end soonest leave. They change no position of records.
#[tokio::test]
async fn they_are_bounded() {
    let clock = ManualClock::at(Micros(START));
    let mut link = link(Topology::Single, &clock).await;
    let ban = |number: u64| Ban { member: number.to_string().into(), until: START + 1_000 + number };
    let many: Vec<Ban> = (0..MAX_BANS as u64 + 2).rev().map(ban).collect();
    assert_eq!(link.add_bans(1, &many).await, Ok(MAX_BANS + 2));
    let (mut bans, mut position) = (BanSet::default(), ControlPosition::NONE);
    assert_eq!(link.sync_bans(&mut bans, &mut position).await, Ok(true));
    assert_eq!(bans.iter().count(), MAX_BANS);
    assert_eq!((bans.until("1", START), bans.until("2", START)), (None, Some(START + 1_002)));
    assert_eq!(link.read_all().await, Ok((Vec::new(), ControlPosition::NONE)));
    clock.set(Micros(START + 2_000));
    assert_eq!(link.lift_ban(2, "100").await, Ok(false), "it has ended");
    assert_eq!(link.lift_ban(3, "5000").await, Ok(true));
    assert_eq!(link.sync_bans(&mut bans, &mut position).await, Ok(true));
    assert_eq!(bans.until("5000", START), None);
}
