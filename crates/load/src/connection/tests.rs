//! A server's side of the connection, byte by byte.

use std::sync::Arc;

use super::*;
use crate::access::ServerAccess;
use crate::answer::CountedAnswer;
use crate::plan::{CallMode, CallProtocol, PlannedQuestion, Spread};
use weir_grpc::frames::{self, Frame, flag, kind, setting, write, write_settings};

const END: u8 = flag::END_HEADERS | flag::END_STREAM;

/// `:status: 200`, from the static table; and `grpc-status` spelled out without Huffman's code.
const OK: &[u8] = &[0x88];
fn status(code: &str, message: &str) -> Vec<u8> {
    let mut block = vec![0];
    for text in ["grpc-status", code] {
        block.push(text.len() as u8);
        block.extend_from_slice(text.as_bytes());
    }
    if !message.is_empty() {
        block.push(0);
        for text in ["grpc-message", message] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A `ShouldAllowResponse` that allows.
const ALLOWED: &[u8] = &[0, 0, 0, 0, 2, 8, 1];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, kind, flags, stream, payload);
    bytes
}

fn answer(stream: u32) -> Vec<u8> {
    [
        frame(kind::HEADERS, flag::END_HEADERS, stream, OK),
        frame(kind::DATA, 0, stream, ALLOWED),
        frame(kind::HEADERS, END, stream, &status("0", "")),
    ]
    .concat()
}

fn greeting(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_settings(&mut bytes, settings);
    bytes
}

fn connection(settings: &[(u16, u32)]) -> LoadConnection {
    let ask = PlannedQuestion {
        resources: vec!["api".to_owned()],
        consumer: "bob".to_owned(),
        strategy: String::new(),
        attributes: vec![],
        cost: 1,
        domain: String::new(),
        descriptor: vec![],
        keys: 1,
        spread: Spread::Uniform,
    };
    let mut connection = LoadConnection::new(
        Arc::new(CallShape::new(CallMode::Unary, CallProtocol::Grpc, &ask)),
        "localhost:1",
        &ServerAccess::default(),
    );
    assert!(receive(&mut connection, &greeting(settings)).is_empty());
    sent(&mut connection);
    connection
}

fn receive(connection: &mut LoadConnection, bytes: &[u8]) -> Vec<(u64, Result<CountedAnswer, Failure>)> {
    let mut outcomes = Vec::new();
    let mut sink = |outcome: CallOutcome| outcomes.push((outcome.call.due_ns, outcome.result));
    connection.receive(bytes, &mut sink).unwrap();
    outcomes
}

/// The frames to write: kind, flags, stream and length of each.
fn sent(connection: &mut LoadConnection) -> Vec<(u8, u8, u32, usize)> {
    let mut bytes = connection.to_write().to_vec();
    connection.written(bytes.len());
    if bytes.starts_with(frames::PREFACE) {
        bytes.drain(..frames::PREFACE.len());
    }
    let (mut frames, mut rest) = (Vec::new(), bytes.as_slice());
    while let Some((frame, length)) = frames::first(rest).unwrap() {
        let Frame { kind, flags, stream, payload } = frame;
        frames.push((kind, flags, stream, payload.len()));
        rest = &rest[length..];
    }
    frames
}

/// The n-th call is due at n.
fn call(connection: &mut LoadConnection, number: u64, message: &[u8]) {
    let call = LoadCall { due_ns: number, sent_ns: number, key: 0, counts: true };
    connection.call(message, call);
}

fn allowed() -> Result<CountedAnswer, Failure> {
    Ok(CountedAnswer { allowed: 1, ..CountedAnswer::default() })
}

