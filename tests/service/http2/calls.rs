//! The calls whose answers have several messages, or several answers in one.

use prost::Message as _;
use weir_proto::v1::ShouldAllowBatchResponse;

use super::ground::Ground;
use super::requests::{BATCH, STREAM, body, head, questions, streamed};
use crate::support::frames::{DATA, frame};

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
