//! The table of differences of `crates/grpc/README.md`, as far as a client of one connection sees them.

use std::io::Write as _;

use http::{HeaderMap, HeaderValue, Method};
use prost::Message as _;
use weir_config::{Config, ServerConfig, ServerLimits, TransportKind};
use weir_proto::v1::{RefundRequest, ShouldAllowRequest, ShouldAllowStreamRequest, StreamedRequest};

use super::client::{Call, Outcome};
use super::{BATCH, CHECK, RATE_LIMIT, REFUND, SHOULD_ALLOW, STREAM, TRANSPORTS, on_both, peek, unary};
use crate::support::frames::{
    self, ACK, DATA, END_STREAM, ObservedEnd, PING, PREFACE, Raw, SETTINGS, frame, ping, rst_stream, settings,
};
use crate::support::grpc::framed;
use crate::support::server::{Server, config};

/// A real server on this transport.
fn server(transport: TransportKind, limits: ServerLimits) -> Server {
    let server = ServerConfig { transport, limits, ..config().server };
    Server::start(Config { server, ..config() })
}

/// Both answers to one call.
async fn both(call: Call) -> (Outcome, Outcome) {
    let [mut fast, mut tonic] = on_both(&[call]).await;
    (fast.remove(0), tonic.remove(0))
}

fn http_of(outcome: &Outcome) -> u16 {
    outcome.http_status.expect("there is an answer").as_u16()
}

#[tokio::test]
async fn a_call_without_a_message_has_another_status() {
    for path in [SHOULD_ALLOW, BATCH].into_iter().chain(cfg!(feature = "envoy").then_some(RATE_LIMIT)) {
        let (fast, tonic) = both(Call::new(path, vec![])).await;
        assert_eq!((fast.code, tonic.code), (Some(12), Some(13)), "{path}");
        assert!(fast.body.is_empty() && tonic.body.is_empty());
    }
}

#[tokio::test]
async fn a_call_with_two_messages_is_refused_by_one_and_answered_by_the_other() {
    let mut call = unary(SHOULD_ALLOW, &peek("burst/x", "bob"));
    call.body = [call.body.clone(), call.body].concat();
    let (fast, tonic) = both(call).await;
    assert_eq!((fast.code, tonic.code), (Some(12), Some(0)));
}

/// tonic takes the prefix of a message for an end of the stream, if nothing follows it.
#[tokio::test]
async fn a_stream_that_ends_behind_a_prefix_fails_on_one_only() {
    let (fast, tonic) = both(Call::new(STREAM, vec![0, 0, 0, 0, 9])).await;
    assert_eq!((fast.code, tonic.code), (Some(13), Some(0)));
}

#[tokio::test]
async fn what_is_not_grpc_is_refused_by_one_and_served_by_the_other() {
    let call = unary(SHOULD_ALLOW, &peek("burst/x", "bob"));
    let json = HeaderValue::from_static("application/json");
    let (fast, tonic) = both(Call { content_type: Some(json), ..call.clone() }).await;
    assert_eq!((http_of(&fast), http_of(&tonic)), (415, 200));
    let text = String::from_utf8(fast.body).unwrap();
    assert!(text.contains("speaks gRPC") && text.contains("server.admin"), "{text}");
    let (fast, tonic) = both(Call { verb: Method::PUT, ..call }).await;
    assert_eq!((http_of(&fast), http_of(&tonic)), (405, 200));
}

