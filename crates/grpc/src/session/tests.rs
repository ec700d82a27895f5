mod buffering;
mod open_calls;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tonic::Status;

use super::*;
use crate::events::Unobserved;
use crate::frames::{Frame, LARGEST_PAYLOAD, PREFACE, setting};
use crate::reply::Reply;
use crate::service::{HotMethod, SideStream};

const ASK: &[(&[u8], &[u8])] =
    &[(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/weir.v1.RateLimitService/ShouldAllow")];

const STREAM: &str = "/weir.v1.RateLimitService/ShouldAllowStream";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

fn methods() -> Methods {
    let path = "/weir.v1.RateLimitService/ShouldAllow";
    let hot = HotMethod { path, largest_message: 1 << 20, together: true, streaming: false };
    let stream = HotMethod { path: STREAM, together: false, streaming: true, ..hot };
    let side = SideStream { path: WATCH, bytes: 4 << 10 };
    Methods::new(vec![hot, stream], 64 << 10).with_side_streams(vec![side])
}

/// Creates a session whose peer has sent these settings.
fn begun(settings: &[(u16, u32)]) -> Session {
    begun_with(&ConnectionLimits::default(), usize::MAX, settings)
}

/// Returns a session like `begun`, with these limits, and a bound of open streams in the process.
fn begun_with(limits: &ConnectionLimits, max_open_streams: usize, settings: &[(u16, u32)]) -> Session {
    let streams = OpenStreams::new(max_open_streams);
    let mut session = Session::new(limits, methods(), Arc::new(Unobserved), streams);
    let mut bytes = PREFACE.to_vec();
    frames::write_settings(&mut bytes, settings);
    assert_eq!(session.read(&bytes), Ok(bytes.len()));
    session.output().clear();
    session
}

/// Opens streams and begins their calls.
fn open(session: &mut Session, streams: &[u32]) -> Vec<u32> {
    for &stream in streams {
        let block = fluke_hpack::Encoder::new().encode(ASK.iter().copied());
        let mut bytes = Vec::new();
        frames::write(&mut bytes, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
        assert_eq!(session.read(&bytes), Ok(bytes.len()));
    }
    let mut begun = Vec::new();
    crate::turn::enter(0);
    session.begin_calls(|_, stream, _, _| {
        begun.push(stream);
    });
    begun
}

fn receive(
    session: &mut Session,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) -> Result<usize, ConnectionError> {
    let mut bytes = Vec::new();
    frames::write(&mut bytes, kind, flags, stream, payload);
    session.read(&bytes)
}

/// Takes the output, and returns kind, stream and length of each frame.
fn sent_frames(session: &mut Session) -> Vec<(u8, u32, usize)> {
    let bytes = std::mem::take(session.output());
    let (mut rest, mut said) = (&bytes[..], Vec::new());
    while let Some((Frame { kind, stream, payload, .. }, length)) = frames::first(rest).unwrap() {
        said.push((kind, stream, payload.len()));
        rest = &rest[length..];
    }
    said
}

fn message(bytes: usize) -> Result<Reply, Status> {
    Ok(Reply::Message(Bytes::from(vec![7; bytes])))
}

#[test]
fn streams_that_wait_for_the_connections_window_take_turns() {
    let mut session = begun(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    open(&mut session, &[1, 3]);
    for stream in [1, 3] {
        session.answer(stream, message(100_000));
    }
    let sent: usize = sent_frames(&mut session).iter().filter(|it| it.0 == kind::DATA).map(|it| it.2).sum();
    assert_eq!(sent, DEFAULT_WINDOW as usize, "no byte more than the window");
    receive(&mut session, kind::WINDOW_UPDATE, 0, 0, &(6 * LARGEST_PAYLOAD as u32).to_be_bytes()).unwrap();
    session.send_queued();
    let mut rest = sent_frames(&mut session);
    let order: Vec<u32> = rest.iter().filter(|it| it.0 == kind::DATA).map(|it| it.1).collect();
    assert_eq!(order[..4], [1, 3, 1, 3], "{order:?}");
    receive(&mut session, kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes()).unwrap();
    session.send_queued();
    rest.extend(sent_frames(&mut session));
    assert_eq!(rest.iter().filter(|it| it.0 == kind::HEADERS).count(), 2, "both have their trailers");
    assert!(session.streams.is_empty() && session.blocked.is_empty());
}

#[test]
fn a_peer_that_does_not_read_is_asked_for_nothing_more() {
    let window = (1 << 31) - 1;
    let mut session = begun(&[(setting::INITIAL_WINDOW_SIZE, window)]);
    receive(&mut session, kind::WINDOW_UPDATE, 0, 0, &(window - 65_535).to_be_bytes()).unwrap();
    open(&mut session, &[1, 3]);
    let body =
        || Box::pin(http_body_util::Empty::new().map_err(|never: std::convert::Infallible| match never {}));
    session.answer(1, Ok(Reply::Messages(body())));
    assert_eq!(session.take_resumable().len(), 1);
    session.answer(3, message(10 << 20));
    assert!(session.output_is_full() && session.output().len() < 2 * MAX_OUTPUT, "not all of it at once");
    session.answer(1, Ok(Reply::Messages(body())));
    assert!(session.take_resumable().is_empty());
    sent_frames(&mut session);
    assert_eq!(session.take_resumable().len(), 1, "it has read");
}

#[test]
fn what_is_sent_before_the_farewell_is_known_is_answered() {
    let mut session = begun(&[]);
    open(&mut session, &[1]);
    session.shut_down();
    assert_eq!(
        sent_frames(&mut session).iter().map(|it| it.0).collect::<Vec<_>>(),
        [kind::GOAWAY, kind::PING]
    );
    assert_eq!(open(&mut session, &[3]), [3]);
    receive(&mut session, kind::PING, flag::ACK, 0, &SHUTDOWN_PING).unwrap();
    assert_eq!(sent_frames(&mut session)[0].0, kind::GOAWAY);
    assert_eq!(open(&mut session, &[5]), [0_u32; 0], "it has got the status");
    receive(&mut session, kind::DATA, 0, 5, b"and so this means nothing").unwrap();
    assert!(!session.is_over());
    session.answer(1, message(1));
    session.answer(3, Err(Status::internal("also an answer")));
    assert!(session.is_over());
}

#[test]
fn a_stream_that_was_reset_is_answered_no_more_and_its_call_given_up() {
    let mut session = begun(&[]);
    open(&mut session, &[1, 3]);
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    assert_eq!(session.take_cancelled(), [1]);
    for stream in [1, 3] {
        session.answer(stream, message(1));
    }
    assert!(sent_frames(&mut session).iter().all(|it| it.1 == 3));
}

/// A response that waits in `resumable` is not among the futures in flight, so a reset found nothing to cancel. It
/// was polled for as long as the connection lived.
#[test]
fn an_answer_that_waits_for_its_turn_is_given_up_with_its_stream() {
    let mut session = begun(&[]);
    open(&mut session, &[1, 3]);
    let body =
        || Box::pin(http_body_util::Empty::new().map_err(|never: std::convert::Infallible| match never {}));
    for stream in [1, 3] {
        session.answer(stream, Ok(Reply::Messages(body())));
    }
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    let asked: Vec<u32> = session.take_resumable().iter().map(|response| response.stream).collect();
    assert_eq!(asked, [3]);
}

/// Bytes beyond a content-length were read by nobody, and their credit once was never returned.
#[test]
fn all_that_is_sent_is_given_back_whatever_becomes_of_it() {
    let mut session = begun(&[]);
    let length: &[(&[u8], &[u8])] = &[(b"content-length", b"10")];
    for (number, (flags, bytes)) in
        [(0, 11), (flag::END_STREAM, 9), (flag::PADDED, 300), (0, 5)].into_iter().enumerate()
    {
        let stream = 1 + 2 * number as u32;
        let block = fluke_hpack::Encoder::new().encode(ASK.iter().chain(length).copied());
        receive(&mut session, kind::HEADERS, flag::END_HEADERS, stream, &block).unwrap();
        receive(&mut session, kind::DATA, flags, stream, &vec![250; bytes]).unwrap();
        receive(&mut session, kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()).unwrap();
        crate::turn::enter(0);
        session.begin_calls(|_, _, _, _| {});
        session.return_credit();
        assert_eq!(
            session.recv_window + session.pending_credit as i64,
            i64::from(CONNECTION_WINDOW),
            "{bytes} bytes"
        );
    }
}

fn window_update(session: &mut Session, stream: u32, more: u32) -> Result<usize, ConnectionError> {
    receive(session, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// A call of a few bytes may have a response of a hundred thousand. A thousand of these were once queued together.
#[test]
fn calls_wait_while_their_answers_would() {
    let mut session = begun(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    let streams: Vec<u32> = (0..100).map(|index| 1 + 2 * index).collect();
    let mut begun = 0;
    let answer_all = |session: &mut Session, begun: &mut usize| {
        session.send_queued();
        session.begin_calls(|session, stream, _, _| {
            *begun += 1;
            session.answer(stream, message(100_000));
        });
    };
    for stream in &streams {
        let block = fluke_hpack::Encoder::new().encode(ASK.iter().copied());
        receive(&mut session, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, *stream, &block).unwrap();
        answer_all(&mut session, &mut begun);
    }
    assert!(begun < 50 && session.queued_bytes < MAX_QUEUED_BYTES + 100_000, "{begun}");
    // One stream is reset, which frees queue space for the others.
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    for given in 1.. {
        assert!(given < 1000, "{begun}");
        window_update(&mut session, 0, 1 << 20).unwrap();
        receive(&mut session, kind::SETTINGS, 0, 0, &[&[0, 4][..], &100_000_u32.to_be_bytes()].concat())
            .unwrap();
        answer_all(&mut session, &mut begun);
        sent_frames(&mut session);
        if session.streams.is_empty() {
            break;
        }
    }
    assert_eq!((begun, session.queued_bytes, session.new_calls.len()), (100, 0, 0));
    assert!(session.blocked.is_empty(), "{:?}", session.blocked);
}

/// Reset streams stayed in the list of streams blocked by the connection's window, for as long as that was empty.
#[test]
fn streams_that_were_reset_wait_for_no_window() {
    let mut session = begun(&[]);
    open(&mut session, &[1]);
    session.answer(1, message(100_000));
    for stream in (0..1000).map(|index| 3 + 2 * index) {
        open(&mut session, &[stream]);
        session.answer(stream, message(1));
        receive(&mut session, kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()).unwrap();
        session.send_queued();
        sent_frames(&mut session);
    }
    assert!(session.blocked.len() < 10, "{}", session.blocked.len());
}

#[test]
fn windows_are_what_was_given_wherever_it_was() {
    const LARGEST: u32 = (1 << 31) - 1;
    let set = |session: &mut Session, room: u32| {
        receive(session, kind::SETTINGS, 0, 0, &[&[0, 4][..], &room.to_be_bytes()].concat())
    };
    let mut session = begun(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    open(&mut session, &[1, 3]);
    // The largest window on a stream that ends; then the largest initial window.
    window_update(&mut session, 1, LARGEST - 10).unwrap();
    receive(&mut session, kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()).unwrap();
    set(&mut session, LARGEST).unwrap();
    // A smaller initial window, and a stream with more credit than others, which then overflows.
    set(&mut session, 0).unwrap();
    window_update(&mut session, 3, 7).unwrap();
    set(&mut session, LARGEST - 7).unwrap();
    assert_eq!(set(&mut session, LARGEST - 6).map_err(|error| error.code), Err(ErrorCode::FlowControl));
    // A negative window must be filled before anything is sent.
    let mut session = begun(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    open(&mut session, &[1]);
    session.answer(1, message(20));
    let sent = |session: &mut Session| {
        session.send_queued();
        sent_frames(session).iter().filter(|it| it.0 == kind::DATA).map(|it| it.2).sum::<usize>()
    };
    assert_eq!(sent(&mut session), 10);
    set(&mut session, 3).unwrap();
    window_update(&mut session, 1, 7).unwrap();
    assert_eq!(sent(&mut session), 0);
    window_update(&mut session, 1, 4).unwrap();
    assert_eq!(sent(&mut session), 4);
    set(&mut session, 9).unwrap();
    assert_eq!(sent(&mut session), 6);
}

#[test]
fn a_silent_client_keeps_no_buffer() {
    let mut session = begun(&[]);
    let streams: Vec<u32> = (0..200).map(|index| 1 + 2 * index).collect();
    session.new_calls.reserve(200);
    open(&mut session, &streams);
    streams.iter().for_each(|stream| session.answer(*stream, message(1)));
    assert!(session.streams.is_empty() && session.new_calls.capacity() >= 200);
    session.ping();
    assert_eq!((session.streams.capacity(), session.new_calls.capacity()), (0, 0));
}
