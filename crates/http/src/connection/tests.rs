//! Clients that are too slow, on a virtual clock.

use std::future::pending;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use prometheus::core::Collector as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use weir_grpc::{CallContext, Methods, Peer, PeerAddress};
use weir_node::feature::{CallError, NodeCall, NodeCalls};

use super::*;

const PATH: &str = "/weir.v1.RateLimitService/ShouldAllow";
const BODY: &str = r#"{"resource":"two","consumer":"bob"}"#;

/// Allows everything, or fails with a code, and counts the calls.
struct ServedCalls(Methods, AtomicUsize, Option<u8>);

impl NodeCalls for ServedCalls {
    fn serves(&self, method: &str) -> bool {
        method == PATH
    }

    fn methods(&self) -> &Methods {
        &self.0
    }

    fn call(&self, _: &'static str, _: CallContext, _: Bytes) -> NodeCall {
        self.1.fetch_add(1, Relaxed);
        NodeCall::Answered(match self.2 {
            None => Ok(Bytes::from_static(&[8, 1])),
            Some(code) => Err(CallError { code, message: "why".to_owned(), details: Vec::new() }),
        })
    }
}

/// The end of a connection.
#[derive(Debug, PartialEq)]
struct ServedClient {
    seconds: u64,
    calls: usize,
    /// The reasons that were counted.
    refused: Vec<String>,
}

/// Serves a client, over 64 bytes in each direction, until the connection ends.
async fn served<F: Future<Output = ()> + Send + 'static>(
    client: impl FnOnce(DuplexStream) -> F,
) -> ServedClient {
    served_by(None, client).await
}

/// The same, with calls that fail with a code.
async fn served_by<F: Future<Output = ()> + Send + 'static>(
    code: Option<u8>,
    client: impl FnOnce(DuplexStream) -> F,
) -> ServedClient {
    let metrics = HttpMetrics::new(Arc::default()).unwrap();
    let budget = BufferBudget::new(1 << 20, 1);
    let calls = Arc::new(ServedCalls(Methods::new(Vec::new(), 64 << 10), AtomicUsize::new(0), code));
    let routes = Routes::new(crate::shapes().unwrap(), Arc::clone(&calls) as _, budget.clone(), &metrics);
    let settings = HttpSettings {
        checks: Vec::new(),
        idle_timeout: Duration::from_secs(75),
        max_connection_age: Duration::from_secs(3_600),
    };
    let port = HttpPort::new(routes, settings, metrics.clone(), budget);
    let (ours, theirs) = duplex(64);
    let begun = monotonic();
    let client = tokio::spawn(client(ours));
    let peer = Arc::new(Peer::new(PeerAddress::Unknown));
    port.serve(PortConnection { stream: Box::new(theirs), peer, over: Box::pin(pending()) }).await;
    client.abort();
    ServedClient {
        seconds: (monotonic() - begun).as_secs(),
        calls: calls.1.load(Relaxed),
        refused: refused(&metrics),
    }
}

fn refused(metrics: &HttpMetrics) -> Vec<String> {
    let families = metrics.collect();
    let family = families.iter().find(|family| family.name() == "weir_http_refused_total").unwrap();
    let counted = family.get_metric().iter().filter(|metric| metric.get_counter().get_value() > 0.0);
    counted.map(|metric| metric.get_label()[0].value().to_owned()).collect()
}

/// Sends a byte a second.
async fn trickle(stream: &mut DuplexStream, text: &str) {
    for byte in text.bytes() {
        let _ = stream.write_all(&[byte]).await;
        sleep(Duration::from_secs(1)).await;
    }
    pending::<()>().await;
}

fn head(path: &str, length: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{length}\r\n\r\n")
}

fn request() -> String {
    head(PATH, &format!("Content-Length: {}", BODY.len())) + BODY
}

fn ended(seconds: u64, calls: usize, reason: &str) -> ServedClient {
    ServedClient { seconds, calls, refused: vec![reason.to_owned()] }
}

