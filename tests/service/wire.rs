//! gRPC and protobuf as they stand on the wire: what we read and write ourselves, compared with the
//! generated types, whole, in pieces and damaged.

use std::sync::Arc;

use prometheus::Registry;
use proptest::prelude::*;
use prost::Message;
use tonic::Code;
use weir_config::MemoryConfig;
use weir_grpc::{BegunCall, IncomingCall, PendingCall};
use weir_node::limiter::Limiter;
use weir_node::service::{DecisionService, Templates};
use weir_node::telemetry::Metrics;
use weir_proto::v1::inline_limit::Algorithm as InlineAlgorithm;
use weir_proto::v1::{
    InlineLimit, InlineWindow, ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowRequest,
    ShouldAllowResponse, ShouldAllowStreamResponse, should_allow_result, streamed_result,
};
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};

use crate::support::damage::damaged;
use crate::support::grpc::{ended, ended_alone, framed, request, together};
use crate::support::server::{BASE, ask_under, config};

type Service = Arc<DecisionService<MemoryStore>>;

fn service() -> Service {
    let config = config();
    let metrics = Metrics::register(&Registry::new(), &config.rules).unwrap();
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(ManualClock::at(BASE)));
    let limiter = Limiter::new(Arc::new(config.rules.with_inline_limits()), store, metrics.recorder());
    DecisionService::new(limiter, Arc::new(Templates::new(&config.messages)), 64 << 10)
}

async fn should_allow(service: &Service, message: &[u8]) -> Result<Vec<u8>, Code> {
    call(service, request(&framed(0, message), usize::MAX)).await
}

async fn call(service: &Service, request: IncomingCall) -> Result<Vec<u8>, Code> {
    ended_alone(service, service.should_allow(request)).await
}

#[tokio::test]
async fn a_call_is_the_same_in_whatever_pieces_it_arrives() {
    let message = ask_under("burst", "pieces", "bob").encode_to_vec();
    let whole = framed(0, &message);
    let expected = should_allow(&service(), &message).await.unwrap();
    let batch = ShouldAllowBatchRequest { requests: vec![ask_under("burst", "pieces", "bob"); 3] };
    let whole_batch = framed(0, &batch.encode_to_vec());
    let expected_batch =
        ended(service().should_allow_batch(request(&whole_batch, usize::MAX))).await.unwrap();
    for piece in 1..whole.len() {
        let observed = call(&service(), request(&whole, piece)).await;
        assert_eq!(observed.as_ref(), Ok(&expected), "{piece} bytes at a time");
        let observed = ended(service().should_allow_batch(request(&whole_batch, piece))).await;
        assert_eq!(observed.as_ref(), Ok(&expected_batch), "{piece} bytes at a time");
        let (_leave, leaving) = tokio::sync::watch::channel(());
        let streamed = ended(service().should_allow_stream(request(&framed(0, &[]), piece), leaving)).await;
        assert_eq!(streamed, Ok(vec![]));
    }
}

#[tokio::test]
async fn what_is_not_one_message_is_refused() {
    let message = ask_under("burst", "refused", "bob").encode_to_vec();
    let fine = framed(0, &message);
    let bodies = [
        (vec![], Code::Unimplemented, "no message"),
        ([&fine[..], &fine].concat(), Code::Unimplemented, "two messages"),
        (fine[..fine.len() - 1].to_vec(), Code::Internal, "half a message"),
        (fine[..3].to_vec(), Code::Internal, "half a prefix"),
        (framed(1, &message), Code::Internal, "compressed, and nobody says how"),
        (framed(7, &message), Code::Internal, "a flag that does not exist"),
        (framed(0, &vec![0; (64 << 10) + 1]), Code::ResourceExhausted, "too large"),
        (framed(0, b"\x0a\x05abc"), Code::Internal, "no protobuf"),
        (framed(0, b"\x0a\x02\xff\xfe"), Code::Internal, "no UTF-8"),
        (framed(0, b"\x08\x01"), Code::Internal, "a number for a text"),
    ];
    for (body, code, what) in bodies {
        let service = service();
        assert_eq!(call(&service, request(&body, usize::MAX)).await, Err(code), "{what}");
        let answer = should_allow(&service, &message).await.unwrap();
        let answer = ShouldAllowResponse::decode(&answer[5..]).unwrap();
        assert_eq!(answer.remaining, Some(4), "{what}: nothing was charged");
    }
}

