//! Where the RFCs leave no choice, and servers are lax all the same.

use super::PROTOCOL_ERROR;
use super::ground::Ground;
use super::reactions::each;
use super::requests::{ONE, STREAM, call, data, head, headers, plain, question};
use crate::support::frames::{
    ACK, END_STREAM, GOAWAY, HEADERS, PREFACE, frame, is_timeout, number, ping, settings, window_update,
};

/// RFC 9113, 3.4: SETTINGS are a part of the preface.
#[test]
fn a_first_frame_that_is_not_settings() {
    let ground = Ground::new();
    let rows: [(&str, Vec<u8>); 4] = [
        ("PING", ping(*b"too soon")),
        ("a call", call(1)),
        ("WINDOW_UPDATE", window_update(0, 1)),
        ("an unknown frame", frame(0x42, 0, 0, &[0; 8])),
    ];
    each(rows, |(what, first)| {
        let mut raw = ground.raw();
        raw.send(&[PREFACE, &first, &settings(&[])].concat());
        let end = loop {
            match raw.read() {
                Ok(frame) if frame.kind == GOAWAY => break Some(number(&frame.payload[4..])),
                Ok(frame) => {
                    let goes_on = frame.kind == HEADERS || frame.flags & ACK != 0;
                    assert!(!goes_on, "{what}: {frame:?}");
                }
                Err(error) if is_timeout(&error) => panic!("{what}: the connection lives on"),
                Err(_) => break None,
            }
        };
        assert!(matches!(end, None | Some(PROTOCOL_ERROR)), "{what}: {end:?}");
        ground.serves();
    });
}

/// RFC 9113, 8.1: whatever the call's message asked for.
#[test]
fn trailers_with_a_pseudo_header() {
    let ground = Ground::new();
    let rows = [":path", ":method", ":scheme", ":authority", ":status"];
    each(rows, |name| {
        for path in [ONE, STREAM] {
            let message = if path == ONE { question() } else { Vec::new() };
            let trailers = headers(1, END_STREAM, &plain(&[(name, "/")]));
            let request = [head(1, path), data(1, &message), trailers].concat();
            ground.open().refuses_request_only(&format!("{name} to {path}"), 1, &request);
        }
        ground.serves();
    });
}
