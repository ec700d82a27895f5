//! Tests of the outbox: calls wait until they are popped, or it is closed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Wake};
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::Namespace;
use weir_core::strategy::{FailurePolicy, Limit, Scope, Strategy};
use weir_time::clock::monotonic;
use weir_units::Micros;

use super::flight::MAX_IN_FLIGHT;
use super::*;
use crate::Verdicts;
use crate::redis::script_call::{CallTime, Redirection};

const DEADLINE: Duration = Duration::from_millis(50);

type OutboxAnswer = Receiver<Result<Verdicts, Fault>>;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn strategy() -> Arc<Strategy> {
    let algorithm = Algorithm::bucket(1, Rate { count: 1, period: Micros::from_secs(1) }).unwrap();
    let limit = Limit { name: "one".into(), scope: Scope::default(), algorithm };
    Arc::new(Strategy::new("one", vec![limit], true, FailurePolicy::Error).unwrap())
}

fn call_of(strategy: &Arc<Strategy>, deadline: Instant) -> (ScriptCall<DecisionRequest>, OutboxAnswer) {
    let request = Arc::new(DecisionRequest::probe(strategy, &Namespace::new("test").unwrap(), 1));
    let (caller, answer) = oneshot::channel();
    (
        ScriptCall::new(&request, Redirection::default(), CallTime { begun: monotonic(), deadline }, caller),
        answer,
    )
}

fn put_by(outbox: &Outbox, strategy: &Arc<Strategy>, caller: u32) -> OutboxAnswer {
    let namespace = Namespace::new("test").unwrap();
    let request = Arc::new(DecisionRequest::probe(strategy, &namespace, 1).of_caller(caller));
    let (reply, answer) = oneshot::channel();
    let time = CallTime { begun: monotonic(), deadline: later() };
    assert!(outbox.put(ScriptCall::new(&request, Redirection::default(), time, reply)).is_ok());
    answer
}

fn put_of(outbox: &Outbox, strategy: &Arc<Strategy>) -> OutboxAnswer {
    let (call, answer) = call_of(strategy, later());
    assert!(outbox.put(call).is_ok());
    answer
}

fn put(outbox: &Outbox) -> OutboxAnswer {
    put_of(outbox, &strategy())
}

fn later() -> Instant {
    monotonic() + Duration::from_secs(3600)
}

fn leave(outbox: &Arc<Outbox>) -> Vec<(ScriptCall<DecisionRequest>, Option<Flying>)> {
    let mut taken = ReadyCalls::default();
    outbox.take(&mut taken, monotonic());
    let flying = |call| (DecisionRequest::fly(outbox, &call, monotonic()), call);
    taken.decisions.into_iter().map(flying).map(|(flying, call)| (call, flying)).collect()
}

#[test]
fn the_task_is_woken_once_for_several_calls() {
    let (outbox, wakes) = (Outbox::new(DEADLINE, Duration::ZERO), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(outbox.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending());
    let _answers = [put(&outbox), put(&outbox)];
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(ready.poll(&mut context), Poll::Ready(Ok(()))));
    let mut taken = ReadyCalls::default();
    outbox.take(&mut taken, monotonic());
    assert_eq!(taken.decisions.len(), 2);
    assert!(pin!(outbox.ready()).poll(&mut context).is_pending());
}

#[test]
fn calls_of_callers_that_are_gone_are_dropped_and_others_wait_for_what_is_in_flight() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    drop(put(&outbox));
    let _answers: Vec<OutboxAnswer> = (0..=MAX_IN_FLIGHT).map(|_| put(&outbox)).collect();
    let mut sent = leave(&outbox);
    assert_eq!(sent.len(), MAX_IN_FLIGHT);
    assert!(leave(&outbox).is_empty());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(outbox.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending(), "there is no room");
    sent.pop();
    assert_eq!(wakes.0.load(Relaxed), 1, "an answer makes room");
    assert!(matches!(ready.poll(&mut context), Poll::Ready(Ok(()))));
    assert_eq!(leave(&outbox).len(), 1);
}

