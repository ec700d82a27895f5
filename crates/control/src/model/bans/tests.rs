use super::*;

fn ban(member: &str, until: u64) -> Ban {
    Ban { member: member.into(), until }
}

fn members(state: &BanState) -> Vec<String> {
    state.bans().iter().map(|ban| format!("{}-{}", ban.member, ban.until)).collect()
}

#[test]
fn the_later_end_stays() {
    let mut state = BanState::default();
    assert_eq!(state.add(10, 1, &[ban("a", 50), ban("b", 20), ban("c", 10), ban("a", 40)]), 2);
    assert_eq!(state.add(11, 2, &[ban("a", 45)]), 0);
    assert_eq!(state.position(), ControlPosition { version: 10, change: 1 }, "nothing has changed");
    assert_eq!(state.add(12, 3, &[ban("a", 60)]), 1);
    assert_eq!(members(&state), ["b-20", "a-60"]);
    assert_eq!((state.bans().until("a", 59), state.bans().until("a", 60)), (Some(60), None));
    state.add(20, 4, &[ban("c", 99)]);
    assert_eq!(members(&state), ["a-60", "c-99"], "what has ended is dropped");
}

#[test]
fn a_ban_is_lifted_once() {
    let mut state = BanState::default();
    state.add(10, 1, &[ban("a", 50)]);
    assert!(!state.lift(11, 2, "b") && state.lift(11, 3, "a") && !state.lift(11, 4, "a"));
    let expected = BanChanges::Since {
        records: vec![ban("a", 0)],
        position: ControlPosition { version: 11, change: 3 },
    };
    assert_eq!(state.bans_since(ControlPosition { version: 10, change: 1 }), expected);
    let everything = BanChanges::Everything { position: state.position() };
    assert_eq!(state.bans_since(ControlPosition { version: 10, change: 2 }), everything);
    let mut node: BanSet = [ban("a", 50)].into_iter().collect();
    node.apply(ban("a", 0));
    assert_eq!(&node, state.bans());
}

#[test]
fn bans_are_bounded() {
    let mut state = BanState::default();
    let many: Vec<Ban> =
        (0..MAX_BANS as u64 + 2).map(|number| ban(&number.to_string(), 100 + number)).collect();
    assert_eq!(state.add(1, 1, &many), MAX_BANS + 2);
    assert_eq!((state.bans().iter().count(), state.bans().until("1", 1)), (MAX_BANS, None));
    assert!(state.bans().until("2", 1).is_some(), "the one that ends soonest leaves");
    let long = "m".repeat(MAX_BAN_MEMBER + 1);
    assert_eq!(state.add(1, 2, &[ban("", 50), ban(&long, 50), ban("a", MAX_CONTROL_VERSION + 1)]), 0);
}
