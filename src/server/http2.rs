//! HTTP/2 as this server speaks it: one connection, its socket and its calls, all in one task.
//!
//! Frames are read and written by our own code (`session`), because a general library costs several times
//! what it serves: it makes each call a request, a response and two maps of headers, on heaps of their
//! own. What arrives together is run together and answered in one write; calls that wait for a store are
//! part of their connection's task (`work`).

mod blocks;
mod body;
mod code;
mod head;
mod questions;
mod session;
mod stream;
mod work;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

pub(super) use self::body::Received;
use self::code::Broken;
use self::head::Head;
use self::questions::Questions;
pub(super) use self::session::Session;
use self::work::{Event, Works};
use super::connection::Connection;
use super::dispatch::{Dispatch, Method};
use super::keepalive::Keepalive;
use crate::config::ServerLimits;
use crate::service::{Begun, Call};
use crate::store::Store;

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// Reads or full writes after which other connections have their turn.
const TURN: usize = 4;

/// The most room that is kept for what is to be written.
const MOST_ROOM: usize = 1 << 20;

thread_local! {
    /// What is read lies here until its frames have been taken: an idle connection has no buffer.
    static READING: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);

    /// Room for what is to be written, of whichever connection has its turn.
    static WRITING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };

    /// And for the questions that it asks.
    static QUESTIONS: RefCell<Questions> = RefCell::default();
}

/// One connection.
pub(super) struct Http2<I, S> {
    connection: Connection<I>,
    session: Session,
    keepalive: Keepalive,
    services: Arc<Dispatch<S>>,
    leaving: watch::Receiver<()>,
    works: Works,
    /// The beginning of a frame whose rest has not come.
    partial: Vec<u8>,
    /// Why it cannot go on.
    broken: Option<Broken>,
}

/// Why a connection ended before its time.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{why} ({code:?})", why = .0.why, code = .0.code)]
    Broken(Broken),
}

impl<I: AsyncRead + AsyncWrite + Unpin, S: Store> Http2<I, S> {
    /// `leaving` tells its streams when they are to end. Within the worker's runtime.
    pub(super) fn new(
        connection: Connection<I>,
        services: Arc<Dispatch<S>>,
        limits: &ServerLimits,
        leaving: watch::Receiver<()>,
    ) -> Self {
        let keepalive = Keepalive::new(connection.heard(), limits);
        Self {
            connection,
            session: Session::new(limits),
            keepalive,
            services,
            leaving,
            works: Works::default(),
            partial: Vec::new(),
            broken: None,
        }
    }

