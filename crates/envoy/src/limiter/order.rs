//! Order in which descriptors of one request are sent to a store that answers later.
//!
//! Descriptors with different counters go together. Of those that share a counter, equal ones go together too: the
//! store decides them in their order. If they differ (an override beside a rule, a refund before a hit), each waits
//! for those before it.

use std::sync::Arc;

use smallvec::SmallVec;

use super::DescriptorQuestion;

/// Places of questions that are sent together.
pub(super) type EqualDescriptors = SmallVec<[usize; 2]>;

/// The runs of each counter, to be sent one after the other; `None` if all questions can go together.
pub(super) fn runs(questions: &[DescriptorQuestion<'_>]) -> Option<Vec<Vec<EqualDescriptors>>> {
    let mut places: SmallVec<[usize; 8]> = (0..questions.len()).collect();
    // The sort is stable, so that questions about one counter stay in their order.
    places.sort_by_key(|&place| counter(questions, place));
    let follows = |before: usize, place: usize| counter(questions, before) == counter(questions, place);
    let mut waits = false;
    let mut counters: Vec<Vec<EqualDescriptors>> = Vec::with_capacity(questions.len());
    let mut before = None;
    for place in places {
        match (before.filter(|&before| follows(before, place)), counters.last_mut()) {
            (Some(before), Some(runs)) => match runs.last_mut() {
                Some(run) if are_equal(questions, before, place) => run.push(place),
                _ => {
                    waits = true;
                    runs.push(EqualDescriptors::from_slice(&[place]));
                }
            },
            _ => counters.push(vec![EqualDescriptors::from_slice(&[place])]),
        }
        before = Some(place);
    }
    waits.then_some(counters)
}

/// Identifies a question's counter by name and unit. Questions without a limit have no unit, and are equal to one
/// another.
fn counter<'q>(questions: &'q [DescriptorQuestion<'_>], place: usize) -> (&'q str, Option<&'static str>) {
    let question = questions.get(place);
    let unit = question.and_then(|question| question.found.limit()).map(|limit| limit.unit().name());
    (question.map_or("", |question| &question.name), unit)
}

fn are_equal(questions: &[DescriptorQuestion<'_>], one: usize, other: usize) -> bool {
    let (Some(one), Some(other)) = (questions.get(one), questions.get(other)) else { return false };
    match (one.found.limit(), other.found.limit()) {
        (None, None) => true,
        (Some(a), Some(b)) => one.op == other.op && Arc::ptr_eq(a.strategy(), b.strategy()),
        _ => false,
    }
}