/// The words of the transports differ, and no more than that.
#[tokio::test]
async fn faults_of_messages_have_the_same_status() {
    let question = unary(SHOULD_ALLOW, &peek("burst/x", "bob"));
    let faults = [
        (Call::new(SHOULD_ALLOW, framed(1, b"x")), 13),
        (Call::new(SHOULD_ALLOW, framed(7, b"x")), 13),
        (Call::new(SHOULD_ALLOW, framed(0, &vec![0; (64 << 10) + 1])), 8),
        (Call::new(SHOULD_ALLOW, framed(0, &vec![0; (1 << 20) + 1])), 8),
        (Call::new(BATCH, framed(0, &vec![0; (1 << 20) + 1])), 8),
        (Call::new(STREAM, framed(0, &vec![0; (64 << 10) + 1])), 8),
        (Call::new(REFUND, framed(0, &vec![0; (1 << 20) + 1])), 8),
        (Call::new(CHECK, framed(0, &vec![0; (64 << 10) + 1])), 8),
        (Call::new(SHOULD_ALLOW, framed(1, b"x")).with("grpc-encoding", "gzip"), 13),
        (Call::new(REFUND, framed(1, b"x")).with("grpc-encoding", "gzip"), 13),
        (Call::new(BATCH, gzip(&vec![0; (1 << 20) + 1])).with("grpc-encoding", "gzip"), 8),
        (Call::new(STREAM, gzip(&vec![0; (64 << 10) + 1])).with("grpc-encoding", "gzip"), 8),
        (Call::new(SHOULD_ALLOW, question.body[..8].to_vec()), 13),
        (question.clone().with("grpc-encoding", "deflate"), 12),
        (Call::new("/no.Such/Method", framed(0, b"")).with("grpc-encoding", "deflate"), 12),
    ];
    for (call, code) in faults {
        let (fast, tonic) = both(call.clone()).await;
        assert_eq!((fast.code, tonic.code), (Some(code), Some(code)), "{call:?}");
    }
    let (fast, tonic) = both(question.with("grpc-encoding", "deflate")).await;
    assert_eq!(fast.metadata.get("grpc-accept-encoding").map(String::as_str), Some("identity,gzip"));
    assert_eq!(fast.metadata.get("grpc-accept-encoding"), tonic.metadata.get("grpc-accept-encoding"));
}

/// As grpc-java on netty sends cancelled calls: HEADERS, RST_STREAM, and then DATA that was queued before.
#[tokio::test]
async fn late_data_of_cancelled_calls_ends_the_connection_on_one_only() {
    let cancelled = |stream| {
        [frames::headers(stream, false), rst_stream(stream), frame(DATA, END_STREAM, stream, b"12345")]
            .concat()
    };
    let limits = ServerLimits { max_local_resets: 20, ..ServerLimits::default() };
    let ends = TRANSPORTS.map(|transport| {
        let server = server(transport, limits.clone());
        let mut raw = Raw::open(server.grpc);
        raw.send(&(0..200).flat_map(|index| cancelled(1 + 2 * index)).collect::<Vec<u8>>());
        let is_open = raw.try_send(&ping(*b"12345678")) && raw.pong(*b"12345678");
        if is_open { ObservedEnd::Open } else { raw.end() }
    });
    assert_eq!(ends[0], ObservedEnd::Open);
    assert!(matches!(ends[1], ObservedEnd::Closed(_)), "{ends:?}");
}

/// A stream with one question in each message, sent ahead of the answers. The client reads none, so that all of it waits.
#[tokio::test]
async fn small_messages_that_wait_end_the_connection_on_one_only() {
    const MESSAGES: usize = 4_000;
    let question = StreamedRequest { id: 1, request: Some(peek("burst/x", "b")) };
    let message = framed(0, &ShouldAllowStreamRequest { requests: vec![question] }.encode_to_vec());
    assert!(MESSAGES * message.len() < 128 << 10, "they fit into the stream's window");
    let ends = TRANSPORTS.map(|transport| {
        let server = server(transport, ServerLimits::default());
        let mut raw = Raw::connect(server.grpc);
        const INITIAL_WINDOW_SIZE: u16 = 4;
        raw.send(&[PREFACE, &settings(&[(INITIAL_WINDOW_SIZE, 0)])].concat());
        // The server's window counts from the acknowledgement on; before, it is half as large.
        raw.settings();
        raw.send(&frame(SETTINGS, ACK, 0, b""));
        raw.send(&frames::call_headers(1, STREAM, &[]));
        let is_sent = (0..MESSAGES).all(|_| raw.try_send(&frame(DATA, 0, 1, &message)))
            && raw.try_send(&ping(*b"12345678"));
        // What the server sent before it answered the PING says why a connection stayed open: tonic's did once in some hundred runs.
        let (mut sent, mut is_open) = (Vec::new(), false);
        while is_sent
            && !is_open
            && let Ok(frame) = raw.read()
        {
            is_open = frame.kind == PING && frame.flags & ACK != 0 && frame.payload == b"12345678";
            sent.push(frame);
        }
        (if is_open { ObservedEnd::Open } else { raw.end() }, sent)
    });
    assert_eq!(ends[0].0, ObservedEnd::Open);
    assert!(matches!(ends[1].0, ObservedEnd::Closed(_)), "{ends:?}");
}

