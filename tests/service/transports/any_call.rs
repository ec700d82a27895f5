//! Any calls of any services: right and wrong ones, whole and in pieces, with ordinary and odd headers.

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost::Message;
use weir_proto::v1::{
    RefundRequest, ResetRequest, ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowStreamRequest,
    StreamedRequest,
};

use super::client::{Call, Ends};
use super::rate_limit::{AskedDescriptor, AskedEntry, EnvoyQuestion};
use super::{BATCH, CHECK, RATE_LIMIT, REFLECTION, REFUND, RESET, SHOULD_ALLOW, STREAM};
use crate::support::damage::damaged;
use crate::support::grpc::framed;

pub(super) const RESOURCES: [&str; 5] =
    ["burst/x", "burst/y", "zewtopia.com/tigerfeeding", "no/such/resource", ""];
pub(super) const CONSUMERS: [&str; 3] = ["bob", "eve", ""];
const STRATEGIES: [&str; 5] = ["", "", "burst", "everybody", "nobody's"];

/// A fault of a call, besides its message.
#[derive(Debug, Clone)]
enum Fault {
    /// A flag that says compressed, or nothing at all.
    Flag(u8),
    /// The call ends within the message.
    Cut(Index),
    /// The call ends in trailers, which is not wrong.
    Trailers,
    /// The call is cancelled within the message.
    Cancelled(Index),
    /// The call announces and sends a message that is too large.
    TooLarge,
    Header(&'static str, Vec<u8>),
}

pub(super) fn any_call() -> impl Strategy<Value = Call> {
    let bodies = prop_oneof![
        6 => damaged(question()).prop_map(|message| (SHOULD_ALLOW, framed(0, &message))),
        3 => question().prop_map(|message| (SHOULD_ALLOW, framed(0, &message.encode_to_vec()))),
        3 => prop::collection::vec(question(), 0..20)
            .prop_map(|requests| (BATCH, framed(0, &ShouldAllowBatchRequest { requests }.encode_to_vec()))),
        3 => prop::collection::vec(streamed(), 0..4).prop_map(|messages| (STREAM, messages.concat())),
        3 => damaged(refund()).prop_map(|message| (REFUND, framed(0, &message))),
        3 => refund().prop_map(|message| (REFUND, framed(0, &message.encode_to_vec()))),
        3 => rate_limit().prop_map(|message| (RATE_LIMIT, framed(0, &message.encode_to_vec()))),
        2 => damaged(rate_limit()).prop_map(|message| (RATE_LIMIT, framed(0, &message))),
        2 => reset().prop_map(|message| (RESET, framed(0, &message.encode_to_vec()))),
        2 => select(vec!["", "ratelimit", "weir.v1.RateLimitService", "nobody"])
            .prop_map(|name| (CHECK, framed(0, &[&[0x0a, name.len() as u8], name.as_bytes()].concat()))),
        // Lists the services.
        1 => Just((REFLECTION, framed(0, b"\x3a\x00"))),
        1 => question().prop_map(|message| {
            ("/weir.v1.RateLimitService/Nothing", framed(0, &message.encode_to_vec()))
        }),
        1 => Just(("/nobody.Service/Nothing", vec![])),
        1 => Just(("/", vec![])),
    ];
    let piece = prop_oneof![3 => Just(usize::MAX), 1 => 1..40_usize];
    let fault = prop::option::weighted(0.4, fault());
    (bodies, piece, fault).prop_map(|((path, body), piece, fault)| {
        let call = Call { piece, ..Call::new(path, body) };
        fault.map_or_else(|| call.clone(), |fault| fault.in_call(call.clone()))
    })
}

fn question() -> impl Strategy<Value = ShouldAllowRequest> {
    let cost = prop::option::of(prop_oneof![4 => 0..4_u64, 1 => Just(200)]);
    (select(RESOURCES.to_vec()), select(CONSUMERS.to_vec()), select(STRATEGIES.to_vec()), cost, any::<bool>())
        .prop_map(|(resource, consumer, strategy, cost, peek)| ShouldAllowRequest {
            resource: resource.to_owned(),
            consumer: consumer.to_owned(),
            strategy: strategy.to_owned(),
            cost,
            peek,
            ..ShouldAllowRequest::default()
        })
}

/// One message of a stream.
fn streamed() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((any::<u64>(), question()), 0..4).prop_map(|questions| {
        let streamed =
            questions.into_iter().map(|(id, request)| StreamedRequest { id, request: Some(request) });
        framed(0, &ShouldAllowStreamRequest { requests: streamed.collect() }.encode_to_vec())
    })
}