#[test]
fn answers_are_read_wherever_the_bytes_are_torn() {
    let bytes = [answer(3), frame(kind::PING, 0, 0, b"12345678"), answer(1)].concat();
    for at in 0..bytes.len() {
        let mut connection = connection(&[]);
        call(&mut connection, 1, b"m");
        call(&mut connection, 2, b"m");
        let mut outcomes = receive(&mut connection, &bytes[..at]);
        outcomes.extend(receive(&mut connection, &bytes[at..]));
        assert_eq!(outcomes, [(2, allowed()), (1, allowed())], "torn at {at}");
        assert_eq!(connection.unanswered(), 0);
        assert!(sent(&mut connection).contains(&(kind::PING, flag::ACK, 0, 8)));
    }
    let mut connection = connection(&[]);
    call(&mut connection, 1, b"m");
    let mut outcomes = Vec::new();
    for byte in answer(1) {
        outcomes.extend(receive(&mut connection, &[byte]));
    }
    assert_eq!(outcomes, [(1, allowed())]);
}

#[test]
fn messages_and_headers_may_come_in_pieces_and_padded() {
    let mut connection = connection(&[]);
    call(&mut connection, 1, b"m");
    let trailers = status("0", "");
    let (head, tail) = trailers.split_at(4);
    let bytes = [
        frame(kind::HEADERS, flag::END_HEADERS | flag::PRIORITY, 1, &[&[0; 5], OK].concat()),
        frame(kind::DATA, 0, 1, b""),
        frame(kind::DATA, flag::PADDED, 1, &[&[3], &ALLOWED[..2], &[0; 3]].concat()),
        frame(kind::DATA, 0, 1, &ALLOWED[2..]),
        frame(kind::HEADERS, flag::END_STREAM, 1, head),
        frame(kind::CONTINUATION, 0, 1, &tail[..1]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 1, &tail[1..]),
    ];
    assert_eq!(receive(&mut connection, &bytes.concat()), [(1, allowed())]);
}

#[test]
fn every_way_to_fail_is_told_apart() {
    let failures = [
        (frame(kind::HEADERS, END, 1, &status("5", "no such")), Failure::Status(5, "no such".to_owned())),
        (frame(kind::HEADERS, END, 1, &[0x8d]), Failure::Http(404)),
        (frame(kind::RST_STREAM, 0, 1, &7_u32.to_be_bytes()), Failure::Reset(7)),
        (frame(kind::HEADERS, END, 1, &status("0", "")), Failure::Malformed),
        (frame(kind::DATA, flag::END_STREAM, 1, ALLOWED), Failure::Malformed),
        (frame(kind::DATA, 0, 1, &[0, 0, 0, 0, 1, 8]), Failure::Malformed),
    ];
    for (bytes, failure) in failures {
        let mut connection = connection(&[]);
        call(&mut connection, 1, b"m");
        assert_eq!(receive(&mut connection, &bytes), [(1, Err(failure))]);
        assert_eq!(receive(&mut connection, &answer(1)), [], "nobody waits for stream 1 any longer");
    }
}

#[test]
fn what_the_windows_do_not_allow_is_held_back() {
    let mut connection = connection(&[(setting::INITIAL_WINDOW_SIZE, 20_000)]);
    call(&mut connection, 1, &[0; 50_000]);
    let headers = |frames: &[(u8, u8, u32, usize)]| frames[0].0 == kind::HEADERS;
    let frames = sent(&mut connection);
    assert!(headers(&frames));
    assert_eq!(frames[1..], [(kind::DATA, 0, 1, 16_384), (kind::DATA, 0, 1, 3_616)]);
    assert!(!connection.has_room(), "one message at a time is held back");

    let grant = |stream, more: u32| frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    receive(&mut connection, &[grant(0, 1 << 20), grant(3, 99)].concat());
    assert_eq!(sent(&mut connection), []);
    receive(&mut connection, &grant(1, 10_000));
    assert_eq!(sent(&mut connection), [(kind::DATA, 0, 1, 10_000)]);
    receive(&mut connection, &greeting(&[(setting::INITIAL_WINDOW_SIZE, 50_000)]));
    let rest = [(kind::DATA, 0, 1, 16_384), (kind::DATA, flag::END_STREAM, 1, 3_616)];
    assert_eq!(sent(&mut connection)[..2], rest);
    assert!(connection.has_room());

    call(&mut connection, 2, &[0; 100]);
    assert_eq!(sent(&mut connection)[1..], [(kind::DATA, flag::END_STREAM, 3, 100)]);
}

