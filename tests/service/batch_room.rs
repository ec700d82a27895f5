//! Batches on a store that answers later: what is asked while it has room, and whose questions these are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::Registry;
use prost::Message as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::{Code, Status};
use weir_config::{Config, ServerConfig};
use weir_grpc::{BegunCall, BufferBudget, CurrentPeer, Peer, PeerAddress, Reply, with_peer};
use weir_node::limiter::Limiter;
use weir_node::service::{DecisionService, Templates};
use weir_node::telemetry::Metrics;
use weir_proto::v1::{
    ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowResult, should_allow_result,
};
use weir_store::{Answers, Decision, Store, StoreError, Verdicts};
use weir_testing::{SOON, eventually_async};
use weir_time::clock::monotonic;

use crate::support::grpc::{framed, request_within};
use crate::support::server::{ALLOWED, Server, ask_under, config};

/// Questions of batches that may wait for the store.
const ROOM: usize = 1024;

/// The largest batch.
const MOST: usize = 1000;

/// Answers nothing until it is opened. Knows the caller of each decision that it was asked for.
#[derive(Clone)]
struct Held {
    callers: Arc<Mutex<Vec<u32>>>,
    opened: watch::Receiver<bool>,
}

impl Store for Held {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            self.callers.lock().push(decision.caller);
            let mut opened = self.opened.clone();
            answers.later(async move {
                opened.wait_for(|opened| *opened).await.expect("the test opens it");
                Err(StoreError::Timeout)
            });
        }
    }
}

fn batch() -> ShouldAllowBatchRequest {
    let ask = |number| ask_under("open", "x", &format!("c{number}"));
    ShouldAllowBatchRequest { requests: (0..MOST).map(ask).collect() }
}

/// Before, all batches that had arrived were put into the queue of Redis, where they expired.
#[tokio::test]
async fn batches_ask_while_there_is_room_and_single_calls_beside_them() {
    let (open, opened) = watch::channel(false);
    let held = Held { callers: Arc::default(), opened };
    let store = held.clone();
    let server = ServerConfig { workers: 1, ..config().server };
    let server = Server::with_store(Config { server, ..config() }, move || store.clone());
    let asked = || held.callers.lock().len();
    let mut flooding = Vec::new();
    for _ in 0..2 {
        let client = server.client().await;
        for _ in 0..3 {
            let mut client = client.clone();
            flooding.push(tokio::spawn(async move { client.should_allow_batch(batch()).await }));
        }
    }
    eventually_async(SOON, "the room is used up", async || asked() > ROOM - 64).await;
    let mut stranger = server.client().await;
    let single = tokio::spawn(async move { stranger.should_allow(ask_under("open", "x", "bob")).await });
    let of_stranger = || {
        let callers = held.callers.lock();
        let last = callers.last().copied().unwrap_or_default();
        callers.iter().filter(|caller| **caller == last).count()
    };
    eventually_async(SOON, "the stranger is asked about", async || of_stranger() == 1).await;
    assert!(asked() <= ROOM + 1, "{} were asked, of 6,000", asked());
    open.send_replace(true);
    for answer in flooding {
        let results = answer.await.unwrap().unwrap().into_inner().results;
        assert_eq!(results.len(), MOST);
    }
    assert!(single.await.unwrap().unwrap().into_inner().degraded);
    assert_eq!(asked(), 6 * MOST + 1);
    let mut callers = std::mem::take(&mut *held.callers.lock());
    callers.sort_unstable();
    callers.dedup();
    assert_eq!(callers.len(), 3, "a number for each connection: {callers:?}");
    assert!(!callers.contains(&0));
}

/// Answers each decision 40 ms after it was asked, if it has time at all. Tells how many it was asked in time, and late.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>, Arc<AtomicUsize>);

impl Store for Slow {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            if decision.deadline.is_some_and(|deadline| *deadline <= monotonic()) {
                self.1.fetch_add(1, SeqCst);
                answers.fail(1, &StoreError::Timeout);
                continue;
            }
            self.0.fetch_add(1, SeqCst);
            answers.later(async {
                tokio::time::sleep(ANSWERED_AFTER).await;
                Ok(Verdicts { decisions: [ALLOWED].into(), ..Verdicts::default() })
            });
        }
    }

    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }
}