fn refund() -> impl Strategy<Value = RefundRequest> {
    (question(), select(vec!["", "", "once"])).prop_map(|(question, id)| RefundRequest {
        resource: question.resource,
        consumer: question.consumer,
        strategy: question.strategy,
        cost: question.cost,
        id: id.to_owned(),
        ..RefundRequest::default()
    })
}

fn reset() -> impl Strategy<Value = ResetRequest> {
    question().prop_map(|question| ResetRequest {
        resource: question.resource,
        consumer: question.consumer,
        strategy: question.strategy,
        ..ResetRequest::default()
    })
}

fn rate_limit() -> impl Strategy<Value = EnvoyQuestion> {
    let entry = (select(vec!["key1", "key2", "foo"]), select(vec!["banned", "x", ""]))
        .prop_map(|(key, value)| AskedEntry { key: key.to_owned(), value: value.to_owned() });
    let descriptor = prop::collection::vec(entry, 0..3)
        .prop_map(|entries| AskedDescriptor { entries, ..AskedDescriptor::default() });
    let domain = select(vec!["test-domain", "another", "nope", ""]);
    (domain, prop::collection::vec(descriptor, 0..3), 0..3_u32).prop_map(
        |(domain, descriptors, hits_addend)| EnvoyQuestion {
            domain: domain.to_owned(),
            descriptors,
            hits_addend,
        },
    )
}

fn fault() -> impl Strategy<Value = Fault> {
    let timeout = select(vec!["10S", "1H", "x", "", "123456789S", "5000000u"]);
    let name = select(vec!["x-request-id", "grpc-accept-encoding", "authorization", "user-agent", "x-bin"]);
    // HTTP allows nearly all bytes in a value.
    let value = prop::collection::vec(prop_oneof![0x21..0x7f_u8, 0x80..=0xff_u8], 0..200);
    prop_oneof![
        1 => any::<u8>().prop_map(Fault::Flag),
        1 => any::<Index>().prop_map(Fault::Cut),
        1 => Just(Fault::Trailers),
        1 => any::<Index>().prop_map(Fault::Cancelled),
        1 => Just(Fault::TooLarge),
        2 => timeout.prop_map(|timeout| Fault::Header("grpc-timeout", timeout.into())),
        1 => select(vec!["gzip", "identity", "snappy"])
            .prop_map(|encoding| Fault::Header("grpc-encoding", encoding.into())),
        2 => (name, value).prop_map(|(name, value)| Fault::Header(name, value)),
    ]
}

impl Fault {
    fn in_call(self, mut call: Call) -> Call {
        match self {
            Self::Flag(flag) => call.body.splice(..call.body.len().min(1), [flag]).for_each(drop),
            Self::Cut(at) => call.body.truncate(at.index(call.body.len() + 1)),
            Self::Trailers => call.ends = Ends::WithTrailers,
            // Never all of it: what becomes of a call that is cancelled when it has arrived is a matter of time.
            Self::Cancelled(at) => call.ends = Ends::Cancelled(at.index(call.body.len().max(1))),
            Self::TooLarge => {
                call.body = framed(0, &vec![0; (1 << 20) + 1]);
                call.piece = call.piece.max(1000);
            }
            Self::Header(name, value) => {
                let value = HeaderValue::from_bytes(&value).expect("such bytes are allowed");
                call.headers.push((HeaderName::from_static(name), value));
            }
        }
        call
    }
}
