//! Interceptors: they check the calls of all methods on both transports, before anything is decided.

use std::sync::{Arc, Mutex};

use http::{HeaderName, HeaderValue};
use tokio::io::duplex;
use weir_config::{Config, ConfigOverrides, RIGHTS, ServerLimits, TransportKind};
use weir_grpc::{
    CallRefusal, Caller, CheckCalls, Intercept, KeptHeaders, Peer, PeerAddress, PeerCertificate, RefusalCode,
};
use weir_node::access::CallerAccess;
use weir_proto::v1::{RefundRequest, ShouldAllowBatchRequest};

use weir_time::clock::Clock;

use super::client::{Call, Client, Outcome};
use super::{
    BATCH, CHECK, RATE_LIMIT, REFLECTION, REFUND, RESET, SHOULD_ALLOW, STREAM, Served, TRANSPORTS, peek,
    unary,
};
use crate::support::grpc::framed;
use crate::support::server::ask;

/// Admits calls with the right token, and records what it sees.
#[derive(Clone)]
struct Tokens {
    names: [HeaderName; 2],
    token: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// One check: the method, and all values of both headers.
type Seen = (String, [Vec<Vec<u8>>; 2]);

/// The check of one connection.
struct TokenCheck(Tokens, Arc<Peer>, Caller);

impl Intercept for Tokens {
    fn names(&self) -> &[HeaderName] {
        &self.names
    }