/// Counts turns: beside a flood, a decision waits for what is in flight, and leaves with the next call.
#[test]
fn a_flood_holds_others_up_for_what_is_in_flight() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let (flood, second, other) = (strategy(), strategy(), strategy());
    let mut answers: Vec<OutboxAnswer> = (0..4_000).map(|_| put_of(&outbox, &flood)).collect();
    let mut sent = leave(&outbox);
    answers.push(put_of(&outbox, &other));
    // One answer, and so room for one decision.
    sent.pop();
    let next = leave(&outbox);
    assert_eq!(next.len(), 1);
    assert_eq!(of(&next, &other), 1, "3,488 of the flood wait");
    // Two floods share a call.
    answers.extend((0..1_000).map(|_| put_of(&outbox, &second)));
    drop((sent, next));
    let next = leave(&outbox);
    assert_eq!((of(&next, &flood), of(&next, &second)), (MAX_IN_FLIGHT / 2, MAX_IN_FLIGHT / 2));
}

/// Counts turns: of one strategy, a caller waits for no flood of another.
#[test]
fn a_flood_of_one_caller_holds_no_other_up() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let strategy = strategy();
    let mut answers: Vec<OutboxAnswer> = (0..4_000).map(|_| put_by(&outbox, &strategy, 1)).collect();
    let mut sent = leave(&outbox);
    answers.push(put_by(&outbox, &strategy, 2));
    sent.pop();
    let next = leave(&outbox);
    let callers: Vec<u32> =
        next.iter().filter_map(|(call, _)| Some(call.first()?.place_in_turns().0)).collect();
    assert_eq!(callers, [2], "3,488 of the flood wait");
}

/// Calls in flight have a bound by cost, beside that of the number.
#[test]
fn heavy_decisions_leave_a_few_at_a_time() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let heavy = heavy();
    let each = crate::cost::of(heavy.algorithms().iter(), weir_core::algorithm::Op::Charge);
    let _answers: Vec<OutboxAnswer> = (0..1_000).map(|_| put_of(&outbox, &heavy)).collect();
    let sent = leave(&outbox);
    let most = 2 * CALL_COST;
    assert!((most / each..=most / each + 1).contains(&(sent.len() as u64)), "{} of {each} ns", sent.len());
    assert!(leave(&outbox).is_empty());
    let mut calls: Vec<_> = sent.into_iter().map(|(call, flying)| (call, drop(flying)).0).collect();
    ScriptCall::group(&mut calls, crate::redis::script_call::CallSlots::Any, CALL_COST);
    assert!(calls.len() >= 2 && calls.iter().all(|call| call.cost() <= CALL_COST), "{}", calls.len());
}

/// A window of as many parts as there may be.
fn heavy() -> Arc<Strategy> {
    let algorithm = Algorithm::bucketed_window(100, Micros::from_secs(3600), 3600, true).unwrap();
    let limit = Limit { name: "one".into(), scope: Scope::default(), algorithm };
    Arc::new(Strategy::new("one", vec![limit], true, FailurePolicy::Error).unwrap())
}

/// Decisions that cannot be sent in time are refused at the door, by those ahead of them: that is more for the flood.
#[test]
fn who_comes_too_late_is_not_queued() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let strategy = strategy();
    let _answers: Vec<OutboxAnswer> = (0..4_000).map(|_| put_by(&outbox, &strategy, 1)).collect();
    let sent = leave(&outbox);
    assert!(outbox.is_in_time(1, DEADLINE), "nothing has been measured");
    let now = monotonic();
    let landed = |ms: u64| {
        let now = now + Duration::from_millis(ms);
        let call = LandedCall {
            decisions: 500,
            cost: CALL_COST,
            queued: now - Duration::from_millis(40),
            sent: now - Duration::from_millis(10),
            is_answered: true,
        };
        outbox.0.lock().pace.landed(call, now);
    };
    // 50 in a millisecond.
    (0..50).for_each(|call| landed(10 * call));
    assert!(!outbox.is_in_time(1, DEADLINE), "4,000 are ahead: 80 ms");
    assert!(outbox.is_in_time(1, 3 * DEADLINE));
    assert!(outbox.is_in_time(2, DEADLINE), "one of the flood is ahead");
    assert!(outbox.is_in_time(2, DEADLINE / 50), "a caller with nothing in the queue is not refused");
    drop(sent);
}

fn of(sent: &[(ScriptCall<DecisionRequest>, Option<Flying>)], strategy: &Arc<Strategy>) -> usize {
    let owner = Arc::as_ptr(strategy.owner()) as usize;
    sent.iter()
        .filter(|(call, _)| call.first().is_some_and(|first| first.place_in_turns().1.0 == owner))
        .count()
}

