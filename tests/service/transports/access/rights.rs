//! Each method without its right, each list, and refusals that tell nothing.

use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, ServiceDescriptor, Value};
use weir::features::methods;
use weir_config::{AccessRight, RIGHTS};
use weir_proto::v1;

use super::super::client::Call;
use super::super::rate_limit::{AskedDescriptor, AskedEntry, EnvoyQuestion};
use super::super::{BATCH, RATE_LIMIT, RESET, SHOULD_ALLOW, STREAM, TRANSPORTS};
use super::{Guarded, all_but};
use crate::support::grpc::framed;
use crate::support::server::{ask, ask_under};

pub(super) const DENIED: u16 = 7;

/// A call of a method of the table, which changes or tells something when it is allowed: the fields that it has are set.
fn call_of(path: &str) -> Call {
    let method = services().flat_map(|service| service.methods().collect::<Vec<_>>()).find(|method| {
        path.strip_prefix('/') == Some(&format!("{}/{}", method.parent_service().full_name(), method.name()))
    });
    let method = method.unwrap_or_else(|| panic!("{path} is in no proto"));
    if method.is_client_streaming() {
        return Call::new(path, vec![]);
    }
    let message = filled(method.input(), method.parent_service().name());
    Call::new(path, framed(0, &message.encode_to_vec()))
}

/// The services of all protos that this program serves.
fn services() -> impl Iterator<Item = ServiceDescriptor> {
    static POOL: LazyLock<DescriptorPool> =
        LazyLock::new(|| DescriptorPool::decode(weir_proto::DESCRIPTORS).unwrap());
    // The control plane of Envoy's limits is a server that Weir calls.
    POOL.services().filter(|service| !service.full_name().starts_with("envoy.service.discovery."))
}

fn filled(message: MessageDescriptor, service: &str) -> DynamicMessage {
    let mut asked = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let value = match field.name() {
            "resource" => text("burst/x"),
            "consumer" | "id" | "value" => text("bob"),
            "strategy" if message.name().starts_with("Count") => text("parts"),
            "strategy" if ["ConcurrencyService", "LeaseAdminService"].contains(&service) => text("permits"),
            "queue" => text("work"),
            "domain" => text("basic"),
            "key" => text("key1"),
            "payload" => Value::Bytes(b"x".to_vec().into()),
            "seconds" => Value::I64(60),
            "ids" if field.kind() == Kind::String => Value::List(vec![text("bob")]),
            "requests" | "items" | "descriptors" | "entries" | "interval" => match field.kind() {
                Kind::Message(part) if field.is_list() => {
                    Value::List(vec![Value::Message(filled(part, service))])
                }
                Kind::Message(part) => Value::Message(filled(part, service)),
                _ => continue,
            },
            _ => continue,
        };
        asked.set_field(&field, value);
    }
    asked
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub(super) fn envoys(domain: &str, hits: i64) -> EnvoyQuestion {
    let entries = vec![AskedEntry { key: "key1".to_owned(), value: "v".to_owned() }];
    let descriptor = AskedDescriptor {
        entries,
        hits_addend: (hits != 0).then_some(hits.unsigned_abs()),
        is_negative_hits: hits < 0,
    };
    EnvoyQuestion { domain: domain.to_owned(), descriptors: vec![descriptor], hits_addend: 0 }
}

/// The statistics and outcomes of queues need either of two rights.
const EITHER: [&str; 2] = ["/weir.v1.QueueService/Stats", "/weir.v1.QueueService/Outcomes"];

