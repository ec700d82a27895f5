//! Requests: content-type, te, timeout and encoding. The choices: a missing content-type counts as gRPC, and so does
//! a missing te; a timeout that cannot be parsed counts as none; of several, the first one counts.

use std::io::Write as _;
use std::time::Duration;

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [content_types(), timeouts(), encodings(), others()].into_iter().flatten().collect()
}

fn call(section: &'static str, name: impl Into<String>, fields: &[Pair<'_>]) -> Case {
    case(section, name).send([headers(1, 0, fields), data(1, END_STREAM, message("a"))].concat())
}

fn content_types() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc+json",
        "application/grpc;charset=utf-8",
    ]
    .into_iter()
    .map(|value| {
        call("Content-Type", format!("{value} is served"), &with("content-type", value)).echo(1, "a")
    })
    .collect();
    cases.extend(
        [
            "application/json",
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpcx",
            "text/plain",
            "APPLICATION/JSON",
            "",
        ]
        .into_iter()
        .map(|value| {
            case("Content-Type", format!("`{value}` is not gRPC"))
                .send(headers(1, END_STREAM, &with("content-type", value)))
                .http(1, "415")
                .usable()
        }),
    );
    cases.push(call("Content-Type", "without one a call is served", &without("content-type")).echo(1, "a"));
    cases.push(call("TE", "without te a call is served", &without("te")).echo(1, "a"));
    cases
}

fn timeouts() -> Vec<Case> {
    let timed = |name: String, values: &[&str]| {
        let mut fields = call_of("/echo.Echo/Deadline");
        fields.extend(values.iter().map(|value| ("grpc-timeout", *value)));
        call("Timeout", name, &fields)
    };
    let seconds = Duration::from_secs;
    let mut cases: Vec<Case> = [
        ("2H", seconds(7_200)),
        ("99999999H", seconds(99_999_999 * 3_600)),
        ("300M", seconds(18_000)),
        ("5000S", seconds(5_000)),
        ("05000S", seconds(5_000)),
        ("5000000m", seconds(5_000)),
        ("99999999m", Duration::from_millis(99_999_999)),
        ("99999999u", Duration::from_micros(99_999_999)),
        ("99999999n", Duration::from_nanos(99_999_999)),
    ]
    .into_iter()
    .map(|(text, time)| timed(format!("{text} is read"), &[text]).deadline(1, Some(time)))
    .collect();
    cases.extend(
        ["", "S", "5", "5s", "5 S", "-5S", "+5S", "1.5S", "0x5S", "123456789S", "5SS", "5h", "\u{b5}S"]
            .into_iter()
            .map(|text| timed(format!("`{text}` counts as none"), &[text]).deadline(1, None)),
    );
    let held = |text: &'static str| {
        let mut fields = call_of("/echo.Echo/Held");
        fields.push(("grpc-timeout", text));
        call("Timeout", format!("{text} ends a call that is waited for"), &fields)
            .status(1, DEADLINE_EXCEEDED)
            .usable()
    };
    cases.extend(cases! {
        timed("no timeout is no deadline".to_owned(), &[]) => deadline(1, None);
        timed("of two the first counts".to_owned(), &["5000S", "2H"]) => deadline(1, Some(seconds(5_000)));
        timed("one that cannot be parsed does not count".to_owned(), &["soon", "2H"]) =>
            deadline(1, Some(seconds(7_200)));
        held("0n");
        held("0H");
        held("1n");
    });
    cases
}

fn encodings() -> Vec<Case> {
    let encoded =
        |name: &str, value: &'static str| call("Message-Encoding", name, &and(&[("grpc-encoding", value)]));
    let mut cases = cases! {
        encoded("identity is served", "identity") => echo(1, "a");
        call("Message-Accept-Encoding", "what a client accepts changes nothing",
            &and(&[("grpc-accept-encoding", "gzip, br")])) => echo(1, "a");
        case("Message-Encoding", "the answer to an encoding says what is accepted") =>
            send(headers(1, END_STREAM, &and(&[("grpc-encoding", "deflate")]))),
            field_has(1, "grpc-accept-encoding", "identity,gzip");
    };
    for value in ["br", "deflate", "snappy", "x-unknown", "IDENTITY"] {
        cases.push(
            encoded(&format!("{value} is not implemented"), value)
                .status_says(1, UNIMPLEMENTED, value)
                .usable(),
        );
    }
    cases.push(
        case("Message-Encoding", "an encoding is refused for other methods too")
            .send(headers(
                1,
                END_STREAM,
                &[&call_of("/echo.Other/Echo")[..], &[("grpc-encoding", "deflate")]].concat(),
            ))
            .status(1, UNIMPLEMENTED),
    );
    cases.extend(compressed());
    cases
}

