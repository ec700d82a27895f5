//! Interceptors: they check the calls of all methods on both transports, before anything is decided.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::Status;
use weir_config::ServerLimits;
use weir_grpc::{Caller, Intercept};
use weir_proto::v1::{RefundRequest, ShouldAllowBatchRequest};

use super::client::{Call, Outcome};
use super::{
    BATCH, CHECK, RATE_LIMIT, REFLECTION, REFUND, RESET, SHOULD_ALLOW, STREAM, Served, TRANSPORTS, peek,
    unary,
};
use crate::support::grpc::framed;
use crate::support::server::ask;

/// Admits calls with the right token, and records what it sees.
struct Tokens {
    names: [HeaderName; 2],
    token: HeaderValue,
    seen: Mutex<Vec<(String, HeaderMap)>>,
}

impl Intercept for Tokens {
    fn names(&self) -> &[HeaderName] {
        &self.names
    }

    fn check(&self, method: &str, headers: &HeaderMap) -> Result<Caller, Status> {
        self.seen.lock().unwrap().push((method.to_owned(), headers.clone()));
        if headers.get("authorization") == Some(&self.token) {
            return Ok(Caller::named("bob"));
        }
        Err(Status::unauthenticated("authorization: there is no such token"))
    }
}

fn tokens() -> Arc<Tokens> {
    Arc::new(Tokens {
        names: [HeaderName::from_static("authorization"), HeaderName::from_static("x-tenant")],
        // Longer than any header that was ever cut.
        token: HeaderValue::from_str(&format!("Bearer {}", "t".repeat(4000))).unwrap(),
        seen: Mutex::default(),
    })
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
        let shared: Arc<dyn Intercept> = tokens.clone();
        let mut served = Served::with(transport, ServerLimits::default(), Some(shared));
        let mut client = served.client().await;
        for call in one_call_of_each_method() {
            for call in [call.clone(), call.clone().with("authorization", "Bearer other")] {
                let outcome = client.call(&call).await;
                assert!(is_refused(&outcome), "{transport:?} {call:?}: {outcome:?}");
            }
            // The token is checked first, so the error does not mention the encoding.
            let encoded = client.call(&call.clone().with("grpc-encoding", "gzip")).await;
            assert!(is_refused(&encoded), "{transport:?} {call:?}: {encoded:?}");
            let token = tokens.token.to_str().unwrap();
            let allowed =
                call.clone().with("x-tenant", "zoo").with("x-other", "1").with("authorization", token);
            let outcome = client.call(&allowed).await;
            assert_ne!(outcome.code, Some(16), "{transport:?} {call:?}: {outcome:?}");
            let (method, headers) = tokens.seen.lock().unwrap().pop().unwrap();
            assert_eq!(method, call.path);
            assert_eq!(headers.get("authorization"), Some(&tokens.token), "at full length");
            assert_eq!(headers.get("x-tenant").map(HeaderValue::as_bytes), Some(&b"zoo"[..]));
            assert_eq!(
                headers.len(),
                2,
                "{transport:?}: headers that are not named are not kept: {headers:?}"
            );
        }
        // Of the calls that were refused, none has charged anything: one has been let through.
        let token = tokens.token.to_str().unwrap();
        let left =
            client.call(&unary(SHOULD_ALLOW, &peek("burst/x", "bob")).with("authorization", token)).await;
        let answer =
            <weir_proto::v1::ShouldAllowResponse as prost::Message>::decode(&left.body[5..]).unwrap();
        assert_eq!(answer.limits[0].remaining, 4, "{transport:?}");
    }
}