#[tokio::test]
async fn no_method_is_served_without_its_right_and_nothing_is_charged_stored_or_counted() {
    let holders: Vec<String> = RIGHTS.iter().map(|row| format!("no-{}", row.name)).collect();
    let mut rules = "authorize:\n  - { callers: [token:admin], may: [".to_owned() + &all_but("") + "] }\n";
    for row in &RIGHTS {
        rules += &format!("  - {{ callers: [token:no-{}], may: [{}] }}\n", row.name, all_but(row.name));
    }
    rules += "  - { callers: [token:no-queues], may: [decide] }\n";
    let mut names: Vec<&str> = holders.iter().map(String::as_str).collect();
    names.extend(["admin", "no-queues"]);
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &names, "", &rules);
        let mut client = guarded.client().await;
        let before = guarded.counted();
        let mut refused = 0;
        for row in &RIGHTS {
            for path in methods(row.right) {
                let holder =
                    if EITHER.contains(&path) { "no-queues".to_owned() } else { format!("no-{}", row.name) };
                let call = call_of(path).with("authorization", &guarded.bearer(&holder));
                let outcome = client.call(&call).await;
                assert_eq!(outcome.code, Some(DENIED), "{transport:?} {path}: {outcome:?}");
                assert_eq!(outcome.message.as_deref(), Some("the%20caller%20has%20no%20right%20to%20this"));
                assert!(outcome.body.is_empty(), "{path}");
                refused += 1;
                let nobody = client.call(&call_of(path)).await;
                assert_eq!(nobody.code, Some(16), "{transport:?} {path}: {nobody:?}");
            }
        }
        assert_eq!(guarded.counted(), before, "{transport:?}");
        assert_eq!(guarded.refused("rights"), refused, "{transport:?}");
        // With the right, each of them does something.
        for path in RIGHTS.iter().flat_map(|row| methods(row.right)) {
            let call = call_of(path).with("authorization", &guarded.bearer("admin"));
            let outcome = client.call(&call).await;
            assert!(!matches!(outcome.code, Some(7 | 16)), "{transport:?} {path}: {outcome:?}");
        }
        assert_ne!(guarded.counted(), before, "{transport:?}");
        let none = client.call(&Call::new("/weir.v1.RateLimitService/New", vec![])).await;
        assert_eq!(none.code, Some(16), "{transport:?}: without a row in the table nobody may");
        let none = Call::new("/weir.v1.RateLimitService/New", vec![]);
        let none = client.call(&none.with("authorization", &guarded.bearer("admin"))).await;
        assert_eq!(none.code, Some(DENIED), "{transport:?}");
    }
}

#[test]
fn every_method_has_a_row() {
    let rows: Vec<&str> = RIGHTS.iter().flat_map(|row| methods(row.right)).collect();
    let mut methods = 0;
    for service in services() {
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            assert!(rows.contains(&&*path), "{path} has no row in RIGHTS");
            methods += 1;
        }
    }
    assert!(methods > 8, "{methods}"); // those of the trunk
    for (index, row) in RIGHTS.iter().enumerate() {
        assert_eq!((row.right as usize, AccessRight::row(row.right).name), (index, row.name));
    }
}

