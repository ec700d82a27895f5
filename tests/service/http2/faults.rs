//! Errors of a connection, and of streams that may be taken for such.

use std::io::Read as _;

use super::ground::Ground;
use super::reactions::each;
use super::requests::{ONE, STREAM, call, fields, head, headers, plain, question};
use super::session::Session;
use super::{
    CLOSED, ENABLE_PUSH, FLOW, FRAME_SIZE_ERROR, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, PROTOCOL_ERROR, SIZE,
    STREAM_CLOSED,
};
use crate::support::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, GOAWAY, HEADERS, ObservedEnd, PADDED, PING, PREFACE, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, WITH_PRIORITY, frame, rst_stream, settings,
    window_update,
};

type Row = (&'static str, Vec<u8>, &'static [u32]);

const PROTOCOL: &[u32] = &[PROTOCOL_ERROR];
const SIZE_OR_PROTOCOL: &[u32] = &[FRAME_SIZE_ERROR, PROTOCOL_ERROR];
const CLOSED_OR_PROTOCOL: &[u32] = &[STREAM_CLOSED, PROTOCOL_ERROR];

/// Each on a connection of its own, which ends.
fn end_their_connections(rows: impl IntoIterator<Item = Row>) {
    let ground = Ground::new();
    each(rows, |(what, fault, codes)| {
        ground.open().ends_connection(what, &fault, codes);
        // And on one that has been used.
        let mut session = ground.open();
        session.does_not_mind(1, &[]);
        session.ends_connection(what, &fault, codes);
        ground.serves();
    });
    ground.holds(0);
}

fn one(kind: u8, flags: u8, stream: u32, length: usize) -> Vec<u8> {
    frame(kind, flags, stream, &vec![0; length])
}

/// A browser or a health check has connected to the wrong port.
#[test]
fn http_1_is_answered_in_http_1() {
    let ground = Ground::new();
    for request in
        ["GET / HTTP/1.1\r\nhost: weir\r\n\r\n", "POST /a HTTP/1.0\r\n\r\n", "HEAD", "PUT / HTTP/1.1\r\n"]
    {
        let raw = ground.raw();
        raw.send(request.as_bytes());
        let mut answer = String::new();
        raw.stream().read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 505 HTTP Version Not Supported\r\n"), "{answer:?}");
        assert!(answer.ends_with("see `server.admin`.\n"), "{answer:?}");
    }
    ground.serves();
    ground.holds(0);
}

/// RFC 9113, 3.4: a GOAWAY need not be sent.
#[test]
fn a_preface_that_is_none() {
    let ground = Ground::new();
    let mut almost = PREFACE.to_vec();
    almost[23] = b'!';
    let rows: [(&str, Vec<u8>); 5] = [
        ("HTTP/1.1", b"GET / HTTP/1.1\r\nhost: weir\r\n\r\n".to_vec()),
        ("another last byte", [&almost[..], &settings(&[])].concat()),
        ("no preface", [settings(&[]), call(1)].concat()),
        ("TLS", vec![0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]),
        ("zeros", vec![0; 24]),
    ];
    for (what, bytes) in rows {
        let mut raw = ground.raw();
        raw.send(&bytes);
        // What is no frame is not read as one: an answer in HTTP/1.1 would be.
        let end = raw.end();
        assert!(matches!(end, ObservedEnd::Closed(None | Some(PROTOCOL_ERROR))), "{what}: {end:?}");
        ground.serves();
    }
    ground.holds(0);
}

#[test]
fn settings_that_are_wrong() {
    end_their_connections([
        ("SETTINGS on a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL),
        ("five bytes", one(SETTINGS, 0, 0, 5), SIZE),
        ("seven bytes", one(SETTINGS, 0, 0, 7), SIZE),
        ("an acknowledgement with settings", one(SETTINGS, ACK, 0, 6), SIZE),
        ("an acknowledgement with a byte", one(SETTINGS, ACK, 0, 1), SIZE),
        ("ENABLE_PUSH of two", settings(&[(ENABLE_PUSH, 2)]), PROTOCOL),
        ("a frame of 16,383", settings(&[(MAX_FRAME_SIZE, 16_383)]), PROTOCOL),
        ("a frame of nothing", settings(&[(MAX_FRAME_SIZE, 0)]), PROTOCOL),
        ("a frame of 2^24", settings(&[(MAX_FRAME_SIZE, 1 << 24)]), PROTOCOL),
        ("a window of 2^31", settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)]), FLOW),
        ("a window of 2^32 - 1", settings(&[(INITIAL_WINDOW_SIZE, u32::MAX)]), FLOW),
    ]);
}