    fn connected(&self, peer: Arc<Peer>) -> Arc<dyn CheckCalls> {
        Arc::new(TokenCheck(self.clone(), peer, caller()))
    }
}

impl CheckCalls for TokenCheck {
    fn check(&self, method: &str, headers: &KeptHeaders) -> Result<Caller, CallRefusal> {
        let Self(tokens, peer, caller) = self;
        let values = [0, 1].map(|index| headers.all(index).map(<[u8]>::to_vec).collect::<Vec<_>>());
        let is_right = values[0].first().is_some_and(|value| value == tokens.token.as_bytes());
        tokens.seen.lock().unwrap().push((method.to_owned(), values));
        if headers.all(1).any(|tenant| tenant == b"end") {
            peer.disconnect();
        }
        if is_right {
            return Ok(caller.clone());
        }
        let message = "authorization: there is no such token";
        Err(CallRefusal { code: RefusalCode::Unauthenticated, message })
    }
}

/// A caller who may do all.
fn caller() -> Caller {
    let rights = RIGHTS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let rules = format!("authorize: [{{ callers: [anonymous], may: [{rights}] }}]\n{}", weir_config::EXAMPLE);
    let config = Config::parse(&rules, "rules", &ConfigOverrides::default()).unwrap();
    let access = CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap().unwrap();
    access.intercept().connected(Arc::default()).check(SHOULD_ALLOW, &KeptHeaders::default()).unwrap()
}

fn tokens() -> Tokens {
    Tokens {
        names: [HeaderName::from_static("authorization"), HeaderName::from_static("x-tenant")],
        // Longer than any header that was ever cut.
        token: format!("Bearer {}", "t".repeat(4000)),
        seen: Arc::default(),
    }
}

fn served(transport: TransportKind, tokens: &Tokens) -> Served {
    let tokens = Arc::new(tokens.clone());
    let make = move || Arc::clone(&tokens) as Arc<dyn Intercept>;
    Served::with(transport, ServerLimits::default(), Some(Box::new(make)))
}

fn one_call_of_each_method() -> Vec<Call> {
    let batch = ShouldAllowBatchRequest { requests: vec![peek("burst/x", "bob")] };
    vec![
        unary(SHOULD_ALLOW, &ask("burst/x", "bob")),
        unary(BATCH, &batch),
        Call::new(STREAM, vec![]),
        unary(REFUND, &RefundRequest::default()),
        Call::new(RATE_LIMIT, framed(0, b"")),
        Call::new(RESET, framed(0, b"")),
        Call::new(CHECK, framed(0, b"")),
        Call::new(REFLECTION, framed(0, b"\x3a\x00")),
        Call::new("/nobody.Service/Nothing", vec![]),
    ]
}

fn is_refused(outcome: &Outcome) -> bool {
    let words = outcome.message.as_deref().unwrap_or_default();
    outcome.code == Some(16) && words.contains("no%20such%20token") && outcome.body.is_empty()
}

#[tokio::test]
async fn every_method_is_checked_before_it_begins() {
    for transport in TRANSPORTS {
        let tokens = tokens();
        let mut served = served(transport, &tokens);
        let mut client = served.client().await;
        for call in one_call_of_each_method() {
            for call in [call.clone(), call.clone().with("authorization", "Bearer other")] {
                let outcome = client.call(&call).await;
                assert!(is_refused(&outcome), "{transport:?} {call:?}: {outcome:?}");
            }
            // The token is checked first, so the error does not mention the encoding.
            let encoded = client.call(&call.clone().with("grpc-encoding", "gzip")).await;
            assert!(is_refused(&encoded), "{transport:?} {call:?}: {encoded:?}");
            let token = &tokens.token;
            let allowed =
                call.clone().with("x-tenant", "zoo").with("x-other", "1").with("authorization", token);
            let outcome = client.call(&allowed).await;
            assert_ne!(outcome.code, Some(16), "{transport:?} {call:?}: {outcome:?}");
            let (method, [authorization, tenant]) = tokens.seen.lock().unwrap().pop().unwrap();
            assert_eq!(method, call.path);
            assert_eq!(authorization, [token.as_bytes()], "{transport:?}: at full length");
            assert_eq!(tenant, [b"zoo"], "{transport:?}");
        }
        // Of the calls that were refused, none has charged anything: one has been let through.
        let peek = unary(SHOULD_ALLOW, &peek("burst/x", "bob"));
        let left = client.call(&peek.with("authorization", &tokens.token)).await;
        let answer =
            <weir_proto::v1::ShouldAllowResponse as prost::Message>::decode(&left.body[5..]).unwrap();
        assert_eq!(answer.limits[0].remaining, 4, "{transport:?}");
    }
}

#[tokio::test]
async fn all_values_of_a_header_arrive_as_bytes() {
    for transport in TRANSPORTS {
        let tokens = tokens();
        let mut served = served(transport, &tokens);
        let call = unary(SHOULD_ALLOW, &ask("burst/x", "bob"));
        let mut call = call.with("x-tenant", "one").with("authorization", "Bearer a");
        let odd = HeaderValue::from_bytes(b"tw\xf6").unwrap();
        call.headers.push((HeaderName::from_static("x-tenant"), odd));
        served.client().await.call(&call.with("authorization", "Basic b")).await;
        let (_, [authorization, tenant]) = tokens.seen.lock().unwrap().pop().unwrap();
        assert_eq!(authorization, [b"Bearer a".to_vec(), b"Basic b".to_vec()], "{transport:?}");
        assert_eq!(tenant, [b"one".to_vec(), b"tw\xf6".to_vec()], "{transport:?}");
    }
}

#[tokio::test]
async fn a_connection_ends_when_its_check_asks_for_it() {
    for transport in TRANSPORTS {
        let tokens = tokens();
        let mut served = served(transport, &tokens);
        let peer = Arc::new(Peer::new(PeerAddress::Unix { uid: Some(7) }));
        let certificate = PeerCertificate::new([b"leaf".to_vec(), b"authority".to_vec()]).unwrap();
        let peer = Arc::new(Arc::into_inner(peer).unwrap().with_certificate(Arc::new(certificate)));
        assert_eq!(peer.certificate().unwrap().end_entity(), b"leaf");
        let (ours, theirs) = duplex(64 << 10);
        let over = served.serve_peer(theirs, peer);
        let mut client = Client::connect(ours).await;
        let call = unary(SHOULD_ALLOW, &ask("burst/x", "bob")).with("authorization", &tokens.token);
        assert_eq!(client.call(&call).await.code, Some(0), "{transport:?}");
        let last = client.call(&call.with("x-tenant", "end")).await;
        assert_eq!(last.code, Some(0), "{transport:?}: the call itself is answered");
        over.await.unwrap();
    }
}
