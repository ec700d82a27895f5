//! Questions under strategies whose limits have costs of their own, in a round.

use weir_store::{BudgetDecision, BudgetOp, Store, StoreAnswer, StoreError, Verdicts};

use super::LimiterError;
use super::advice::{AdviceBegun, AdviceWanted};
use super::answer::Answer;
use super::costed_slot::CostedSlot;
use super::log::LogFields;
use super::logged_costs;
use super::round::Round;
use super::waiting::{Begun, decision};
use crate::settle::Outcome;

impl<S: Store> Round<'_, S> {
    /// Asks the store for what a question asks. The answer's verdicts are put into `verdicts`.
    #[cold]
    pub(super) fn decide_costed<'q, 'v>(
        &mut self,
        slot: &CostedSlot<'q, '_>,
        verdicts: &'v mut Verdicts,
    ) -> Begun<'q, 'v> {
        let answer = if self.is_late {
            StoreAnswer::Ready(Err(StoreError::Timeout))
        } else {
            self.limiter().store.decide_costs(&BudgetDecision {
                strategy: slot.strategy,
                costed: slot.costed,
                subject: slot.subject,
                op: BudgetOp::Ask(&slot.ask),
                id: slot.question.id(),
                deadline: slot.question.deadline,
                caller: slot.question.caller,
            })
        };
        match answer {
            StoreAnswer::Later(later) => {
                Begun::Waiting(self.waiting(slot.row, slot.question, &slot.plain(), later))
            }
            StoreAnswer::Ready(decided) => Begun::Answered(self.costed(slot, decided, verdicts)),
        }
    }

    fn costed<'q, 'v>(
        &mut self,
        slot: &CostedSlot<'q, '_>,
        decided: Result<Verdicts, StoreError>,
        verdicts: &'v mut Verdicts,
    ) -> Result<Answer<'q, 'v>, LimiterError> {
        let strategy = slot.strategy;
        let decided = decided.map(|answered| *verdicts = answered).and_then(|()| decision(verdicts));
        let outcome = match decided {
            Ok(decided) => {
                self.store_answers += 1;
                if let Some(costs) = decided.costs {
                    self.limiter().recorder.saw_holds(strategy, &slot.subject, costs);
                }
                if let Some(costs) = decided.costs.filter(|_| !slot.ask.peek) {
                    let asked = (&**strategy, slot.subject.consumer);
                    self.limiter().recorder.asked_costs(slot.row, asked, costs);
                }
                Ok(Outcome::Decided(decided))
            }
            Err(error) => self.failed(strategy, error),
        };
        let plain = slot.plain();
        if self.limiter().counts_denial(&plain) {
            self.limiter().count_denial(strategy, &plain.subject, &outcome);
        }
        if self.limiter().recorder.decision_log().is_some() {
            let asked = logged_costs::asked(slot.question);
            let asked = (slot.question.is_for_default(), asked.as_ref());
            self.limiter().log_decision(&plain, asked, &outcome);
        }
        let fields = LogFields::of_decision(&plain).without_named_cost();
        let mut answer = self.record(slot.row, strategy, &fields, outcome)?;
        if slot.question.headers {
            let begun = AdviceWanted::new(&plain).begin(
                &*self.limiter().store,
                (strategy, strategy),
                &answer.outcome,
            );
            // It needs no further question.
            answer.advice = if let AdviceBegun::Known(advice) = begun { advice } else { None };
        }
        Ok(answer)
    }
}