#[test]
fn lengths_that_are_wrong() {
    let unknown_stream = 101;
    end_their_connections([
        ("a PING of seven", one(PING, 0, 0, 7), SIZE),
        ("a PING of nine", one(PING, 0, 0, 9), SIZE),
        ("a PING of nothing", one(PING, ACK, 0, 0), SIZE),
        ("a WINDOW_UPDATE of three", one(WINDOW_UPDATE, 0, 0, 3), SIZE),
        ("a WINDOW_UPDATE of five", one(WINDOW_UPDATE, 0, 0, 5), SIZE),
        (
            "a stream's WINDOW_UPDATE of five",
            [head(unknown_stream, ONE), one(WINDOW_UPDATE, 0, 101, 5)].concat(),
            SIZE,
        ),
        ("a RST_STREAM of three", [head(unknown_stream, ONE), one(RST_STREAM, 0, 101, 3)].concat(), SIZE),
        ("a RST_STREAM of five", [head(unknown_stream, ONE), one(RST_STREAM, 0, 101, 5)].concat(), SIZE),
        ("a GOAWAY of seven", one(GOAWAY, 0, 0, 7), SIZE),
        ("SETTINGS of 16,386", one(SETTINGS, 0, 0, 16_386), SIZE),
        ("HEADERS of 16,385", one(HEADERS, END_HEADERS, unknown_stream, 16_385), SIZE),
        ("an unknown frame of 16,385", one(0x42, 0, 0, 16_385), SIZE),
        (
            "HEADERS with half a priority",
            frame(HEADERS, END_HEADERS | WITH_PRIORITY, unknown_stream, &[0; 4]),
            SIZE_OR_PROTOCOL,
        ),
        (
            "padded HEADERS of nothing",
            frame(HEADERS, END_HEADERS | PADDED, unknown_stream, &[]),
            SIZE_OR_PROTOCOL,
        ),
    ]);
}

#[test]
fn frames_on_streams_where_they_cannot_be() {
    end_their_connections([
        ("DATA on 0", one(DATA, 0, 0, 1), PROTOCOL),
        ("HEADERS on 0", headers(0, 0, &plain(&fields(ONE))), PROTOCOL),
        ("PRIORITY on 0", one(PRIORITY, 0, 0, 5), PROTOCOL),
        ("RST_STREAM on 0", rst_stream(0), PROTOCOL),
        ("CONTINUATION on 0", one(CONTINUATION, END_HEADERS, 0, 1), PROTOCOL),
        ("PING on a stream", one(PING, 0, 1, 8), PROTOCOL),
        ("GOAWAY on a stream", one(GOAWAY, 0, 1, 8), PROTOCOL),
        ("DATA on an idle stream", one(DATA, 0, 7, 1), CLOSED_OR_PROTOCOL),
        ("RST_STREAM on an idle stream", rst_stream(7), PROTOCOL),
        ("WINDOW_UPDATE on an idle stream", window_update(7, 1), PROTOCOL),
        ("HEADERS with an even id", head(2, ONE), PROTOCOL),
        ("RST_STREAM with an even id", rst_stream(2), PROTOCOL),
        ("an id that goes backwards", [head(9, ONE), head(7, ONE)].concat(), CLOSED_OR_PROTOCOL),
        ("PUSH_PROMISE", frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x83]), PROTOCOL),
        ("PUSH_PROMISE on an open stream", pushed(), PROTOCOL),
    ]);
}

fn pushed() -> Vec<u8> {
    [head(5, ONE), frame(PUSH_PROMISE, END_HEADERS, 5, &[0, 0, 0, 2, 0x83])].concat()
}

