//! Calls that arrive in one piece on one connection: they are read, decided and answered together, and none
//! of them may notice. Only `fast` answers calls together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use prost::Message as _;
use tonic::Code;
use weir_config::MemoryConfig;
use weir_proto::v1::{
    ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowRequest, ShouldAllowResponse,
    should_allow_result,
};
use weir_store::denials::DenialsShared;
use weir_store::memory::MemoryStore;
use weir_store::{Answers, Decision, Store, TOGETHER};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::Micros;

use crate::support::Counting;
use crate::support::frames::{Raw, StreamReply, call};
use crate::support::grpc::framed;
use crate::support::server::{BASE, Server, ask_under, config_on_fast};

const ASK: &str = "/weir.v1.RateLimitService/ShouldAllow";
const BATCH: &str = "/weir.v1.RateLimitService/ShouldAllowBatch";

/// A call of a method with a message, and what its head says beside.
type Asked<'a> = (&'a str, &'a [(&'a str, &'a str)], Vec<u8>);

/// The replies to these calls. The server reads all of them in one piece.
fn replies(server: &Server, calls: &[Asked<'_>]) -> Vec<StreamReply> {
    let mut raw = Raw::open(server.grpc);
    // Once it speaks, what follows is read at once.
    raw.settings();
    let streams = send(&raw, 1, calls);
    raw.replies(&streams)
}

/// Sends calls in one piece, and says what their streams are: this one and the next.
fn send(raw: &Raw, first: u32, calls: &[Asked<'_>]) -> Vec<u32> {
    let streams: Vec<u32> = (0..).map(|index| first + 2 * index).take(calls.len()).collect();
    let frames =
        streams.iter().zip(calls).map(|(stream, (path, head, body))| call(*stream, path, head, body));
    raw.send(&frames.collect::<Vec<_>>().concat());
    streams
}

fn one(strategy: &str, consumer: &str, cost: u64) -> Asked<'static> {
    let ask = ShouldAllowRequest { cost: Some(cost), ..ask_under(strategy, "r", consumer) };
    (ASK, &[], framed(0, &ask.encode_to_vec()))
}

/// Returns whether the call may go ahead, and its `remaining`.
fn answer(reply: &StreamReply) -> Result<(bool, Option<u64>), Code> {
    match reply.status {
        Some(0) => {
            let answer = ShouldAllowResponse::decode(&reply.data[5..]).unwrap();
            Ok((answer.allowed, answer.remaining))
        }
        Some(code) => Err(Code::from_i32(code.try_into().unwrap())),
        None => panic!("{reply:?}"),
    }
}

#[test]
fn one_that_fails_fails_alone() {
    let server = Server::start(config_on_fast());
    let calls = [
        one("burst", "bob", 3),
        (ASK, &[], framed(0, b"\x0a\x05abc")),
        one("burst", "bob", 1),
        one("nobody", "bob", 1),
        (ASK, &[("grpc-encoding", "zstd")], framed(1, b"")),
        one("burst", "", 1),
        (ASK, &[], vec![]),
        one("burst", "bob", 2),
        // Its deadline has passed, so it is not decided.
        (ASK, &[("grpc-timeout", "0n")], one("burst", "bob", 1).2),
        ("/weir.v1.RateLimitService/Nothing", &[], framed(0, b"")),
        one("burst", "bob", 1),
    ];
    let replies: Vec<_> = replies(&server, &calls).iter().map(answer).collect();
    let expected = [
        Ok((true, Some(2))),
        Err(Code::Internal),
        Ok((true, Some(1))),
        Err(Code::NotFound),
        Err(Code::Unimplemented),
        Err(Code::InvalidArgument),
        Err(Code::Unimplemented),
        Ok((false, Some(1))),
        Err(Code::DeadlineExceeded),
        Err(Code::Unimplemented),
        Ok((true, Some(0))),
    ];
    assert_eq!(replies, expected);
}

/// Also across the boundary of what is decided at a time, and around calls of another method.
#[test]
fn they_are_decided_in_the_order_in_which_they_arrive() {
    let server = Server::start(config_on_fast());
    let batch = ShouldAllowBatchRequest { requests: vec![ask_under("closed", "r", "carol")] };
    let batch = || (BATCH, &[][..], framed(0, &batch.encode_to_vec()));
    let mut calls: Vec<_> =
        (0..2 * TOGETHER + 3).map(|index| one("burst", "bob", u64::from(index % 9 == 0))).collect();
    calls.extend([one("closed", "carol", 2), batch(), one("closed", "carol", 2), batch()]);
    let replies = replies(&server, &calls);
    let (singles, mixed) = replies.split_at(2 * TOGETHER + 3);
    let remaining = |index: usize| 5 - (index / 9 + 1) as u64;
    for (index, one) in singles.iter().enumerate() {
        assert_eq!(answer(one), Ok((true, Some(remaining(index)))), "call {index}");
    }
    let in_batch = |reply: &StreamReply| {
        let results = ShouldAllowBatchResponse::decode(&reply.data[5..]).unwrap().results;
        match &results[0].result {
            Some(should_allow_result::Result::Response(answer)) => (answer.allowed, answer.remaining),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answer(&mixed[0]), Ok((true, Some(3))));
    assert_eq!(in_batch(&mixed[1]), (true, Some(2)));
    assert_eq!(answer(&mixed[2]), Ok((true, Some(0))));
    assert_eq!(in_batch(&mixed[3]), (false, Some(0)));
}

#[test]
fn each_is_counted() {
    let server = Server::start(config_on_fast());
    let calls: Vec<_> = (0..20).map(|index| one("burst", ["bob", "carol"][index % 2], 1)).collect();
    let malformed = (ASK, &[][..], framed(0, b"\x0a\x05abc"));
    replies(&server, &[&calls[..], &[malformed, one("nobody", "bob", 1)]].concat());
    let (_, page) = server.get("/metrics");
    for line in [
        r#"weir_decisions_total{strategy="burst",outcome="allowed"} 10"#,
        r#"weir_decisions_total{strategy="burst",outcome="denied"} 10"#,
        r#"weir_rejected_requests_total{reason="unknown"} 1"#,
        r#"weir_store_calls_total{result="ok"} 20"#,
        "weir_decision_duration_seconds_count{method=\"ShouldAllow\"} 20",
        "weir_store_call_duration_seconds_count 20",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
    }
}

/// Denials that are known are answered together; what arrives with them is asked for itself.
#[test]
fn what_is_known_is_answered_beside_what_is_not() {
    let clock = Clock::Manual(ManualClock::at(BASE));
    let asked = Arc::new(AtomicUsize::new(0));
    let store = Counting(MemoryStore::new(&MemoryConfig::default(), clock.clone()), Arc::clone(&asked));
    let denials = DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&clock));
    let server = Server::with_store(config_on_fast(), move || denials.before(store.clone()));
    let mut raw = Raw::open(server.grpc);
    raw.settings();
    let (mut first, mut decoder) = (1, fluke_hpack::Decoder::new());
    let mut ask = |calls: &[Asked<'_>]| {
        let streams = send(&raw, first, calls);
        first += 2 * calls.len() as u32;
        raw.replies_with(&mut decoder, &streams).iter().map(answer).collect::<Vec<_>>()
    };
    assert_eq!(ask(&[one("burst", "bob", 3)]), [Ok((true, Some(2)))]);
    for _ in 0..2 {
        assert_eq!(ask(&[one("burst", "bob", 3)]), [Ok((false, Some(2)))]);
    }
    assert_eq!(asked.swap(0, SeqCst), 2);
    let mut calls = vec![
        one("burst", "bob", 3),
        one("burst", "carol", 3),
        (ASK, &[], framed(0, b"\x0a\x05abc")),
        one("unknown", "bob", 3),
    ];
    calls.extend((0..TOGETHER).map(|_| one("burst", "bob", 3)));
    calls.push(one("burst", "carol", 3));
    let mut expected =
        vec![Ok((false, Some(2))), Ok((true, Some(2))), Err(Code::Internal), Err(Code::NotFound)];
    expected.extend((0..=TOGETHER).map(|_| Ok((false, Some(2)))));
    assert_eq!(ask(&calls), expected);
    assert_eq!(asked.load(SeqCst), 2, "of what was not known");
}