#[tokio::test(start_paused = true)]
async fn slow_headers_end_a_connection() {
    let silent = served(|stream| async move {
        let _kept = stream;
        pending().await
    });
    assert_eq!(silent.await, ended(10, 0, "slow_headers"));
    let slow = served(|mut stream| async move { trickle(&mut stream, &request()).await });
    assert_eq!(slow.await, ended(10, 0, "slow_headers"));
    // The time of the second request begins with its first byte.
    let second = served(|mut stream| async move {
        stream.write_all(request().as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            answer.push(stream.read_u8().await.unwrap());
        }
        sleep(Duration::from_secs(60)).await;
        trickle(&mut stream, &request()).await;
    });
    assert_eq!(second.await, ended(70, 1, "slow_headers"));
}

/// The body of a call, in one piece or in chunks, and one that nobody wants.
#[tokio::test(start_paused = true)]
async fn slow_bodies_end_a_connection() {
    for (path, length, body) in [
        (PATH, format!("Content-Length: {}", BODY.len()), BODY.to_owned()),
        (PATH, "Transfer-Encoding: chunked".to_owned(), format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len())),
        ("/none", format!("Content-Length: {}", BODY.len()), BODY.to_owned()),
    ] {
        let head = head(path, &length);
        let slow = served(|mut stream| async move {
            stream.write_all(head.as_bytes()).await.unwrap();
            trickle(&mut stream, &body).await;
        });
        assert_eq!(slow.await, ended(10, 0, "slow_body"), "{path}: {length}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_read_end_a_connection() {
    let deaf = served(|mut stream| async move {
        stream.write_all(request().as_bytes()).await.unwrap();
        pending().await
    });
    assert_eq!(deaf.await, ended(10, 1, "slow_reader"));
    let slow = served(|mut stream| async move {
        stream.write_all(request().as_bytes()).await.unwrap();
        while stream.read_u8().await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(slow.await, ended(10, 1, "slow_reader"));
}

/// Whoever sends more and more requests and reads nothing is not read either.
#[tokio::test(start_paused = true)]
async fn pipelined_requests_wait_unread() {
    let flood =
        served(|mut stream| async move { while stream.write_all(request().as_bytes()).await.is_ok() {} });
    assert_eq!(flood.await, ended(10, 1, "slow_reader"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_just_in_time_is_served() {
    let in_time = served(|mut stream| async move {
        let request = request();
        let (head, body) = request.split_at(request.len() - BODY.len());
        for part in [head, body] {
            sleep(Duration::from_secs(9)).await;
            stream.write_all(part.as_bytes()).await.unwrap();
        }
        sleep(Duration::from_secs(9)).await;
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    });
    let in_time = in_time.await;
    assert_eq!((in_time.calls, in_time.refused), (1, Vec::new()));
}

/// Each code of gRPC has a name and a status. What has no room is unavailable: callers take 429 for a denial.
#[tokio::test(start_paused = true)]
async fn codes_have_names_and_statuses() {
    let codes = [
        (499, "canceled"),
        (500, "unknown"),
        (400, "invalid_argument"),
        (504, "deadline_exceeded"),
        (404, "not_found"),
        (409, "already_exists"),
        (403, "permission_denied"),
        (503, "unavailable"),
        (400, "failed_precondition"),
        (409, "aborted"),
        (400, "out_of_range"),
        (501, "unimplemented"),
        (500, "internal"),
        (503, "unavailable"),
        (500, "data_loss"),
        (401, "unauthenticated"),
    ];
    for (code, (status, name)) in (1..).zip(codes) {
        let client = served_by(Some(code), move |mut stream| async move {
            stream.write_all(request().as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"}") {
                answer.push(stream.read_u8().await.unwrap());
            }
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{code}: {answer}");
            let body = format!(r#"{{"code":"{name}","message":"why"}}"#);
            assert!(answer.ends_with(&body), "{code}: {answer}");
            assert_eq!(answer.contains("retry-after: 1\r\n"), status == 503, "{code}: {answer}");
        });
        assert_eq!(client.await.refused, Vec::<String>::new(), "{code}");
    }
}