#[test]
fn header_blocks_that_are_interrupted() {
    let block = plain(&fields(ONE));
    let begun = |then: Vec<u8>| [frame(HEADERS, 0, 5, &block[..9]), then].concat();
    let rest = |stream| frame(CONTINUATION, END_HEADERS, stream, &block[9..]);
    end_their_connections([
        ("CONTINUATION alone", frame(CONTINUATION, END_HEADERS, 5, &block), PROTOCOL),
        ("CONTINUATION after a whole block", [head(5, ONE), rest(5)].concat(), PROTOCOL),
        ("CONTINUATION of another stream", begun(rest(3)), PROTOCOL),
        ("CONTINUATION on 0", begun(rest(0)), PROTOCOL),
        ("PING", begun(one(PING, 0, 0, 8)), PROTOCOL),
        ("SETTINGS", begun(settings(&[])), PROTOCOL),
        ("DATA", begun(one(DATA, 0, 5, 1)), PROTOCOL),
        ("WINDOW_UPDATE", begun(window_update(0, 1)), PROTOCOL),
        ("PRIORITY", begun(one(PRIORITY, 0, 5, 5)), PROTOCOL),
        ("RST_STREAM", begun(rst_stream(5)), PROTOCOL),
        ("other HEADERS", begun(head(7, ONE)), PROTOCOL),
        ("an unknown frame", begun(one(0x42, 0, 5, 3)), PROTOCOL),
        ("GOAWAY", begun(one(GOAWAY, 0, 0, 8)), PROTOCOL),
    ]);
}

#[test]
fn padding_longer_than_its_frame() {
    let question = question();
    let padded = |length: u8| frame(DATA, PADDED, 5, &[&[length][..], &question].concat());
    let too_much = u8::try_from(question.len() + 1).unwrap();
    let block = plain(&fields(ONE));
    let in_headers = |length: u8, more: u8, bytes: &[u8]| {
        frame(HEADERS, END_HEADERS | PADDED | more, 5, &[&[length][..], bytes].concat())
    };
    end_their_connections([
        ("DATA by one", [head(5, ONE), padded(too_much)].concat(), PROTOCOL),
        ("DATA by far", [head(5, ONE), padded(255)].concat(), PROTOCOL),
        ("HEADERS by one", in_headers(10, 0, &block[..9]), PROTOCOL),
        ("HEADERS that begin with a priority", in_headers(5, WITH_PRIORITY, &[0; 9]), PROTOCOL),
    ]);
}

/// Where the RFC speaks of the stream and allows the connection.
#[test]
fn faults_of_one_stream() {
    let ground = Ground::new();
    let rows: [Row; 4] = [
        ("DATA of 16,385", [head(1, ONE), one(DATA, 0, 1, 16_385)].concat(), SIZE),
        ("PRIORITY of four", [head(1, ONE), one(PRIORITY, 0, 1, 4)].concat(), SIZE),
        ("padded DATA of nothing", [head(1, ONE), frame(DATA, PADDED, 1, &[])].concat(), SIZE_OR_PROTOCOL),
        ("HEADERS of nothing", headers(1, 0, &[]), PROTOCOL),
    ];
    each(rows, |(what, fault, codes)| {
        ground.open().ends_stream_or_connection(what, 1, &fault, codes);
        ground.serves();
    });
}

/// The answers have no window, so that no stream has closed for another reason.
#[test]
fn streams_that_have_ended() {
    let ground = Ground::new();
    let data = one(DATA, 0, 1, 5);
    let block = headers(1, 1, &plain(&[("x-late", "1")]));
    for (what, fault) in [("DATA", data), ("HEADERS", block)] {
        let open = || ground.open_with(&[(INITIAL_WINDOW_SIZE, 0)]);
        let fault_after = |first: Vec<u8>| [first, fault.clone()].concat();
        open().ends_stream_or_connection(what, 1, &fault_after(call(1)), CLOSED);
        let ended_at_once = headers(1, 1, &plain(&fields(STREAM)));
        session_after(ground.open(), &ended_at_once)
            .ends_connection_or_ignores_closed_stream(what, &fault, CLOSED);
        ground.serves();
    }
}

/// After its answer.
fn session_after(mut session: Session, call: &[u8]) -> Session {
    session.send(call);
    session.ended(1);
    session
}
