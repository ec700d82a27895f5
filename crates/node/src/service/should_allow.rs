//! `ShouldAllow`: one question, one answer.
//!
//! Questions that have arrived together are answered in one round, which shares its fixed costs and the store's
//! prefetch. Pending ones then wait individually.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use tonic::Status;
use weir_grpc::{BegunCall, Call, IncomingCall, PREFIX, PendingCall, Reply, Unanswered, reply, turn};
use weir_store::{Store, TOGETHER, Verdicts, at_once};

use super::wire::TextsBefore;
use super::{DecisionService, Decisions, status, wire};
use crate::current_method;
use crate::limiter::{AskedFields, Begun, Question, Waiting};

const ANSWER_BYTES: usize = 123;

/// Largest buffer that is kept for the next round.
const MOST_KEPT: usize = 4 << 10;

thread_local! {
    /// The buffer of the last round's answers: an allocation costs 2 % of a call that comes alone.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl<S: Store> DecisionService<S> {
    /// Begins a call of one question. If it has arrived, it is decided later, in a round.
    pub fn should_allow(self: &Arc<Self>, call: IncomingCall) -> BegunCall {
        let IncomingCall { context, mut messages } = call;
        match at_once(messages.only()).transpose() {
            Ok(Some(message)) => return BegunCall::Pending(PendingCall { message, context }),
            Ok(None) => {}
            Err(status) => return BegunCall::Call(status.into()),
        }
        let (service, deadline) = (Arc::clone(self), context.deadline);
        turn::spend(1);
        BegunCall::Call(Call::waiting(&self.deadlines, deadline, async move {
            let message = messages.only().await?;
            service.current().answer(PendingCall { message, context }).await
        }))
    }

    /// Answers several questions in order, under one snapshot ([`Decisions::answer_each`]).
    pub fn answer_each(
        &self,
        pending: &[PendingCall],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        match self.held.try_lock() {
            Some(held) => held.answer_each(pending, each),
            None => self.current.load().answer_each(pending, each),
        }
    }
}

impl<S: Store> Decisions<S> {
    pub(super) async fn answer(self: &Arc<Self>, pending: PendingCall) -> Result<Reply, Status> {
        let mut answered = None;
        let mut unanswered = self.answer_each(std::slice::from_ref(&pending), |_, answer| {
            answered = Some(answer.map(|message| Reply::Message(message.to_vec().into())));
        });
        match (unanswered.pop(), answered) {
            (Some((_, call)), _) => call.await,
            (None, Some(answer)) => answer,
            (None, None) => Err(Status::internal("the call has no answer")),
        }
    }

    /// Answers several questions in order, and gives `each` the answers (messages with their prefixes) with the
    /// number of their question. Returns the calls that are pending in the store. More than [`TOGETHER`] at a time
    /// save nothing more.
    pub fn answer_each(
        self: &Arc<Self>,
        pending: &[PendingCall],
        mut each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        let mut unanswered = Unanswered::new();
        current_method::set("ShouldAllow");
        let mut round = self.limiter.round();
        let mut numbers = SmallVec::<[usize; TOGETHER]>::new();
        let mut questions = SmallVec::<[Question<'_>; TOGETHER]>::new();
        let mut before = TextsBefore::default();
        for (number, PendingCall { message, context }) in pending.iter().enumerate() {
            questions.push(Question::until(round.store_deadline(context.deadline), self.rights.of(context)));
            let Some(question) = questions.last_mut() else { continue };
            match self.read(question, message, before) {
                Ok(()) => {
                    before = TextsBefore::new(question);
                    numbers.push(number);
                }
                Err(status) => {
                    questions.pop();
                    each(number, Err(status));
                }
            }
        }
        let mut asked = numbers.iter().zip(&questions);
        let mut message = BUFFER.take();
        message.clear();
        message.reserve(PREFIX + ANSWER_BYTES);
        round.decide(questions.iter(), |begun| {
            let Some((&number, question)) = asked.next() else { return };
            let answer = match begun {
                Begun::Waiting(waiting) => {
                    let deadline = pending.get(number).and_then(|call| call.context.deadline);
                    unanswered.push((number, self.wait(waiting, question.asked(), deadline)));
                    return;
                }
                Begun::Answered(answer) => answer,
            };
            let written = answer.map_err(status::new).map(|answer| {
                message.clear();
                reply::frame(&mut message, |out| {
                    wire::response(out, &answer, question.asked(), &self.templates);
                });
            });
            each(number, written.map(|()| &message[..]));
        });
        if message.capacity() <= MOST_KEPT {
            BUFFER.set(message);
        }
        unanswered
    }

    #[inline(always)]
    pub(super) fn read<'a>(
        &self,
        question: &mut Question<'a>,
        message: &'a [u8],
        before: TextsBefore<'a>,
    ) -> Result<(), Status> {
        wire::read(question, message, before).map_err(status::malformed)?;
        if question.is_plain() { Ok(()) } else { self.build_inline(question) }
    }

    fn wait(self: &Arc<Self>, mut waiting: Waiting, asked: AskedFields, deadline: Option<Instant>) -> Call {
        let service = Arc::clone(self);
        Call::waiting(&self.deadlines, deadline, async move {
            let mut verdicts = Verdicts::default();
            let answer = service.limiter.wait(&mut waiting, &mut verdicts).await.map_err(status::new)?;
            Ok(Reply::message(ANSWER_BYTES, |out| wire::response(out, &answer, asked, &service.templates)))
        })
    }
}
