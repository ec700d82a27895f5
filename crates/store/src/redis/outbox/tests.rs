//! Tests of the outbox: calls wait until they are popped, or it is closed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Wake};

use tokio::sync::oneshot::{self, Receiver};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::Namespace;
use weir_core::strategy::{FailurePolicy, Limit, Scope, Strategy};
use weir_units::Micros;

use super::*;
use crate::Verdicts;
use crate::redis::script_call::Redirection;

type OutboxAnswer = Receiver<Result<Verdicts, Fault>>;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn call() -> (ScriptCall<DecisionRequest>, OutboxAnswer) {
    let algorithm = Algorithm::bucket(1, Rate { count: 1, period: Micros::from_secs(1) }).unwrap();
    let limit = Limit { name: "one".into(), scope: Scope::default(), algorithm };
    let strategy = Arc::new(Strategy::new("one", vec![limit], true, FailurePolicy::Error).unwrap());
    let request = Arc::new(DecisionRequest::probe(&strategy, &Namespace::new("test").unwrap(), 1));
    let (caller, answer) = oneshot::channel();
    (ScriptCall::new(&request, Redirection::default(), caller), answer)
}

fn put(outbox: &Outbox) -> OutboxAnswer {
    let (call, answer) = call();
    assert!(outbox.put(call).is_ok());
    answer
}

#[test]
fn the_task_is_woken_once_for_several_calls() {
    let (outbox, wakes) = (Outbox::default(), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(outbox.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending());
    let _answers = [put(&outbox), put(&outbox)];
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(ready.poll(&mut context), Poll::Ready(Ok(()))));
    let mut taken = ReadyCalls::default();
    outbox.take(&mut taken);
    assert_eq!(taken.decisions.len(), 2);
    assert!(pin!(outbox.ready()).poll(&mut context).is_pending());
}

#[test]
fn calls_of_callers_that_are_gone_are_dropped_and_others_wait_for_room() {
    let outbox = Outbox::default();
    drop(put(&outbox));
    let answers: Vec<OutboxAnswer> = (0..MAX_KEYS).map(|_| put(&outbox)).collect();
    let mut taken = ReadyCalls::default();
    outbox.take(&mut taken);
    assert_eq!(taken.decisions.len(), MAX_KEYS - 1);
    outbox.take(&mut taken);
    assert_eq!(taken.decisions.len(), answers.len());
}

#[test]
fn a_closed_outbox_ends_its_calls_and_takes_no_more() {
    let (outbox, wakes) = (Outbox::default(), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(outbox.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending());
    outbox.close();
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(ready.poll(&mut context), Poll::Ready(Err(LinkClosed))));
    assert!(outbox.put(call().0).is_err());

    let outbox = Outbox::default();
    let mut answer = put(&outbox);
    outbox.close();
    assert_eq!(answer.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
}
