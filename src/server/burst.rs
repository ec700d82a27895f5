//! How the calls of a connection are run: those that arrive together, one after the other, as soon as all
//! of them have been read; as tasks only those that have to wait.
//!
//! Nearly every call can be answered when its request has been read. A task for it would cost an
//! allocation and a turn of the scheduler; run at once it would cost a write to the socket of its own.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hyper::rt::Executor;
use parking_lot::Mutex;

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The calls of one connection that have been read and not begun.
#[derive(Clone, Default)]
pub(super) struct Burst(Arc<Mutex<Vec<Stream>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Burst {
    fn execute(&self, stream: F) {
        self.0.lock().push(Box::pin(stream));
    }
}

impl Burst {
    /// Drives a connection that has this for its executor, and its calls.
    pub(super) async fn drive<C: Future>(&self, mut connection: Pin<&mut C>) -> C::Output {
        let mut spare = Vec::new();
        std::future::poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                    return Poll::Ready(ended);
                }
                if !self.run(&mut spare) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Runs what has been read, if there is any, as far as it comes. Nobody is woken by this first poll:
    /// a task polls again when it begins.
    fn run(&self, spare: &mut Vec<Stream>) -> bool {
        mem::swap(&mut *self.0.lock(), spare);
        let any = !spare.is_empty();
        let mut context = Context::from_waker(Waker::noop());
        for mut stream in spare.drain(..) {
            // As in a task, a panic is the end of one call, and a log line that the hook has written.
            let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut context)));
            if let Ok(Poll::Pending) = polled {
                tokio::spawn(stream);
            }
        }
        any
    }
}
