//! Requests that are malformed (RFC 9113, 8.1.1): they end alone.

use super::ground::Ground;
use super::reactions::each;
use super::requests::{ONE, STREAM, body, fields, head, headers, literal, plain, question};
use crate::support::frames::{DATA, END_STREAM, frame};

/// Headers with this besides, as bytes.
fn with(more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let more: Vec<u8> = more.iter().flat_map(|(name, value)| literal(name, value)).collect();
    [plain(&fields(ONE)), more].concat()
}

/// Headers without this one.
fn without(name: &str) -> Vec<u8> {
    plain(&fields(ONE).into_iter().filter(|(it, _)| *it != name).collect::<Vec<_>>())
}

/// Headers with this one's value another.
fn changed(name: &str, value: &str) -> Vec<u8> {
    let change = |(it, old)| if it == name { (it, value) } else { (it, old) };
    plain(&fields(ONE).into_iter().map(change).collect::<Vec<_>>())
}

/// Headers that begin with this one.
fn before(name: &str, value: &str) -> Vec<u8> {
    plain(&[vec![(name, value)], fields(ONE)].concat())
}

/// Each as the headers of a whole call, and of one without a body.
fn are_refused(rows: &[(&str, Vec<u8>)]) {
    let ground = Ground::new();
    each(rows, |(what, block)| {
        let call = [headers(1, 0, block), body(1, &question())].concat();
        ground.open().refuses_request_only(what, 1, &call);
        ground.open().refuses_request_only(what, 1, &headers(1, END_STREAM, block));
        ground.serves();
    });
}

#[test]
fn pseudo_headers() {
    are_refused(&[
        ("no :method", without(":method")),
        ("no :scheme", without(":scheme")),
        ("no :path", without(":path")),
        (":method twice", before(":method", "POST")),
        (":scheme twice", before(":scheme", "http")),
        (":path twice", before(":path", ONE)),
        (":authority twice", before(":authority", "weir")),
        ("an empty :path", changed(":path", "")),
        ("a response's", before(":status", "200")),
        ("one after an ordinary one", [literal(b"x-a", b"1"), plain(&fields(ONE))].concat()),
        (":path after ordinary ones", [without(":path"), literal(b":path", ONE.as_bytes())].concat()),
    ]);
}

#[test]
fn unknown_pseudo_headers() {
    let rows = [
        ("the first one", before(":weir", "1")),
        ("the last one", with(&[(b":weir", b"1")])),
        ("one without a name", with(&[(b":", b"1")])),
    ];
    are_refused(&rows);
}

#[test]
fn headers_of_a_connection() {
    are_refused(&[
        ("connection", with(&[(b"connection", b"close")])),
        ("keep-alive", with(&[(b"keep-alive", b"timeout=5")])),
        ("proxy-connection", with(&[(b"proxy-connection", b"keep-alive")])),
        ("transfer-encoding", with(&[(b"transfer-encoding", b"chunked")])),
        ("upgrade", with(&[(b"upgrade", b"h2c")])),
        ("te: gzip", changed("te", "gzip")),
        ("te: trailers, gzip", changed("te", "trailers, gzip")),
    ]);
}

/// RFC 9113, 8.2.1.
#[test]
fn names_and_values() {
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("an uppercase name", with(&[(b"X-Upper", b"1")])),
        ("one uppercase letter", with(&[(b"x-uppeR", b"1")])),
        ("a name with a space", with(&[(b"x a", b"1")])),
        ("a name with a colon", with(&[(b"x:a", b"1")])),
        ("a name with a control", with(&[(b"x\x7f", b"1")])),
        ("a name beyond ASCII", with(&[(b"x\x80", b"1")])),
        ("an empty name", with(&[(b"", b"1")])),
        ("a value with NUL", with(&[(b"x-a", b"1\x002")])),
        ("a value with CR", with(&[(b"x-a", b"1\r2")])),
        ("a value with LF", with(&[(b"x-a", b"1\n2")])),
        ("a value that is LF", with(&[(b"x-a", b"\n")])),
    ];
    are_refused(&rows);
}

#[test]
fn content_lengths() {
    let ground = Ground::new();
    let block = |length: &str| plain(&[fields(ONE), vec![("content-length", length)]].concat());
    let question = question();
    let right = question.len();
    let (less, more, signed) = ((right - 1).to_string(), (right + 1).to_string(), format!("+{right}"));
    let rows = [
        ("less than comes", less.as_str()),
        ("more than comes", more.as_str()),
        ("nothing, and something comes", "0"),
        ("far more", "99999999999999999999999999"),
        ("no number", "many"),
        ("below zero", "-1"),
        ("a sign", signed.as_str()),
        ("no digits", ""),
    ];
    each(rows, |(what, length)| {
        let request = [headers(1, 0, &block(length)), body(1, &question)].concat();
        ground.open().refuses_request_only(what, 1, &request);
        ground.serves();
    });
    let ends_at_once = headers(1, END_STREAM, &block("5"));
    ground.open().refuses_request_only("five bytes, and none comes", 1, &ends_at_once);
    ground.serves();
}

/// Trailers of a call whose body has not ended.
#[test]
fn trailers() {
    let ground = Ground::new();
    let question = question();
    let begin = |stream, path| [head(stream, path), frame(DATA, 0, stream, &question)].concat();
    let rows: [(&str, u8, Vec<u8>); 2] = [
        ("a pseudo header behind others", END_STREAM, plain(&[("x-a", "1"), (":status", "200")])),
        ("without END_STREAM", 0, plain(&[("x-a", "1")])),
    ];
    each(rows, |(what, flags, block)| {
        for path in [ONE, STREAM] {
            let request = [begin(1, path), headers(1, flags, &block)].concat();
            ground.open().refuses_request_only(what, 1, &request);
        }
        ground.serves();
    });
}
