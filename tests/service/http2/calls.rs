//! Calls that are answered, however their bytes are cut into frames and packets.

use prost::Message as _;
use weir_proto::v1::ShouldAllowBatchResponse;

use super::ground::Ground;
use super::requests::{
    BATCH, ONE, STREAM, body, call, fields, head, headers, plain, question, questions, streamed,
};
use super::session::Session;
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PREFACE, WITH_PRIORITY, frame, settings,
};

#[test]
fn a_whole_call() {
    let ground = Ground::new();
    let mut session = ground.open();
    session.send(&call(1));
    let answer = session.ended(1);
    answer.allows();
    let statuses = answer.head.iter().chain(&answer.trailers).filter(|(name, _)| name == ":status");
    assert_eq!(statuses.count(), 1, "{answer:?}");
    assert_eq!(answer.head[0].0, ":status", "pseudo headers come first");
    assert!(session.is_set(), "our settings are acknowledged before anything is answered");
    ground.serves();
}

#[test]
fn everything_in_one_packet() {
    let ground = Ground::new();
    let mut session = Session::silent(ground.server.grpc);
    session.send(&[PREFACE, &settings(&[]), &call(1), &call(3)].concat());
    session.expects_acknowledgement();
    session.allow(&[1, 3]);
    ground.serves();
}

#[test]
fn streams_need_not_follow_one_another_closely() {
    let ground = Ground::new();
    let mut session = ground.open();
    for stream in [1, 3, 101, 0x7fff_fffd, 0x7fff_ffff] {
        session.send(&call(stream));
        session.ended(stream).allows();
    }
    ground.serves();
}

#[test]
fn calls_whose_frames_are_mixed() {
    let ground = Ground::new();
    let mut session = ground.open();
    let bodies = [question(), question(), question()];
    let mut bytes: Vec<u8> = [1, 3, 5].iter().flat_map(|stream| head(*stream, ONE)).collect();
    for (stream, body) in [5, 3, 1].iter().zip(&bodies) {
        bytes.extend(frame(DATA, 0, *stream, &body[..4]));
    }
    for (stream, bytes_of) in [5, 3, 1].iter().zip(&bodies) {
        bytes.extend(body(*stream, &bytes_of[4..]));
    }
    session.send(&bytes);
    session.allow(&[1, 3, 5]);
    ground.serves();
}

#[test]
fn byte_by_byte() {
    let ground = Ground::new();
    let mut session = Session::silent(ground.server.grpc);
    session.raw().stream().set_nodelay(true).unwrap();
    for byte in [PREFACE, &settings(&[])].concat() {
        session.send(&[byte]);
    }
    for byte in [call(1), call(3)].concat() {
        session.send(&[byte]);
    }
    session.expects_acknowledgement();
    session.allow(&[1, 3]);
    ground.serves();
}

#[test]
fn a_message_in_frames_of_a_byte_among_empty_ones() {
    let ground = Ground::new();
    let mut session = ground.open();
    let mut bytes = head(1, ONE);
    for byte in question() {
        bytes.extend([frame(DATA, 0, 1, &[byte]), frame(DATA, 0, 1, &[])].concat());
    }
    bytes.extend(body(1, &[]));
    session.send(&bytes);
    session.ended(1).allows();
    ground.serves();
}

#[test]
fn headers_continued_at_every_place() {
    let ground = Ground::new();
    let mut session = ground.open();
    let block = plain(&fields(ONE));
    let mut stream = 1;
    for at in 0..=block.len() {
        let (first, rest) = block.split_at(at);
        let (second, third) = rest.split_at(rest.len() / 2);
        session.send(
            &[
                frame(HEADERS, 0, stream, first),
                frame(CONTINUATION, 0, stream, second),
                frame(CONTINUATION, END_HEADERS, stream, third),
                body(stream, &question()),
            ]
            .concat(),
        );
        session.ended(stream).allows();
        stream += 2;
    }
    ground.serves();
}

/// The stream's end is said in HEADERS, and the block's in CONTINUATION.
#[test]
fn headers_that_end_their_stream_may_be_continued() {
    let ground = Ground::new();
    let mut session = ground.open();
    let block = plain(&fields(STREAM));
    session.send(&frame(HEADERS, END_STREAM, 1, &block[..9]));
    session.send(&frame(CONTINUATION, END_HEADERS, 1, &block[9..]));
    let answer = session.ended(1);
    assert_eq!((answer.code(), answer.data.len()), ("0", 0), "{answer:?}");
    ground.serves();
}