    /// Until the connection ends.
    pub(super) async fn serve(&mut self) -> Result<(), Ended> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Until the other side has begun to speak HTTP/2. If the connection ends before, how it did.
    pub(super) async fn serve_until_begun(&mut self) -> Option<Result<(), Ended>> {
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.has_begun() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Whether the other side has begun to speak HTTP/2.
    pub(super) fn has_begun(&self) -> bool {
        self.session.has_begun()
    }

    /// Takes no further calls: [`Http2::serve`] ends when those in flight have ended.
    pub(super) fn leave(&mut self) {
        self.session.leave();
    }

    /// Waits no longer for the peer's answer to that: whatever it opens from now on is ignored.
    pub(super) fn finish_leaving(&mut self) {
        self.session.finish_leaving();
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        if self.session.out().capacity() == 0 {
            *self.session.out() = WRITING.take();
        }
        let polled = self.poll_turn(context);
        if self.session.out().is_empty() {
            let room = std::mem::take(self.session.out());
            WRITING.with_borrow_mut(|kept| {
                if room.capacity() > kept.capacity() && room.capacity() <= MOST_ROOM {
                    *kept = room;
                }
            });
        }
        polled
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let mut watched = false;
        for _ in 0..TURN {
            // Nothing but the handshake's own patience watches one that has not begun.
            if !watched && self.has_begun() {
                watched = true;
                self.connection.has_begun();
                if self.keepalive.poll_vanished(&mut self.session, context).is_ready() {
                    tracing::debug!("a connection was closed: it did not answer a PING in time");
                    self.session.end(None);
                    // As much of a farewell as goes out at once.
                    let _ = self.poll_write(context);
                    return Poll::Ready(Ok(()));
                }
            }
            self.run(context);
            let was_full = self.session.is_full();
            let written = self.poll_write(context)?;
            if self.session.is_over() || self.broken.is_some() {
                return self.poll_end(context, written);
            }
            if self.session.is_full() {
                return Poll::Pending;
            }
            // What there was no room for may go on.
            if was_full {
                continue;
            }
            // Who closes one half has gone, as far as any server of gRPC knows: no client of it does so and reads on,
            // and calls of those who are no more would wait for their store.
            if !ready!(self.poll_read(context))? {
                return Poll::Ready(Ok(()));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs what has been read and what need wait no longer.
    fn run(&mut self, context: &mut Context<'_>) {
        loop {
            // First what waits already: there may then be room for the answers of further calls.
            self.session.pump();
            self.begin();
            let Self { session, works, .. } = self;
            works.drop_all_of(session.take_dropped());
            session.take_asked().into_iter().for_each(|pouring| works.pour(pouring));
            let mut any = false;
            while !session.is_full()
                && let Poll::Ready(Some(event)) = works.poll_next(context)
            {
                any = true;
                match event {
                    Event::Answered(stream, ended) => session.answer(stream, ended),
                    Event::Poured(pouring, piece) => session.poured(pouring, piece),
                    Event::Failed(stream) => session.failed(stream),
                    Event::Dropped => {}
                }
            }
            session.settle();
            if !any {
                return;
            }
        }
    }

    /// Begins the calls that have arrived, in their order: each is decided after those before it.
    fn begin(&mut self) {
        let Self { session, services, leaving, works, .. } = self;
        let mut questions = QUESTIONS.take();
        session.calls(|session, stream, head, body| {
            let is_question = head.method == Some(Method::ShouldAllow);
            if !is_question {
                questions.answer(services, session, works);
            }
            let Head { method, .. } = head;
            let begin = || services.call(method, head.request(body), leaving);
            match catch_unwind(AssertUnwindSafe(begin)) {
                Ok(Begun::Posed(posed)) => questions.push(posed, stream),
                Ok(Begun::Call(Call::Done(Some(ended)))) => session.answer(stream, ended),
                Ok(Begun::Call(call)) => works.call(stream, call),
                // A panic is the end of one call, and a log line that the hook has written.
                Err(_) => session.failed(stream),
            }
        });
        questions.answer(services, session, works);
        QUESTIONS.set(questions);
    }

    /// Writes what there is to be written; whether that was all.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, io::Error> {
        let out = self.session.out();
        let mut written = 0;
        while written < out.len() {
            match Pin::new(&mut self.connection).poll_write(context, &out[written..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(bytes) => written += bytes,
                Poll::Pending => {
                    out.drain(..written);
                    return Ok(false);
                }
            }
        }
        out.clear();
        Ok(true)
    }

    /// Reads once, and takes what frames are whole; false at the end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, Ended>> {
        READING.with_borrow_mut(|room| {
            let mut room = ReadBuf::new(room);
            ready!(Pin::new(&mut self.connection).poll_read(context, &mut room))?;
            let bytes = room.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(false));
            }
            let taken = if self.partial.is_empty() {
                let taken = self.session.read(bytes);
                self.partial.extend_from_slice(&bytes[*taken.as_ref().unwrap_or(&bytes.len())..]);
                taken
            } else {
                self.partial.extend_from_slice(bytes);
                let taken = self.session.read(&self.partial);
                self.partial.drain(..*taken.as_ref().unwrap_or(&0));
                if self.partial.is_empty() {
                    self.partial = Vec::new();
                }
                taken
            };
            if let Err(broken) = taken {
                self.session.end(Some(broken));
                self.broken = Some(broken);
            }
            Poll::Ready(Ok(true))
        })
    }

    /// The last of what was written goes out; after a fault only what goes at once.
    fn poll_end(&mut self, context: &mut Context<'_>, written: bool) -> Poll<Result<(), Ended>> {
        if let Some(broken) = self.broken {
            let _ = Pin::new(&mut self.connection).poll_shutdown(context);
            return Poll::Ready(Err(Ended::Broken(broken)));
        }
        if !written {
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.connection).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}