/// The memory store, but for one consumer.
#[derive(Clone)]
struct Breaks(MemoryStore);

impl Store for Breaks {
    const AT_ONCE: bool = true;

    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let is_mallory = |decision: &Decision<'_>| decision.subject.consumer == "mallory";
        assert!(!decisions.iter().any(is_mallory), "a test of what a panic ends");
        self.0.decide(decisions, answers);
    }
}

/// Only the calls that were being decided with the one that breaks end.
#[test]
fn a_panic_is_the_end_of_no_connection() {
    const INTERNAL_ERROR: u32 = 2;
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(ManualClock::at(BASE)));
    let server = Server::with_store(config_on_fast(), move || Breaks(store.clone()));
    let mut calls: Vec<_> = (0..TOGETHER).map(|_| one("burst", "bob", 0)).collect();
    calls.extend([one("burst", "bob", 1), one("burst", "mallory", 1)]);
    let batch = ShouldAllowBatchRequest { requests: vec![ask_under("burst", "r", "carol")] };
    calls.extend([(BATCH, &[][..], framed(0, &batch.encode_to_vec())), one("burst", "carol", 1)]);
    let replies = replies(&server, &calls);
    assert!(replies[..TOGETHER].iter().all(|one| answer(one) == Ok((true, Some(5)))), "{replies:?}");
    assert_eq!(replies[TOGETHER].reset, Some(INTERNAL_ERROR));
    assert_eq!(replies[TOGETHER + 1].reset, Some(INTERNAL_ERROR));
    assert_eq!(replies[TOGETHER + 2].status, Some(0));
    assert_eq!(answer(&replies[TOGETHER + 3]), Ok((true, Some(3))));
}