#[test]
fn who_is_out_of_time_takes_no_turn() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let (flood, other) = (strategy(), strategy());
    let _answers: Vec<OutboxAnswer> = (0..MAX_IN_FLIGHT).map(|_| put_of(&outbox, &flood)).collect();
    let mut sent = leave(&outbox);
    let (late, mut late_answer) = call_of(&other, monotonic());
    assert!(outbox.put(late).is_ok());
    let _answer = put_of(&outbox, &other);
    sent.pop();
    assert_eq!(of(&leave(&outbox), &other), 1);
    assert!(matches!(late_answer.try_recv(), Ok(Err(Fault::Failed(StoreError::Timeout)))));
}

/// While there is no connection, nobody waits for what an earlier one has not answered.
#[test]
fn who_is_refused_does_not_wait_for_room() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let _answers: Vec<OutboxAnswer> = (0..MAX_IN_FLIGHT).map(|_| put(&outbox)).collect();
    let _sent = leave(&outbox);
    outbox.set_refusing(true);
    let _answer = put(&outbox);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(outbox.ready()).poll(&mut context), Poll::Ready(Ok(()))));
    let mut taken = ReadyCalls::default();
    outbox.take_all(&mut taken);
    assert_eq!(taken.decisions.len(), 1);
    outbox.set_refusing(false);
    let _answer = put(&outbox);
    assert!(pin!(outbox.ready()).poll(&mut context).is_pending());
}

/// Callers that give up while nothing can leave.
#[test]
fn calls_without_callers_are_bounded() {
    let outbox = Arc::new(Outbox::new(DEADLINE, Duration::ZERO));
    let _answers: Vec<OutboxAnswer> = (0..MAX_IN_FLIGHT).map(|_| put(&outbox)).collect();
    let _sent = leave(&outbox);
    let flood = strategy();
    for _ in 0..20_000 {
        drop(put_of(&outbox, &flood));
        let waiting = outbox.0.lock();
        assert!(waiting.decisions.len() + waiting.held_up.len() <= 2 * MAX_IN_FLIGHT);
    }
}

#[test]
fn a_closed_outbox_ends_its_calls_and_takes_no_more() {
    let (outbox, wakes) = (Outbox::new(DEADLINE, Duration::ZERO), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(outbox.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending());
    outbox.close();
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(ready.poll(&mut context), Poll::Ready(Err(LinkClosed))));
    assert!(outbox.put(call_of(&strategy(), later()).0).is_err());

    let outbox = Outbox::new(DEADLINE, Duration::ZERO);
    let mut answer = put(&outbox);
    outbox.close();
    assert_eq!(answer.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
}

/// The time is injected: `gather` decides by `now`, and nothing here waits.
#[test]
fn decisions_that_find_nothing_in_flight_gather_until_one_has_no_time_for_it() {
    let gather = Duration::from_millis(1);
    let (outbox, wakes) = (Arc::new(Outbox::new(DEADLINE, gather)), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut is_ready = || pin!(outbox.ready()).poll(&mut context).is_ready();
    // The first call of a link is put into the queue of its caller, and so leaves at once.
    let begin = put(&outbox);
    assert_eq!((outbox.gather(monotonic()), leave(&outbox).len()), (None, 1));
    drop(begin);
    let now = monotonic();
    let first = put(&outbox);
    assert!(is_ready());
    let until = outbox.gather(now).expect("it waits");
    assert!(until >= now + gather);
    assert!(!is_ready());
    let second = put(&outbox);
    assert!(!is_ready() && wakes.0.load(Relaxed) == 0, "it waits, too");
    let (hasty, _answer) = call_of(&strategy(), until);
    assert!(outbox.put(hasty).is_ok());
    assert!(is_ready() && wakes.0.load(Relaxed) == 1);
    assert_eq!(outbox.gather(now), None);
    let sent = leave(&outbox);
    assert_eq!(sent.len(), 3);
    let _third = put(&outbox);
    assert_eq!(outbox.gather(now), None, "others are in flight");
    drop((sent, first, second));
    assert!(outbox.gather(now).is_some(), "nothing is any more");
    assert_eq!(leave(&outbox).len(), 1, "as they do when the time is over");
    outbox.set_refusing(true);
    let _refused = put(&outbox);
    assert!(is_ready());
}
