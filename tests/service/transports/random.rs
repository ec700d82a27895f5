//! Any calls, one after the other: the same answers on both transports, and in the end the same is charged.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use weir_grpc::PREFIX;
use weir_proto::v1::ShouldAllowRequest;

use super::any_call::{CONSUMERS, RESOURCES, any_call};
use super::client::{Call, Ends, Outcome};
use super::{BATCH, METHODS, RATE_LIMIT, REFLECTION, SHOULD_ALLOW, STREAM, on_both, peek, unary};

#[test]
fn any_calls_have_the_same_answers_and_effects() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let calls = prop::collection::vec(any_call(), 1..24);
    let result = runner.run(&calls, |calls| {
        let [fast, tonic] = runtime.block_on(on_both(&[calls.clone(), what_was_charged()].concat()));
        let all = calls.iter().cloned().chain(what_was_charged());
        for (call, (fast, tonic)) in all.zip(fast.iter().zip(&tonic)) {
            let (left, right) = (comparable(&call, fast), comparable(&call, tonic));
            prop_assert_eq!(left, right, "{:?}\nfast: {:?}\ntonic: {:?}", call, fast, tonic);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Questions that change nothing, about everything that calls may have been about.
fn what_was_charged() -> Vec<Call> {
    let mut calls = Vec::new();
    for resource in RESOURCES {
        for consumer in CONSUMERS {
            for strategy in ["", "burst", "everybody"] {
                let strategy = strategy.to_owned();
                calls.push(unary(SHOULD_ALLOW, &ShouldAllowRequest { strategy, ..peek(resource, consumer) }));
            }
        }
    }
    calls
}

/// Returns the part of an outcome that both transports must agree on. The words of a fault that a transport finds are
/// its own.
fn comparable(call: &Call, outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    if !is_right(call) {
        outcome.message = None;
    }
    // How many answers of a stream share a message is a matter of time. The messages are lists: their bytes, one
    // after the other, are one list.
    if call.path == STREAM || call.path == REFLECTION {
        outcome.body = messages(&outcome.body).concat();
    }
    // A router that knows no such method knows nothing of its encodings.
    if !METHODS.contains(&call.path.as_str()) {
        outcome.metadata.remove("grpc-accept-encoding");
    }
    // Rows of the table of differences.
    let one_message = [SHOULD_ALLOW, BATCH, RATE_LIMIT].contains(&call.path.as_str());
    if one_message && call.body.is_empty() && matches!(outcome.code, Some(12 | 13)) {
        outcome.code = None;
    }
    let behind =
        call.body.len() - messages(&call.body).iter().map(|message| message.len() + PREFIX).sum::<usize>();
    if call.path == STREAM && behind == PREFIX && matches!(outcome.code, Some(0 | 13)) {
        outcome.code = None;
    }
    outcome
}

/// Returns true if a transport has no fault to find: whole messages of a size that all methods take.
fn is_right(call: &Call) -> bool {
    let encoded = call.headers.iter().any(|(name, value)| name == "grpc-encoding" && value != "identity");
    let whole: usize = messages(&call.body).iter().map(|message| message.len() + PREFIX).sum();
    let count = messages(&call.body).len();
    let flagged = call.body.first().is_some_and(|flag| *flag != 0);
    let sized = call.body.len() < 1 << 16;
    let counted = call.path == STREAM || count == 1;
    !encoded
        && whole == call.body.len()
        && !flagged
        && sized
        && counted
        && !matches!(call.ends, Ends::Cancelled(_))
}

/// The messages of a body as far as they are whole, without their prefixes.
fn messages(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((&[_, length @ ..], rest)) = body.split_first_chunk::<PREFIX>() {
        let length = u32::from_be_bytes(length) as usize;
        let Some(message) = rest.get(..length) else { break };
        messages.push(message.to_vec());
        body = &rest[length..];
    }
    messages
}
