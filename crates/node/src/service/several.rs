//! Questions of one message, decided in groups.

use std::sync::Arc;

use smallvec::SmallVec;
use tonic::Status;
use weir_grpc::CallContext;
use weir_store::{Store, TOGETHER, Verdicts};

use super::wire::TextsBefore;
use super::{Decisions, put, status, wire};
use crate::limiter::{Answer, AskedFields, Begun, LimiterError, Question, Round, Waiting};

/// Bytes of most results.
pub(super) const RESULT_BYTES: usize = 80;

/// A pending question of a message.
pub(super) struct LaterResult {
    /// Offset of its result among the encoded results.
    pub(super) at: usize,
    id: u64,
    asked: AskedFields,
    /// The number of the response's field in a result; that of the error is the next one.
    field: u32,
    waiting: Waiting,
}

impl<S: Store> Decisions<S> {
    /// Decides up to `most` next questions of a message, each with its id. Encoded results are appended to `out`,
    /// pending ones to `later`. Returns the number of questions. More than [`TOGETHER`] at a time save nothing more.
    /// `field` is the number of the response's field in a result.
    pub(super) fn decide_next<'a: 'q, 'q>(
        &'a self,
        round: &mut Round<'a, S>,
        (out, later): (&mut Vec<u8>, &mut Vec<LaterResult>),
        field: u32,
        context: &'q CallContext,
        most: usize,
        mut next: impl FnMut() -> Option<(u64, Result<&'q [u8], Status>)>,
    ) -> usize {
        let mut ids = SmallVec::<[u64; TOGETHER]>::new();
        let mut questions = SmallVec::<[Question<'q>; TOGETHER]>::new();
        let mut unread = None;
        let mut before = TextsBefore::default();
        let (store_deadline, rights) = (round.store_deadline(context.deadline), self.rights.of(context));
        // Advice is computed before the next question is decided.
        let wants_advice = |last: &Question<'_>| last.headers;
        while questions.len() < most
            && !questions.last().is_some_and(wants_advice)
            && let Some((id, question)) = next()
        {
            let bytes = match question {
                Ok(bytes) => bytes,
                Err(status) => {
                    unread = Some((id, status));
                    break;
                }
            };
            questions.push(Question::until(store_deadline, rights));
            let Some(question) = questions.last_mut() else { break };
            if let Err(status) = self.read(question, bytes, before) {
                unread = Some((id, status));
                questions.pop();
                break;
            }
            before = TextsBefore::new(question);
            ids.push(id);
        }
        let mut asked = ids.iter().zip(&questions);
        let mut failed = None;
        round.decide(questions.iter(), |begun| {
            let Some((&id, question)) = asked.next() else { return };
            let asked = question.asked();
            match begun {
                Begun::Answered(Ok(answer)) => self.push(out, field, id, asked, Ok(answer)),
                Begun::Answered(Err(error)) => push_error(out, field, id, error, &mut failed),
                Begun::Waiting(waiting) => {
                    later.push(LaterResult { at: out.len(), id, asked, field, waiting });
                }
            }
        });
        let mut count = questions.len();
        if let Some((id, status)) = unread {
            self.push(out, field, id, AskedFields::plain(0), Err(status));
            count += 1;
        }
        count
    }

    /// Waits for the store, and encodes the result. No async function: that would have room for its arguments twice, and each
    /// question of a batch on Redis has such a future.
    #[allow(clippy::manual_async_fn)]
    pub(super) fn result(self: Arc<Self>, mut later: LaterResult) -> impl Future<Output = Vec<u8>> {
        async move {
            let mut verdicts = Verdicts::default();
            let answer = self.limiter.wait(&mut later.waiting, &mut verdicts).await.map_err(status::new);
            // One allocation: growing from nothing took three.
            let mut out = Vec::with_capacity(RESULT_BYTES);
            self.push(&mut out, later.field, later.id, later.asked, answer);
            out
        }
    }

    /// Appends a result: its `id` (omitted if 0), then the response, or the error in the field after it.
    #[inline]
    fn push(
        &self,
        out: &mut Vec<u8>,
        field: u32,
        id: u64,
        asked: AskedFields,
        answer: Result<Answer<'_, '_>, Status>,
    ) {
        let write = answer
            .as_ref()
            .map(|answer| |out: &mut Vec<u8>| wire::response(out, answer, asked, &self.templates));
        wire::result(out, field, |out| put::number(out, 1, id), write);
    }
}

/// Appends an error as a result. While the store fails all errors are alike, and `failed` has the last one: its status
/// costs as much as a decision.
#[cold]
fn push_error(
    out: &mut Vec<u8>,
    field: u32,
    id: u64,
    error: LimiterError,
    failed: &mut Option<(LimiterError, Status)>,
) {
    let own;
    let status = match failed {
        Some((before, status)) if *before == error => &*status,
        failed if matches!(error, LimiterError::Store { .. }) => {
            &failed.insert((error.clone(), status::new(error))).1
        }
        // Others are counted and logged each.
        _ => {
            own = status::new(error);
            &own
        }
    };
    let answer = Err::<fn(&mut Vec<u8>), _>(status);
    wire::result(out, field, |out| put::number(out, 1, id), answer);
}
