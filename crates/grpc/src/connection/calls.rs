//! The calls of a connection: their begin and their progress.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::body::RequestBody;
use crate::call::Call;
use crate::connection::Http2Connection;
use crate::deadline::deadline_exceeded;
use crate::in_flight::FutureEvent;
use crate::inflate::unknown_encoding;
use crate::messages::Messages;
use crate::pending::PendingBatch;
use crate::request_headers::RequestHead;
use crate::service::{BegunCall, CallContext, ConnectionCheck, HotService, IncomingCall};
use crate::turn;

thread_local! {
    /// The batch of the connection that is being polled.
    static BATCHES: RefCell<PendingBatch> = RefCell::default();
}

impl<I: AsyncRead + AsyncWrite + Unpin, H: HotService> Http2Connection<I, H> {
    /// Begins the calls that have arrived, and polls those in flight.
    pub(super) fn run(&mut self, context: &mut Context<'_>) {
        loop {
            // Queued data goes first: it may free space for the responses of further calls.
            self.session.send_queued();
            // What has been asked is answered before more is asked, because a turn may have time for one of both.
            let has_answered = self.answer_calls(context);
            self.begin_calls();
            let any = self.answer_calls(context) || has_answered;
            self.session.return_credit();
            if !any {
                return;
            }
        }
    }

    /// Polls the calls in flight. Returns true if something came of it.
    fn answer_calls(&mut self, context: &mut Context<'_>) -> bool {
        let Self { session, in_flight, .. } = self;
        in_flight.cancel_all_of(session.take_cancelled());
        session.take_resumable().into_iter().for_each(|response| in_flight.body(response));
        let mut any = false;
        while !session.output_is_full()
            && turn::remaining() > 0
            && let Poll::Ready(Some(event)) = in_flight.poll_next(context)
        {
            any = true;
            match event {
                FutureEvent::Answered(stream, answer) => session.answer(stream, answer),
                FutureEvent::ResponseBody(response, piece) => session.continue_response(response, piece),
                FutureEvent::Failed(stream) => session.failed(stream),
                FutureEvent::Cancelled => {}
            }
        }
        any
    }

    /// Begins the calls that have arrived, in their order: each is decided after those before it.
    fn begin_calls(&mut self) {
        let Self { session, service, check, closing, in_flight, account, .. } = self;
        let mut batch = BATCHES.take();
        session.begin_calls(|session, stream, head, body| {
            let is_alone = !service.methods().is_together(head.method);
            if is_alone {
                batch.answer(&**service, session, in_flight);
            }
            if head.is_late(|| session.now()) {
                session.answer(stream, Err(deadline_exceeded()));
                return;
            }
            if is_alone
                && service.methods().is_admitted(head.method)
                && let Err(status) = session.admit(account, stream)
            {
                session.answer(stream, Err(status));
                return;
            }
            let body = match &head.encoding {
                Some(_) if head.is_gzip() => {
                    let largest = service.methods().largest_message(head.method);
                    body.inflated(session.inflater(largest, account))
                }
                _ => body,
            };
            let begin = || begin(&**service, check, &head, body, closing);
            match catch_unwind(AssertUnwindSafe(begin)) {
                Ok(BegunCall::Pending(call)) => {
                    turn::spend(1);
                    batch.push(call, stream);
                }
                Ok(BegunCall::Call(Call::Done(Some(answer)))) => session.answer(stream, answer),
                Ok(BegunCall::Call(call)) => in_flight.call(stream, call),
                // A panic ends one call; the panic hook has written a log line.
                Err(_) => session.failed(stream),
            }
        });
        batch.answer(&**service, session, in_flight);
        BATCHES.set(batch);
    }
}

fn begin<H: HotService>(
    service: &H,
    check: &ConnectionCheck,
    head: &RequestHead,
    body: RequestBody,
    closing: &watch::Receiver<()>,
) -> BegunCall {
    let caller = match service.methods().check(check, head.path(), head.method, head.kept()) {
        Ok(caller) => caller,
        Err(status) => return BegunCall::Call(Call::failed(status)),
    };
    let context = CallContext { deadline: head.deadline(), caller };
    if let Some(encoding) = &head.encoding
        && !head.is_gzip()
    {
        return BegunCall::Call(Call::failed(unknown_encoding(encoding)));
    }
    let Some(method) = head.method else {
        return BegunCall::Call(service.other(context, head.request(body)));
    };
    let messages = Messages::new(body, service.methods().largest_message(Some(method)));
    service.begin(method, IncomingCall { context, messages }, closing)
}
