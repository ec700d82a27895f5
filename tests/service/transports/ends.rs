//! The ends of calls and connections, on both transports alike.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use weir_config::ServerLimits;
use weir_proto::v1::{ShouldAllowRequest, ShouldAllowStreamRequest, StreamedRequest};
use weir_units::Micros;

use super::client::{Call, Client, Ends};
use super::{SHOULD_ALLOW, STREAM, Served, TRANSPORTS, WATCH, peek, unary};
use crate::support::grpc::framed;
use crate::support::server::ask;
use crate::support::{SOON, scratch};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Three of the six bytes that the frame announces.
const HALF_OF_SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0";

fn question() -> Call {
    unary(SHOULD_ALLOW, &ShouldAllowRequest { peek: true, ..ask("burst/x", "bob") })
}

/// A stream with one question that stays open.
fn open_stream() -> Call {
    let request = Some(peek("burst/x", "bob"));
    let message = ShouldAllowStreamRequest { requests: vec![StreamedRequest { id: 1, request }] };
    Call { ends: Ends::Never, ..unary(STREAM, &message) }
}

/// A call whose message does not arrive ends when its caller stops waiting.
#[tokio::test]
async fn late_calls_end_at_their_deadline() {
    for transport in TRANSPORTS {
        let mut served = Served::by(transport);
        let mut client = served.client().await;
        let mut call = question().with("grpc-timeout", "30m");
        (call.ends, call.body) = (Ends::Never, call.body[..7].to_vec());
        let outcome = timeout(SOON, client.call(&call)).await.expect("the deadline ends it");
        assert_eq!(outcome.code, Some(4), "{transport:?}: {outcome:?}");
        let watch = Call::new(WATCH, framed(0, b"")).with("grpc-timeout", "30m");
        let outcome = timeout(SOON, client.call(&watch)).await.expect("the deadline ends it");
        assert_eq!(outcome.code, Some(4), "{transport:?}: {outcome:?}");
        for stream in [Call { ends: Ends::Never, ..Call::new(STREAM, vec![]) }, open_stream()] {
            let call = stream.with("grpc-timeout", "30m");
            let outcome = timeout(SOON, client.call(&call)).await.expect("the deadline ends it");
            assert_eq!(outcome.code, Some(4), "{transport:?}: {outcome:?}");
        }
    }
}

/// GOAWAY, an end of streams and watches, and then the end of the connection.
#[tokio::test]
async fn a_server_that_stops_ends_its_streams_and_its_connections() {
    for transport in TRANSPORTS {
        let mut served = Served::by(transport);
        let (ours, theirs) = duplex(64 << 10);
        served.serve(theirs);
        let mut client = Client::connect(ours).await;
        let stream = client.begin(&open_stream()).await.unwrap();
        let watch = client.begin(&Call { ends: Ends::WithBody, ..Call::new(WATCH, framed(0, b"")) }).await;
        assert_eq!(client.call(&question()).await.code, Some(0));
        served.stop();
        let outcome = timeout(SOON, stream.outcome()).await.expect("the stream ends");
        assert_eq!(outcome.code, Some(14), "{transport:?}: {outcome:?}");
        assert!(!outcome.body.is_empty(), "{transport:?}: what was asked before is answered");
        let message = outcome.message.unwrap_or_default();
        assert!(message.contains("ask%20again"), "{transport:?}: {message}");
        let outcome = timeout(SOON, watch.unwrap().outcome()).await.expect("the watch ends");
        assert_eq!(outcome.code, Some(0), "{transport:?}: {outcome:?}");
        let refused = async {
            while client.begin(&question()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, refused).await.expect("the connection takes no more calls");
    }
}

#[tokio::test]
async fn an_old_connection_ends_its_streams() {
    let limits = ServerLimits { max_connection_age: Some(Micros::from_secs(1)), ..ServerLimits::default() };
    for transport in TRANSPORTS {
        let mut served = Served::with(transport, limits.clone(), None);
        let mut client = served.client().await;
        let outcome = timeout(SOON, client.call(&open_stream())).await.expect("the stream ends");
        assert_eq!(outcome.code, Some(14), "{transport:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_speak_is_cut_off() {
    let limits = ServerLimits { handshake_timeout: Micros::from_millis(100), ..ServerLimits::default() };
    for transport in TRANSPORTS {
        for beginning in [&b""[..], b"PRI * HTTP/2.0\r\n", PREFACE, &[PREFACE, HALF_OF_SETTINGS].concat()] {
            let mut served = Served::with(transport, limits.clone(), None);
            let (mut ours, theirs) = duplex(64 << 10);
            served.serve(theirs);
            ours.write_all(beginning).await.unwrap();
            let ended = timeout(SOON, ours.read_to_end(&mut Vec::new())).await;
            ended.expect("the connection ends").expect("a pipe does not fail");
        }
        // One that does speak stays.
        let mut served = Served::with(transport, limits.clone(), None);
        let mut client = served.client().await;
        assert_eq!(client.call(&question()).await.code, Some(0));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(client.call(&question()).await.code, Some(0), "{transport:?}");
    }
}

#[tokio::test]
async fn connections_may_be_unix_sockets() {
    for transport in TRANSPORTS {
        let folder = scratch::dir("transports-");
        let path = folder.path().join("weir.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ours = UnixStream::connect(&path).await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        let mut served = Served::by(transport);
        served.serve(theirs);
        assert_eq!(Client::connect(ours).await.call(&question()).await.code, Some(0));
    }
}