#[tokio::test]
async fn a_refusal_is_the_same_whether_or_not_the_thing_exists() {
    let rules = "authorize:
  - { callers: [token:admin], may: [decide, inspect] }
  - { callers: [token:shop], may: [decide, lease], resources: [burst/*], consumers: [$caller, 'shop-*'] }
  - { callers: [token:shop], may: [enqueue], queues: [rest] }
  - { callers: [token:shop], may: [envoy], envoy_domains: [nothing] }
  - { callers: [token:strict], may: [decide], strategies: [burst] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop", "strict"], "", rules);
        let mut client = guarded.client().await;
        let shop = guarded.bearer("shop");
        let unary =
            |path: &str, message: Vec<u8>| Call::new(path, framed(0, &message)).with("authorization", &shop);
        let before = guarded.counted();
        // An `EnqueueRequest`, whose first field is the queue.
        let enqueue = |queue: &str| [&[10, queue.len() as u8], queue.as_bytes()].concat();
        let mut first = None;
        for call in [
            unary(SHOULD_ALLOW, ask("other/x", "shop-1").encode_to_vec()),
            unary(SHOULD_ALLOW, ask("nothing/x", "shop-1").encode_to_vec()),
            unary(SHOULD_ALLOW, ask("", "shop-1").encode_to_vec()),
            unary(SHOULD_ALLOW, ask("burst/x", "bob").encode_to_vec()),
            unary(SHOULD_ALLOW, ask_under("nothing", "other/x", "bob").encode_to_vec()),
            unary("/weir.v1.QueueService/Enqueue", enqueue("work")),
            unary("/weir.v1.QueueService/Enqueue", enqueue("rest:dead")),
            unary("/weir.v1.QueueService/Enqueue", enqueue("nowhere")),
            unary(RATE_LIMIT, envoys("basic", 0).encode_to_vec()),
            unary(RATE_LIMIT, envoys("nowhere", 0).encode_to_vec()),
            unary(RATE_LIMIT, envoys("nothing", -1).encode_to_vec()),
            unary(RESET, v1::ResetRequest::default().encode_to_vec()),
        ] {
            let outcome = client.call(&call).await;
            assert_eq!(outcome.code, Some(DENIED), "{transport:?} {call:?}: {outcome:?}");
            assert_eq!(first.get_or_insert_with(|| outcome.clone()), &outcome, "{transport:?} {call:?}");
        }
        assert_eq!(guarded.counted(), before, "{transport:?}");
        for (consumer, code) in [("token:shop", 0), ("shop-7", 0), ("token:shop2", 7), ("token:", 7)] {
            let outcome = client.call(&unary(SHOULD_ALLOW, ask("burst/x", consumer).encode_to_vec())).await;
            assert_eq!(outcome.code, Some(code), "{transport:?} {consumer}: {outcome:?}");
        }
        // The strategy of the resource is found first where a rule has strategies.
        let strict = guarded.bearer("strict");
        for (call, code) in [
            (ask("burst/x", "a"), 0),
            (ask("other/x", "a"), 7),
            (ask("nothing/x", "a"), 7),
            (ask_under("burst", "other/x", "a"), 0),
            (ask_under("other", "burst/x", "a"), 7),
        ] {
            let call =
                Call::new(SHOULD_ALLOW, framed(0, &call.encode_to_vec())).with("authorization", &strict);
            assert_eq!(client.call(&call).await.code, Some(code), "{transport:?} {call:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_item_of_a_batch_or_a_stream_has_code_7() {
    let rules = "authorize:
  - { callers: [token:admin], may: [inspect] }
  - { callers: [token:shop], may: [decide], resources: [burst/*] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", rules);
        let mut client = guarded.client().await;
        let shop = guarded.bearer("shop");
        let requests = vec![ask("burst/x", "a"), ask("other/x", "a"), ask("burst/x", "a")];
        let batch = v1::ShouldAllowBatchRequest { requests: requests.clone() };
        let call = Call::new(BATCH, framed(0, &batch.encode_to_vec())).with("authorization", &shop);
        let outcome = client.call(&call).await;
        let answer = v1::ShouldAllowBatchResponse::decode(&outcome.body[5..]).unwrap();
        use v1::should_allow_result::Result::{Error, Response};
        let codes = answer.results.into_iter().map(|result| match result.result.unwrap() {
            Response(_) => 0,
            Error(error) => error.code,
        });
        assert_eq!(codes.collect::<Vec<_>>(), [0, 7, 0], "{transport:?}");
        let numbered = requests.into_iter().enumerate();
        let requests =
            numbered.map(|(id, request)| v1::StreamedRequest { id: id as u64 + 1, request: Some(request) });
        let stream = v1::ShouldAllowStreamRequest { requests: requests.collect() };
        let call = Call::new(STREAM, framed(0, &stream.encode_to_vec())).with("authorization", &shop);
        let outcome = client.call(&call).await;
        let answer = v1::ShouldAllowStreamResponse::decode(&outcome.body[5..]).unwrap();
        use v1::streamed_result::Result as Streamed;
        let codes = answer.results.into_iter().map(|result| match result.result.unwrap() {
            Streamed::Response(_) => 0,
            Streamed::Error(error) => error.code,
        });
        assert_eq!(codes.collect::<Vec<_>>(), [0, 7, 0], "{transport:?}");
    }
}