/// Requests that are compressed with gzip.
fn compressed() -> Vec<Case> {
    let gzipped = |name: &str, path: &'static str, body: Vec<u8>| {
        let fields = [&call_of(path)[..], &[("grpc-encoding", "gzip")]].concat();
        case("Compressed-Flag", name).send([headers(1, 0, &fields), data(1, END_STREAM, body)].concat())
    };
    let unary = |name: &str, body: Vec<u8>| gzipped(name, "/echo.Echo/Unary", body);
    let pieces = |piece: &[u8]| data(1, 0, piece);
    let split = [headers(1, 0, &and(&[("grpc-encoding", "gzip")]))]
        .into_iter()
        .chain(gzip("hello").chunks(3).map(pieces).collect::<Vec<_>>());
    cases! {
        unary("a compressed message is read, and its answer is plain", gzip("hello")) => echo(1, "hello");
        unary("a message may be plain in spite of its encoding", message("hello")) => echo(1, "hello");
        unary("an empty message may be compressed", gzip("")) => echo(1, "");
        case("Compressed-Flag", "a compressed message may come in pieces") =>
            send(split.flatten().collect::<Vec<u8>>()), nothing(), send(data(1, END_STREAM, "")),
            echo(1, "hello");
        gzipped("the messages of a stream may be compressed", "/echo.Echo/Stream",
            [gzip("a"), message("b"), gzip("c")].concat()) =>
            answer(1, [message("a"), message("b"), message("c")].concat());
        gzipped("a method of the router sees plain messages", "/echo.Other/Echo", gzip("hello")) =>
            echo(1, "hello");
        unary("a message is bounded by its plain size", gzip(&"x".repeat((1 << 20) + 1))) =>
            status_says(1, RESOURCE_EXHAUSTED, "1048576"), usable();
        unary("what is no gzip is INTERNAL", [1, 0, 0, 0, 5, b'h', b'e', b'l', b'l', b'o'].to_vec()) =>
            status(1, INTERNAL), usable();
        unary("a flag of 2 is INTERNAL in spite of an encoding", [2, 0, 0, 0, 1, b'a'].to_vec()) =>
            status(1, INTERNAL), usable();
        unary("a compressed message without its end is INTERNAL", gzip("hello")[..12].to_vec()) =>
            status(1, INTERNAL), usable();
        unary("two compressed messages are one too many", [gzip("a"), gzip("b")].concat()) =>
            status(1, UNIMPLEMENTED), usable();
    }
}

/// A message that is compressed, with its prefix.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("it goes into memory");
    let message = encoder.finish().expect("it goes into memory");
    [&[1], &(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn others() -> Vec<Case> {
    cases! {
        call("Path", "an unknown method is UNIMPLEMENTED", &call_of("/echo.Echo/Nothing")) =>
            status(1, UNIMPLEMENTED);
        call("Path", "an unknown service is UNIMPLEMENTED", &call_of("/no.Such/Unary")) =>
            status(1, UNIMPLEMENTED);
        call("Custom-Metadata", "metadata is accepted", &and(&[("x-request-id", "7"), ("x-bin", "AAEC")])) =>
            echo(1, "a");
        call("Custom-Metadata", "reserved names are accepted",
            &and(&[("grpc-tags-bin", ""), ("grpc-trace-bin", "AA")])) => echo(1, "a");
        call("Authority", ":authority is accepted", &[&[(":authority", "a:1")][..], &CALL].concat()) =>
            echo(1, "a");
        case("Content-Type", "another content type is told which port this is") =>
            send(headers(1, END_STREAM, &[&CALL[..3], &[("content-type", "application/json")]].concat())),
            http_with(1, "415", "content-type", "text/plain");
        case("Content-Type", "without a window for the text there is the status") =>
            send(settings(&[(INITIAL_WINDOW_SIZE, 0)])), acks(1),
            send(headers(1, END_STREAM, &[&CALL[..3], &[("content-type", "application/json")]].concat())),
            http(1, "415");
        case("Call-Definition", "a request that is not POST gets an Allow header") =>
            send(headers(1, END_STREAM, &with(":method", "GET"))), http_with(1, "405", "allow", "POST");
    }
}