/// Beyond the bound attributes are not compared with one another.
#[tokio::test]
async fn many_attributes_are_refused_and_repeated_ones_are_one() {
    let entry =
        |name: &str| [&[0x32, name.len() as u8 + 2, 0x0a, name.len() as u8], name.as_bytes()].concat();
    let mut message = ask_under("burst", "r", "c").encode_to_vec();
    (0..3000).for_each(|_| message.extend(entry("same")));
    assert!(should_allow(&service(), &message).await.is_ok());
    (0..3000).for_each(|index| message.extend(entry(&format!("{index:04}"))));
    assert_eq!(should_allow(&service(), &message).await, Err(Code::InvalidArgument));
}

fn asks() -> impl Strategy<Value = ShouldAllowRequest> {
    let text = |pattern: &'static str| prop_oneof![Just(String::new()), pattern];
    let strategy =
        prop_oneof!["burst", "open", "closed", "regional", "everybody", "tiger-feeding", "nobody", ""];
    let attributes = prop::collection::hash_map("region|x{0,3}", "eu|us|", 0..3);
    let flags = (any::<bool>(), any::<bool>());
    let shaping = (prop::bool::weighted(0.2), text("[xy]"));
    let names = (text("[a-c/*é]{1,3}"), text("[a-c]{1,2}"), strategy);
    let inline = prop::option::weighted(0.2, inline_limits());
    (names, any::<Option<u8>>(), flags, attributes, shaping, inline).prop_map(
        |((resource, consumer, strategy), cost, (peek, headers), attributes, (at_most, id), inline)| {
            ShouldAllowRequest {
                resource,
                consumer,
                strategy,
                cost: cost.map(|cost| u64::from(cost % 8)),
                peek,
                attributes,
                at_most,
                id,
                headers,
                inline,
                costs: std::collections::HashMap::new(),
                hold_for: None,
            }
        },
    )
}

/// True if an entry of the map `attributes` is a number or a group: the generated type reads it as if it were a message.
fn has_attribute_of_another_wire_type(mut bytes: &[u8]) -> bool {
    const ATTRIBUTES: u32 = 6;
    while !bytes.is_empty() {
        let Ok((field, kind)) = prost::encoding::decode_key(&mut bytes) else { return false };
        if field == ATTRIBUTES && kind != prost::encoding::WireType::LengthDelimited {
            return true;
        }
        if prost::encoding::skip_field(kind, field, &mut bytes, prost::encoding::DecodeContext::default())
            .is_err()
        {
            return false;
        }
    }
    false
}

fn inline_limits() -> impl Strategy<Value = InlineLimit> {
    let window =
        Just(InlineWindow { limit: 3, window: Some(prost_types::Duration { seconds: 1, nanos: 0 }) });
    let algorithm = prop_oneof![
        window.prop_map(InlineAlgorithm::FixedWindow),
        window.prop_map(InlineAlgorithm::SlidingLog),
    ];
    ("[ab]{0,2}", prop::option::of(algorithm), 0..5).prop_map(|(name, algorithm, on_store_failure)| {
        InlineLimit { name, algorithm, on_store_failure, separate: on_store_failure % 2 == 1 }
    })
}

