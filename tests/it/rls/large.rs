//! Large requests: as many as there are places for are read at a time, however many callers send one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http_body::{Body, Frame};
use http_body_util::StreamBody;
use prost::Message as _;
use tonic::Code;
use weir::service::Call;

use super::bytes::{Service, service};
use super::notation::request as ask;
use crate::support::grpc::{ended, framed, request};

/// A worker's places.
const PLACES: usize = 64;

/// A body whose end never comes. Counts what has been read of it.
fn endless(pieces: [Bytes; 3], read: Arc<AtomicUsize>) -> impl Body<Data = Bytes, Error = Infallible> {
    let pieces = stream::iter(pieces).inspect(move |_| {
        read.fetch_add(1, Relaxed);
    });
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece))).chain(stream::pending()))
}

struct Sender {
    call: Call,
    read: Arc<AtomicUsize>,
}

impl Sender {
    /// Announces so many bytes, and sends 200 of them in three pieces, of which the first is this short.
    fn of(service: &Service, announced: usize, first: usize) -> Self {
        let read = Arc::new(AtomicUsize::new(0));
        let message = framed(0, &vec![0; announced]);
        let pieces = [&message[..first], &message[first..100], &message[100..200]];
        let body = endless(pieces.map(Bytes::copy_from_slice), Arc::clone(&read));
        let call = service.should_rate_limit(http::Request::new(body));
        Self { call, read }
    }

    /// How many pieces have been read after another look.
    fn reads(&mut self) -> usize {
        let _ = Pin::new(&mut self.call).poll(&mut Context::from_waker(Waker::noop()));
        self.read.load(Relaxed)
    }
}

#[tokio::test]
async fn more_than_there_are_places_for_wait_unread() {
    let service = service();
    let mut held: Vec<Sender> = (0..PLACES).map(|_| Sender::of(&service, 1 << 20, 3)).collect();
    assert!(held.iter_mut().all(|sender| sender.reads() == 3));
    let mut late = [2, 5, 50].map(|first| Sender::of(&service, 1 << 20, first));
    // Until they have said how long they are.
    assert_eq!(late.each_mut().map(Sender::reads), [2, 1, 1]);
    let small = ask("rl [foo=x]").encode_to_vec();
    let told = ended(service.should_rate_limit(request(&framed(0, &small), 7))).await;
    assert!(told.is_ok(), "small ones need no place: {told:?}");
    assert!(Sender::of(&service, 60 << 10, 3).reads() == 3, "nor does what is no larger than other messages");
    held.clear();
    assert_eq!(late.each_mut().map(Sender::reads), [3, 3, 3]);
}

#[tokio::test]
async fn what_is_too_large_is_refused_without_a_place() {
    let service = service();
    let _held: Vec<Sender> = (0..PLACES)
        .map(|_| {
            let mut sender = Sender::of(&service, 1 << 20, 3);
            sender.reads();
            sender
        })
        .collect();
    let message = framed(0, &vec![0; (1 << 20) + 1]);
    let refused = ended(service.should_rate_limit(request(&message, 4))).await;
    assert_eq!(refused, Err(Code::OutOfRange));
}