#[test]
fn the_connections_window_is_shared() {
    let mut connection = connection(&[]);
    call(&mut connection, 1, &[0; 40_000]);
    call(&mut connection, 2, &[0; 40_000]);
    let data: usize = sent(&mut connection).iter().filter(|it| it.0 == kind::DATA).map(|it| it.3).sum();
    assert_eq!(data, 65_535);
    let grant = frame(kind::WINDOW_UPDATE, 0, 0, &20_000_u32.to_be_bytes());
    receive(&mut connection, &grant);
    assert_eq!(sent(&mut connection), [(kind::DATA, flag::END_STREAM, 3, 14_465)]);
}

#[test]
fn no_more_streams_are_opened_than_the_server_allows() {
    let mut connection = connection(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
    call(&mut connection, 1, b"m");
    assert!(connection.has_room());
    call(&mut connection, 2, b"m");
    assert!(!connection.has_room());
    receive(&mut connection, &answer(1));
    assert!(connection.has_room());
}

#[test]
fn a_server_that_goes_away_answers_what_it_has_taken() {
    let mut connection = connection(&[]);
    for number in 1..=3 {
        call(&mut connection, number, b"m");
    }
    let goaway = |last: u32| frame(kind::GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &[0; 4]].concat());
    assert_eq!(receive(&mut connection, &goaway(u32::MAX >> 1)), []);
    assert!(!connection.has_room() && !connection.is_over());
    assert_eq!(receive(&mut connection, &goaway(3)), [(3, Err(Failure::Lost))]);
    assert_eq!(receive(&mut connection, &[answer(1), answer(3)].concat()), [(1, allowed()), (2, allowed())]);
    assert!(connection.is_over());

    let mut connection = self::connection(&[]);
    call(&mut connection, 1, b"m");
    assert_eq!(receive(&mut connection, &goaway(0)), [(1, Err(Failure::Lost))]);
}

#[test]
fn calls_without_an_answer_are_given_up_in_time_or_with_the_connection() {
    let mut connection = connection(&[]);
    for number in 1..=3 {
        call(&mut connection, number, b"m");
    }
    sent(&mut connection);
    let mut ended = Vec::new();
    connection.expire(3, &mut |outcome| ended.push((outcome.call.due_ns, outcome.result)));
    assert_eq!(ended, [(1, Err(Failure::Timeout)), (2, Err(Failure::Timeout))]);
    assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 0, 1, 4), (kind::RST_STREAM, 0, 3, 4)]);
    ended.clear();
    connection.lose(&mut |outcome| ended.push((outcome.call.due_ns, outcome.result)));
    assert_eq!(ended, [(3, Err(Failure::Lost))]);
    assert!(connection.is_over());
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    let broken = [
        frame(kind::PUSH_PROMISE, 0, 1, &[0; 4]),
        frame(kind::CONTINUATION, 0, 1, b""),
        frame(kind::RST_STREAM, 0, 1, b""),
        frame(kind::WINDOW_UPDATE, 0, 0, b"\0"),
        frame(kind::HEADERS, END, 1, &[0xff, 0xff]),
        frame(kind::DATA, flag::PADDED, 1, &[9]),
    ];
    for bytes in &broken {
        let mut connection = connection(&[]);
        call(&mut connection, 1, b"m");
        assert!(connection.receive(bytes, &mut |_| ()).is_err(), "{bytes:?}");
    }
    let ask_first = frame(kind::PING, 0, 0, &[0; 8]);
    let mut fresh =
        LoadConnection::new(Arc::clone(&connection(&[]).service), "localhost:1", &ServerAccess::default());
    assert!(fresh.receive(&ask_first, &mut |_| ()).is_err(), "a server greets with SETTINGS");
}
