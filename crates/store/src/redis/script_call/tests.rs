//! Tests of batching: which requests share a call.

use tokio::sync::oneshot;

use super::*;

fn later() -> CallTime {
    let begun = monotonic();
    CallTime { begun, deadline: begun + Duration::from_secs(3600) }
}

/// A request of a kind, with a number; a call has room for three.
struct Numbered {
    number: usize,
    kind: char,
    target: ScriptTarget<u8>,
}

impl ScriptRequest for Numbered {
    type Answer = usize;
    type Form = u8;

    fn target(&self) -> &ScriptTarget<u8> {
        &self.target
    }

    fn cost(&self) -> ScriptCost {
        1
    }

    fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }

    fn fits(&self, others: &[Arc<Self>]) -> bool {
        others.len() < 3
    }

    fn deadline(_: &LinkContext) -> Duration {
        Duration::ZERO
    }

    fn script(_: u8, _: &[Arc<Self>]) -> &'static Script {
        panic!("nothing is sent")
    }

    fn command(_: ScriptName<'_>, _: &[Arc<Self>], _: CallTerms) -> Cmd {
        panic!("nothing is sent")
    }

    fn decode(requests: &[Arc<Self>], _: Value) -> Result<Replies<usize>, StoreError> {
        Ok(requests.iter().map(|request| Ok(request.number)).collect())
    }
}

/// Requests as `(kind, form, slot)`, joined: the numbers of those in each call, and whether it spans slots.
fn grouped(
    requests: &[(char, u8, u16)],
    how: impl Fn(usize) -> Redirection,
    slots: CallSlots,
) -> Vec<(Vec<usize>, bool)> {
    let mut calls = Vec::new();
    for (number, &(kind, form, slot)) in requests.iter().enumerate() {
        let request = Arc::new(Numbered { number, kind, target: ScriptTarget { slot, form } });
        calls.push(ScriptCall::new(&request, how(number), later(), oneshot::channel().0));
    }
    ScriptCall::group(&mut calls, slots, 1_000);
    let numbers = |call: &ScriptCall<Numbered>| call.requests.iter().map(|it| it.number).collect();
    calls.iter().map(|call| (numbers(call), call.spans)).collect()
}

fn plainly(_: usize) -> Redirection {
    Redirection::default()
}

#[test]
fn those_of_a_kind_and_form_share_a_call_and_keep_their_order() {
    let requests = [('a', 0, 0), ('b', 0, 0), ('a', 1, 0), ('a', 0, 0), ('b', 0, 0)];
    let calls = grouped(&requests, plainly, CallSlots::Any);
    assert_eq!(calls, [(vec![0, 3], false), (vec![1, 4], false), (vec![2], false)]);
}

#[test]
fn what_came_later_is_in_no_earlier_call_that_is_not_full() {
    let calls = grouped(&[('a', 0, 0); 7], plainly, CallSlots::Any);
    assert_eq!(calls, [(vec![0, 1, 2], false), (vec![3, 4, 5], false), (vec![6], false)]);
}

#[test]
fn slots_share_a_call_where_the_node_allows_it() {
    let requests = [('a', 0, 7), ('a', 0, 3), ('a', 0, 7)];
    let apart = grouped(&requests, plainly, CallSlots::Apart);
    assert_eq!(apart, [(vec![1], false), (vec![0, 2], false)]);
    let together = grouped(&requests, plainly, CallSlots::Together);
    assert_eq!(together, [(vec![0, 1, 2], true)]);
    let same = grouped(&[('a', 0, 7), ('a', 0, 7)], plainly, CallSlots::Together);
    assert_eq!(same, [(vec![0, 1], false)]);
}

#[test]
fn a_redirected_request_shares_a_call_of_its_slot_only() {
    let alone = |number| Redirection { alone: number > 0, ..Redirection::default() };
    let calls = grouped(&[('a', 0, 7), ('a', 0, 7), ('a', 0, 3), ('a', 0, 7)], alone, CallSlots::Together);
    assert_eq!(calls, [(vec![0], false), (vec![2], false), (vec![1, 3], false)]);
    let asking = |number| Redirection { asking: number == 1, ..Redirection::default() };
    let calls = grouped(&[('a', 0, 7), ('a', 0, 7), ('a', 0, 7)], asking, CallSlots::Apart);
    assert_eq!(calls, [(vec![0, 2], false), (vec![1], false)]);
}

#[test]
fn a_call_is_filled_up_to_a_cost() {
    let request =
        |number| Arc::new(Numbered { number, kind: 'a', target: ScriptTarget { slot: 0, form: 0 } });
    let call =
        |number| ScriptCall::new(&request(number), Redirection::default(), later(), oneshot::channel().0);
    let mut calls: Vec<_> = (0..5).map(call).collect();
    ScriptCall::group(&mut calls, CallSlots::Any, 2);
    let costs: Vec<_> = calls.iter().map(|call| (call.len(), call.cost())).collect();
    assert_eq!(costs, [(2, 2), (2, 2), (1, 1)]);
}

#[test]
fn a_process_that_did_not_run_says_nothing_of_the_node() {
    let (timeout, due) = (Duration::from_millis(50), monotonic());
    let woken = |ms| timed_out(timeout, is_stalled(due, due + Duration::from_millis(ms)));
    let failed = Fate { failure: Some("no answer within 50ms".into()), ..Fate::default() };
    assert_eq!([woken(0), woken(9)], [failed.clone(), failed]);
    assert_eq!(woken(10), Fate { is_stalled: true, ..Fate::default() });
}
