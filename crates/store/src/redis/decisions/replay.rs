//! Replays decisions of the short path to compute their verdicts.
//!
//! The short path answers with the states that it decided on. From them the arithmetic that decides in memory
//! computes the verdicts of all limits, at no cost to the server. It must admit as much as the script did.

use std::slice::Iter;
use std::sync::Arc;

use redis::Value;
use smallvec::SmallVec;

use super::DecisionRequest;
use super::reason::read_reason;
use crate::redis::callers::Replies;
use crate::redis::reply::{NOT_A_STATE, garbled, whole};
use crate::{LimitSet, StoreError, Verdicts};
use weir_core::algorithm::budget::{BudgetCells, CallRecord, HeldParts, HoldRecord, ask};
use weir_core::algorithm::{Algorithm, Cells, Kept, MAX_LIMITS, Op, State, decide};
use weir_units::Micros;

/// Answers `requests` from the states at the front of `numbers`. `reasons` starts with their failures.
pub(super) fn replay(
    requests: &[Arc<DecisionRequest>],
    now: Micros,
    admitted: u64,
    numbers: &mut impl Iterator<Item = f64>,
    reasons: &mut Iter<'_, Value>,
) -> Result<Replies<Verdicts>, StoreError> {
    let mut failure = next_failure(reasons)?;
    // Charges admitted here, and charges on invalid states, which the script may have admitted.
    let (mut counted, mut doubtful) = (0, 0);
    let mut replies = Replies::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let states = request.algorithms().map(|limit| restored(limit, numbers));
        let states: SmallVec<[_; 3]> = states.collect::<Result<_, _>>()?;
        if let Some((_, why)) = failure.take_if(|(failed, _)| *failed == index) {
            replies.push(Err(why));
            failure = next_failure(reasons)?;
        } else if let Some(states) = states.into_iter().collect() {
            let verdicts = verdicts(request, Replayed(states), now)?;
            let fitting =
                verdicts.decisions.iter().zip(charges(request)).filter(|(verdict, _)| verdict.allowed);
            counted += fitting.filter(|(_, is_charge)| *is_charge).count() as u64;
            replies.push(Ok(verdicts));
        } else {
            doubtful += charges(request).filter(|is_charge| *is_charge).count() as u64;
            replies.push(Err(StoreError::Unreadable(NOT_A_STATE.into())));
        }
    }
    // Consistency check: if the script admitted another number of charges, both disagree on the contract.
    let alike = counted <= admitted && admitted - counted <= doubtful;
    if alike && failure.is_none() { Ok(replies) } else { Err(garbled()) }
}

/// Reads the next failed decision: its index and its error.
fn next_failure(reasons: &mut Iter<'_, Value>) -> Result<Option<(usize, StoreError)>, StoreError> {
    let Some(Value::Int(place)) = reasons.as_slice().first() else { return Ok(None) };
    let (_, Some(reason)) = (reasons.next(), reasons.next()) else { return Err(garbled()) };
    let index = usize::try_from(place - 1).map_err(|_| garbled())?;
    Ok(Some((index, read_reason(reason)?)))
}

/// For each of its decisions, whether it charges anything if it is admitted.
fn charges(request: &DecisionRequest) -> impl Iterator<Item = bool> {
    // Each cost of limits with costs of their own is above 0.
    let own = request.plain_costs().map(|(_, asked)| !asked.peek);
    request.costs.iter().map(move |cost| own.unwrap_or(request.op == Op::Charge && *cost > 0))
}

fn verdicts(request: &DecisionRequest, mut cells: Replayed, now: Micros) -> Result<Verdicts, StoreError> {
    if request.budget.is_some() {
        let (costed, asked) = request.plain_costs().ok_or_else(garbled)?;
        let verdict = ask(costed, cells, asked, now).map_err(|_| garbled())?;
        return Ok(Verdicts::of_costs(costed, verdict));
    }
    let some: SmallVec<[Algorithm; MAX_LIMITS]>;
    let limits = if request.limits == LimitSet::ALL {
        request.strategy.algorithms()
    } else {
        some = request.algorithms().copied().collect();
        &some
    };
    let mut out = Verdicts::default();
    for &cost in &request.costs {
        let Ok(()) = decide(limits, &mut cells, request.op, cost, now, &mut out);
    }
    Ok(out)
}

/// Restores what the script read: no state, a state, or `None` for numbers that are not a valid state.
fn restored(
    limit: &Algorithm,
    numbers: &mut impl Iterator<Item = f64>,
) -> Result<Option<Option<State>>, StoreError> {
    let first = numbers.next().ok_or_else(garbled)?;
    if first.is_nan() {
        return Ok(Some(None));
    }
    let all = std::iter::once(first).chain(numbers);
    let mut whole = all.map(|number| whole(number).unwrap_or(u64::MAX));
    Ok(limit.engine().restore(&mut whole).map(Some))
}

struct Replayed(SmallVec<[Option<State>; 3]>);

impl Cells for Replayed {
    type Full = std::convert::Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.0.get(index).and_then(Option::as_ref)
    }

    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Self::Full> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        if let Some(state) = self.0.get_mut(index) {
            change(state);
        }
    }
}

/// On the short path nothing is held, and no call has an id.
impl BudgetCells for Replayed {
    fn parts(&self, _: usize) -> Option<&HeldParts> {
        None
    }

    fn put_parts(&mut self, _: usize, _: HeldParts) {}

    fn key(&self, _: usize) -> u64 {
        0
    }

    fn mark(&mut self) -> u64 {
        0
    }

    fn hold(&self) -> Option<&HoldRecord> {
        None
    }

    fn put_hold(&mut self, _: HoldRecord) -> Result<(), Self::Full> {
        Ok(())
    }

    fn call(&self) -> Option<&CallRecord> {
        None
    }

    fn put_call(&mut self, _: CallRecord) -> Result<(), Self::Full> {
        Ok(())
    }
}
