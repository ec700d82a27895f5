//! Questions that have arrived in one message, answered as many at a time as are worth it.

use std::time::Instant;

use smallvec::SmallVec;
use tonic::Status;

use super::wire::WireQuestion;
use super::{DecisionService, status};
use crate::limiter::{Lent, Round};
use crate::store::{Store, TOGETHER};

impl<S: Store> DecisionService<S> {
    /// Answers the next questions of a message, `most` of them, each with its id, and appends the results; says how
    /// many there were. More than [`TOGETHER`] at a time save nothing more.
    pub(super) fn decide_next<'a: 'q, 'q>(
        &'a self,
        round: &mut Round<'a, S>,
        out: &mut Vec<u8>,
        first: u32,
        deadline: Option<Instant>,
        most: usize,
        mut next: impl FnMut() -> Option<(u64, Result<&'q [u8], Status>)>,
    ) -> usize {
        let mut questions = SmallVec::<[(u64, WireQuestion<'q>); TOGETHER]>::new();
        let mut malformed = None;
        while questions.len() < most
            && malformed.is_none()
            && let Some((id, question)) = next()
        {
            let like = questions.last().map(|(_, question)| question);
            let read = question.and_then(|bytes| WireQuestion::read(bytes, like).map_err(status::malformed));
            match read {
                Ok(question) => questions.push((id, question)),
                Err(status) => malformed = Some((id, status)),
            }
        }
        let asks = questions.iter().map(|(_, question)| question.ask(deadline));
        let mut asked = questions.iter();
        round.decide_each(asks, |answer| {
            if let Some((id, question)) = asked.next() {
                let answered = answer.map(|answer| (answer, question.cost())).map_err(status::of);
                self.push(out, first, *id, &answered);
            }
        });
        let mut count = questions.len();
        if let Some((id, status)) = malformed {
            self.push::<&[_]>(out, first, id, &Err::<(Lent<'_, '_>, u64), _>(status));
            count += 1;
        }
        count
    }
}
