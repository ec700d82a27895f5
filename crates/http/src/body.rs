//! Bodies of requests: those that are read, and those that are not wanted.

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use weir_grpc::{BufferBudget, HeldBytes};
use weir_node::feature::CallError;
use weir_time::clock::monotonic;

use crate::answers::{HttpAnswer, call_error};
use crate::codes::{INVALID_ARGUMENT, UNAVAILABLE};
use crate::connect;
use crate::pace::{ConnectionPace, PaceStep};

/// Bytes of an unwanted body that are read and dropped. A connection that is closed with bytes unread is reset, and the
/// answer may be lost with it.
const DROPPED: u64 = 1 << 20;

/// Reads a body, whose bytes count in the budget until the call is answered.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: &mut Incoming,
    budget: &BufferBudget,
    largest: usize,
) -> Result<(Bytes, HeldBytes), CallError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let announced: usize = announced.unwrap_or(largest);
    if announced > largest {
        return Err(connect::too_large(largest));
    }
    let no_room = || call_error(UNAVAILABLE, "the server holds as many bytes as it may; try again later");
    let held = budget.hold(announced).ok_or_else(no_room)?;
    let mut whole = Bytes::new();
    while let Some(frame) = body.frame().await {
        let gone = |_| call_error(INVALID_ARGUMENT, "the body is incomplete");
        let Ok(piece) = frame.map_err(gone)?.into_data() else { continue };
        if whole.len() + piece.len() > largest {
            return Err(connect::too_large(largest));
        }
        whole = if whole.is_empty() {
            piece
        } else {
            let mut joined = BytesMut::from(whole);
            joined.extend_from_slice(&piece);
            joined.freeze()
        };
    }
    Ok((whole, held))
}

/// Drops what is left of the body, so that the next request may follow. If that would take too much, the answer says that
/// the connection ends.
pub(crate) async fn finish(
    headers: &HeaderMap,
    body: &mut Incoming,
    mut answer: HttpAnswer,
    pace: &ConnectionPace,
) -> HttpAnswer {
    if body.is_end_stream() || answer.headers().contains_key(CONNECTION) {
        return answer;
    }
    pace.set(PaceStep::Body(monotonic()));
    // Whoever waits for `100 Continue` has not sent it yet.
    if headers.contains_key(EXPECT) || !is_dropped(body).await {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Reads to the end; false if that is too far.
async fn is_dropped(body: &mut Incoming) -> bool {
    let mut left = DROPPED;
    while body.size_hint().lower() <= left {
        match body.frame().await {
            None => return true,
            Some(Ok(frame)) => {
                let read = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(rest) = left.checked_sub(read) else { return false };
                left = rest;
            }
            Some(Err(_)) => return false,
        }
    }
    false
}