proptest! {
    /// Of damaged bytes we read what the generated type reads, and nothing is decided if it reads nothing.
    #[test]
    fn questions_are_read_as_the_generated_type_reads_them(
        bytes in damaged(asks()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let observed = runtime.block_on(should_allow(&service(), &bytes));
        match ShouldAllowRequest::decode(&bytes[..]) {
            Ok(_) if has_attribute_of_another_wire_type(&bytes) => {
                prop_assert_eq!(observed, Err(Code::Internal));
            }
            Ok(read) => {
                let expected = runtime.block_on(should_allow(&service(), &read.encode_to_vec()));
                prop_assert_eq!(observed, expected);
            }
            Err(_) => prop_assert_eq!(observed, Err(Code::Internal)),
        }
    }

    /// The bytes of our answers are those that the generated type writes, alone and in a batch.
    #[test]
    fn answers_are_written_as_the_generated_type_writes_them(asks in prop::collection::vec(asks(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (alone, together) = (service(), service());
        let batch = ShouldAllowBatchRequest { requests: asks.clone() }.encode_to_vec();
        let batch = request(&framed(0, &batch), usize::MAX);
        let batch = runtime.block_on(ended(together.should_allow_batch(batch))).unwrap();
        let results = ShouldAllowBatchResponse::decode(&batch[5..]).unwrap();
        prop_assert_eq!(framed(0, &results.encode_to_vec()), batch);
        prop_assert_eq!(results.results.len(), asks.len());
        for (ask, result) in asks.iter().zip(results.results) {
            use weir_proto::v1::should_allow_result::Result as Ended;
            match (runtime.block_on(should_allow(&alone, &ask.encode_to_vec())), result.result) {
                (Ok(bytes), Some(Ended::Response(in_batch))) => {
                    let answer = ShouldAllowResponse::decode(&bytes[5..]).unwrap();
                    prop_assert_eq!(framed(0, &answer.encode_to_vec()), bytes);
                    prop_assert_eq!(answer, in_batch);
                }
                (Err(code), Some(Ended::Error(error))) => prop_assert_eq!(code, Code::from_i32(error.code)),
                (alone, together) => prop_assert!(false, "{alone:?} alone, {together:?} in a batch"),
            }
        }
    }

    /// An unreadable question fails alone and in its turn, among calls that arrive together, in a batch and in a
    /// stream. Questions around it are answered as if they had been asked alone.
    #[test]
    fn what_cannot_be_read_fails_in_its_turn(
        asks in prop::collection::vec((asks(), prop::bool::weighted(0.1)), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (alone, called, batched, streamed) = (service(), service(), service(), service());
        let questions: Vec<Vec<u8>> = asks
            .iter()
            .map(|(ask, broken)| if *broken { b"\x0a\x05abc".to_vec() } else { ask.encode_to_vec() })
            .collect();
        let expected: Vec<_> = questions.iter().map(|question| decoded(runtime.block_on(should_allow(&alone, question)))).collect();

        let posed: Vec<_> = questions.iter().map(|question| posed(&called, question)).collect();
        let together: Vec<_> = together(&called, &posed).into_iter().map(decoded).collect();
        prop_assert_eq!(&together, &expected);

        let batch: Vec<u8> = questions.iter().flat_map(|question| field(1, question)).collect();
        let batch = runtime.block_on(ended(batched.should_allow_batch(request(&framed(0, &batch), usize::MAX))));
        let results = ShouldAllowBatchResponse::decode(&batch.unwrap()[5..]).unwrap().results;
        let in_batch: Vec<_> = results.into_iter().map(|one| match one.result {
            Some(should_allow_result::Result::Response(answer)) => Ok(answer),
            Some(should_allow_result::Result::Error(error)) => Err(Code::from_i32(error.code)),
            None => panic!("a result without an end"),
        }).collect();
        prop_assert_eq!(&in_batch, &expected);

        let stream: Vec<u8> = questions
            .iter()
            .zip(1..)
            .flat_map(|(question, id)| field(1, &[vec![0x08, id], field(2, question)].concat()))
            .collect();
        let (_leave, leaving) = tokio::sync::watch::channel(());
        let mut stream = &runtime.block_on(ended(
            streamed.should_allow_stream(request(&framed(0, &stream), usize::MAX), leaving),
        )).unwrap()[..];
        let mut in_stream = Vec::new();
        while let Some((prefix, rest)) = stream.split_first_chunk::<5>() {
            let length = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
            in_stream.extend(ShouldAllowStreamResponse::decode(&rest[..length]).unwrap().results);
            stream = &rest[length..];
        }
        let ids: Vec<u64> = in_stream.iter().map(|one| one.id).collect();
        prop_assert_eq!(ids, (1..=questions.len() as u64).collect::<Vec<_>>());
        let in_stream: Vec<_> = in_stream.into_iter().map(|one| match one.result {
            Some(streamed_result::Result::Response(answer)) => Ok(answer),
            Some(streamed_result::Result::Error(error)) => Err(Code::from_i32(error.code)),
            None => panic!("a result without an end"),
        }).collect();
        prop_assert_eq!(&in_stream, &expected);
    }
}

/// A question that has arrived.
fn posed(service: &Service, question: &[u8]) -> PendingCall {
    match service.should_allow(request(&framed(0, question), usize::MAX)) {
        BegunCall::Pending(pending) => pending,
        BegunCall::Call(_) => panic!("the memory store answers at once"),
    }
}

/// A field that holds a message.
fn field(number: u8, message: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(message.len() as u64, &mut field);
    field.extend_from_slice(message);
    field
}

fn decoded(ended: Result<Vec<u8>, Code>) -> Result<ShouldAllowResponse, Code> {
    ended.map(|bytes| ShouldAllowResponse::decode(&bytes[5..]).unwrap())
}