const ANSWERED_AFTER: Duration = Duration::from_millis(40);
const PATIENCE: Duration = Duration::from_millis(50);

fn service(store: Slow, budget: Option<BufferBudget>) -> Arc<DecisionService<Slow>> {
    let config = config();
    let metrics = Metrics::register(&Registry::new(), &config.rules).unwrap();
    let limiter = Limiter::new(Arc::new(config.rules), store, metrics.recorder());
    DecisionService::within(limiter, Arc::new(Templates::new(&config.messages)), 64 << 10, budget)
}

/// Begins a batch on this connection. Its answer: when, and how many of its results are degraded.
fn begin(
    service: &Arc<DecisionService<Slow>>,
    peer: &Peer,
    timeout: Option<Duration>,
) -> JoinHandle<Result<(Duration, usize), Status>> {
    let begun = monotonic();
    let bytes = framed(0, &batch().encode_to_vec());
    let mut call = request_within(&bytes, usize::MAX, 1 << 20);
    call.context.deadline = timeout.map(|timeout| begun + timeout);
    let from = CurrentPeer::from(peer);
    let BegunCall::Call(call) = with_peer(from, || service.should_allow_batch(call)) else {
        panic!("a call")
    };
    tokio::spawn(from.polls(async move {
        let Reply::Message(answer) = call.await? else { panic!("one message") };
        let results = ShouldAllowBatchResponse::decode(&answer[5..]).unwrap().results;
        assert_eq!(results.len(), MOST);
        let is_degraded = |result: &ShouldAllowResult| match result.result.as_ref().unwrap() {
            should_allow_result::Result::Response(response) => response.degraded,
            should_allow_result::Result::Error(error) => panic!("{error:?}"),
        };
        Ok((monotonic() - begun, results.iter().filter(|result| is_degraded(result)).count()))
    }))
}

/// Before, a batch whose caller sets no deadline waited for all batches before it.
#[tokio::test(start_paused = true)]
async fn what_is_not_asked_in_time_gets_its_policy() {
    let (store, peer) = (Slow::default(), Peer::default());
    let service = service(store.clone(), None);
    let batches: Vec<_> = (0..8).map(|_| begin(&service, &peer, None)).collect();
    let patient = begin(&service, &Peer::new(PeerAddress::Unknown), Some(Duration::from_secs(2)));
    let mut degraded = Vec::new();
    for batch in batches {
        let (took, of_batch) = batch.await.unwrap().unwrap();
        assert!(took <= PATIENCE + ANSWERED_AFTER + Duration::from_millis(5), "{took:?}");
        if of_batch == MOST {
            assert!(took <= PATIENCE + Duration::from_millis(5), "{took:?} for a policy");
        }
        degraded.push(of_batch);
    }
    assert_eq!(degraded[0], 0);
    assert_eq!(degraded[7], MOST, "{degraded:?}");
    let (took, of_patient) = patient.await.unwrap().unwrap();
    assert_eq!(of_patient, 0, "a caller's own deadline is its patience: {took:?}");
    let decided = 9 * MOST - degraded.iter().sum::<usize>();
    assert_eq!(store.0.load(SeqCst), decided);
    assert_eq!(store.1.load(SeqCst), 0, "what is late is not put to the store");
}

/// Before, messages that waited were in no budget.
#[tokio::test(start_paused = true)]
async fn messages_that_wait_are_in_the_budget() {
    let message = batch().encoded_len();
    let budget = BufferBudget::new(8 * message, 1);
    let service = service(Slow::default(), Some(budget.clone()));
    let (flooding, stranger) = (Peer::default(), Peer::new(PeerAddress::Unknown));
    let timeout = Some(Duration::from_secs(10));
    let flood: Vec<_> = (0..10).map(|_| begin(&service, &flooding, timeout)).collect();
    tokio::task::yield_now().await;
    let own = begin(&service, &stranger, timeout);
    tokio::task::yield_now().await;
    assert_eq!(budget.taken(), 7 * message, "three quarters, and the first of another caller");
    let mut refused = 0;
    for batch in flood {
        match batch.await.unwrap() {
            Ok((_, degraded)) => assert_eq!(degraded, 0),
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted);
                assert!(status.message().starts_with("max_buffered_bytes"), "{status}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 4);
    assert_eq!(own.await.unwrap().unwrap().1, 0);
    assert_eq!(budget.taken(), 0);
}