#[test]
fn padding_and_priority() {
    let ground = Ground::new();
    let mut session = ground.open();
    let block = plain(&fields(ONE));
    let (priority, exclusive) = ([0, 0, 0, 3, 15], [0x80, 0, 0, 0, 255]);
    let rows: [(u8, Vec<u8>); 6] = [
        (PADDED, padded(0, &block)),
        (PADDED, padded(255, &block)),
        (WITH_PRIORITY, [&priority[..], &block].concat()),
        (WITH_PRIORITY, [&exclusive[..], &block].concat()),
        (PADDED | WITH_PRIORITY, padded(7, &[&priority[..], &block].concat())),
        (PADDED | WITH_PRIORITY, padded(1, &[&exclusive[..], &block].concat())),
    ];
    let mut stream = 1;
    for (flags, head) in rows {
        for padding in [0, 1, 255] {
            let question = question();
            let (begin, end) = question.split_at(7);
            session.send(&headers(stream, flags, &head));
            session.send(&frame(DATA, PADDED, stream, &padded(padding, begin)));
            session.send(&frame(DATA, PADDED, stream, &padded(padding, &[])));
            session.send(&frame(DATA, PADDED | END_STREAM, stream, &padded(padding, end)));
            session.ended(stream).allows();
            stream += 2;
        }
    }
    // And with the first of the block behind the padding, the rest in another frame.
    session.send(&frame(HEADERS, PADDED, stream, &padded(9, &block[..20])));
    session.send(&frame(CONTINUATION, END_HEADERS, stream, &block[20..]));
    session.send(&body(stream, &question()));
    session.ended(stream).allows();
    ground.serves();
}

fn padded(padding: u8, bytes: &[u8]) -> Vec<u8> {
    [&[padding][..], bytes, &vec![0; padding.into()]].concat()
}

#[test]
fn a_batch_and_a_stream() {
    let ground = Ground::new();
    let mut session = ground.open();
    session.send(&[head(1, BATCH), body(1, &questions(300))].concat());
    let results = ShouldAllowBatchResponse::decode(session.ended(1).message()).unwrap().results;
    assert_eq!(results.len(), 300);
    session.send(&[head(3, STREAM), frame(DATA, 0, 3, &streamed(1))].concat());
    session.until("the first answer", |it| !it.seen(3).data.is_empty());
    let first = session.seen(3).data.len();
    session.send(&frame(DATA, 0, 3, &streamed(1)));
    session.until("the second answer", |it| it.seen(3).data.len() == first * 2);
    session.send(&body(3, &[]));
    assert_eq!(session.ended(3).code(), "0");
    ground.serves();
}

#[test]
fn trailers_and_a_content_length_that_is_right() {
    let ground = Ground::new();
    let mut session = ground.open();
    let question = question();
    let length = question.len().to_string();
    let fields = [fields(ONE), vec![("content-length", &length)]].concat();
    session.send(&headers(1, 0, &plain(&fields)));
    session.send(&frame(DATA, 0, 1, &question));
    session.send(&headers(1, END_STREAM, &plain(&[("x-checksum", "1")])));
    session.ended(1).allows();
    ground.serves();
}

#[test]
fn failures_have_the_status_of_grpc() {
    let ground = Ground::new();
    let mut session = ground.open();
    let rows = [
        (ONE, vec![], "12", "no message"),
        (ONE, vec![0, 0, 0, 0, 9, 1], "13", "half a message"),
        ("/weir.v1.RateLimitService/Nothing", question(), "12", "no such method"),
        ("/nobody.Service/Nothing", question(), "12", "no such service"),
    ];
    let mut stream = 1;
    for (path, bytes, code, what) in rows {
        session.send(&[head(stream, path), body(stream, &bytes)].concat());
        let answer = session.ended(stream);
        assert_eq!((answer.of(&answer.head, ":status"), answer.code()), ("200", code), "{what}");
        stream += 2;
    }
    session.does_not_mind(stream, &[]);
    ground.serves();
}

/// gRPC over HTTP/2: a request that is not gRPC gets an HTTP status, so that its sender sees an error.
#[test]
fn a_request_that_is_not_grpc_gets_an_http_status() {
    let ground = Ground::new();
    let with = |path, name: &str, value| {
        let change = |(it, old)| if it == name { (it, value) } else { (it, old) };
        plain(&fields(path).into_iter().map(change).collect::<Vec<_>>())
    };
    let mut session = ground.open();
    let mut streams = (0..).map(|index| 1 + 2 * index);
    for path in [ONE, BATCH, "/grpc.health.v1.Health/Check"] {
        let rows = [
            ("content-type", "application/json", "415"),
            ("content-type", "application/grpc-web+proto", "415"),
            (":method", "GET", "405"),
        ];
        for (name, value, status) in rows {
            let (whole, begun) = (streams.next().unwrap(), streams.next().unwrap());
            session.send(&headers(whole, END_STREAM, &with(path, name, value)));
            session.send(&[headers(begun, 0, &with(path, name, value)), body(begun, &question())].concat());
            for stream in [whole, begun] {
                assert!(session.until("an answer", |it| it.seen(stream).ended), "{value}");
                let answer = session.seen(stream);
                assert_eq!(answer.of(&answer.head, ":status"), status, "{value}");
                assert!(status != "405" || answer.of(&answer.head, "allow") == "POST");
            }
            assert_eq!(session.seen(begun).reset, None, "its rest was read");
        }
    }
    for value in ["application/grpc+proto", "application/grpc;charset=utf-8"] {
        let stream = streams.next().unwrap();
        session.send(
            &[headers(stream, 0, &with(ONE, "content-type", value)), body(stream, &question())].concat(),
        );
        session.allow(&[stream]);
    }
    session.does_not_mind(streams.next().unwrap(), &[]);
}