/// Above the bound of headers the transports have different answers; neither ends the connection.
#[tokio::test]
async fn large_headers_are_refused_with_grpcs_status_or_with_https() {
    for bytes in [17 << 10, 63 << 10] {
        let large = unary(SHOULD_ALLOW, &peek("burst/x", "bob")).with("x", &"y".repeat(bytes));
        let [fast, tonic] = on_both(&[large, unary(SHOULD_ALLOW, &peek("burst/x", "bob"))]).await;
        assert_eq!((fast[0].code, http_of(&fast[0])), (Some(8), 200), "{bytes}");
        assert_eq!((tonic[0].code, http_of(&tonic[0])), (None, 431), "{bytes}");
        assert_eq!((fast[1].code, tonic[1].code), (Some(0), Some(0)), "{bytes}");
    }
}

/// Requests of a channel that compresses: they are read, and answered as plain ones are.
#[tokio::test]
async fn compressed_requests_have_the_same_answers() {
    let asked = peek("burst/x", "bob").encode_to_vec();
    for (path, message) in [
        (SHOULD_ALLOW, asked.clone()),
        (BATCH, [&[10, asked.len() as u8][..], &asked].concat()),
        (STREAM, [&[8, 7, 18, asked.len() as u8][..], &asked].concat()),
        (REFUND, asked.clone()),
        (CHECK, Vec::new()),
    ] {
        let plain = Call::new(path, framed(0, &message));
        let compressed = Call::new(path, gzip(&message)).with("grpc-encoding", "gzip");
        let [fast, tonic] = on_both(&[plain, compressed]).await;
        assert!(fast[0].code.is_some() && !fast[0].metadata.contains_key("grpc-encoding"), "{path}");
        assert_eq!(fast[0], fast[1], "{path}");
        assert_eq!(tonic[0], tonic[1], "{path}");
        assert_eq!(fast[0].body, tonic[0].body, "{path}");
    }
}

/// Programs had only the text of an error to go by.
#[tokio::test]
async fn errors_have_the_same_details() {
    for (consumer, resource, strategy, part) in [
        ("c".repeat(600), "burst/x", "", "google.rpc.BadRequest"),
        ("bob".to_owned(), "burst/x", "nothing", "UNKNOWN_STRATEGY"),
        ("bob".to_owned(), "nothing at all", "", "UNKNOWN_RESOURCE"),
    ] {
        let asked = ShouldAllowRequest { strategy: strategy.to_owned(), ..peek(resource, &consumer) };
        let (resource, consumer, strategy) = (resource.to_owned(), consumer, strategy.to_owned());
        let refund = RefundRequest { resource, consumer, strategy, ..RefundRequest::default() };
        for call in [unary(SHOULD_ALLOW, &asked), unary(REFUND, &refund)] {
            let path = call.path.clone();
            let (fast, tonic) = both(call).await;
            let details = fast.metadata.get("grpc-status-details-bin").expect("there are details");
            assert_eq!(Some(details), tonic.metadata.get("grpc-status-details-bin"), "{path}");
            let fields = [("grpc-status", "3"), ("grpc-status-details-bin", details)];
            let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let status = tonic::Status::from_header_map(&HeaderMap::from_iter(fields)).unwrap();
            assert!(String::from_utf8_lossy(status.details()).contains(part), "{path}: {part}");
        }
    }
}

/// A message that is compressed, with its prefix.
fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(message).unwrap();
    framed(1, &encoder.finish().unwrap())
}
