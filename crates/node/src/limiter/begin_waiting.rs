//! A question whose answer comes later, as a round leaves it.

use std::sync::Arc;

use weir_store::{Decision, LaterVerdicts, OwnedSubject, Store};

use super::Question;
use super::advice::AdviceWanted;
use super::log::LogFields;
use super::round::Round;
use super::waiting::{Waiting, WaitingNotes, WaitingStage};
use crate::telemetry::TotalsRow;

impl<S: Store> Round<'_, S> {
    pub(super) fn waiting(
        &self,
        row: TotalsRow,
        question: &Question<'_>,
        decision: &Decision<'_>,
        later: LaterVerdicts,
    ) -> Waiting {
        let fields = LogFields::of_decision(decision).without_named_cost();
        let sampled = self.limiter().recorder.samples().then(|| fields.consumer.into());
        let (cost, peek, log) = (fields.cost, fields.peek, fields.owned_if_logged());
        let decision_log = self.limiter().logged_later(decision, question);
        let banning = self.limiter().counts_denial(decision).then(|| OwnedSubject::new(&decision.subject));
        let holds = || decision.strategy.costed().is_some_and(|costed| costed.hold.is_some());
        let subject = decision.strategy.is_special() && (decision.strategy.marks().is_some() || holds());
        let subject = subject.then(|| OwnedSubject::new(&decision.subject));
        let is_noted = subject.is_some()
            || log.is_some()
            || decision_log.is_some()
            || sampled.is_some()
            || banning.is_some();
        let notes = is_noted
            .then(|| Box::new(WaitingNotes { log, decision_log, subject, sampled, banning, live: None }));
        let advice = question.headers.then(|| Box::new(AdviceWanted::new(decision)));
        let (strategy, stage) = (Arc::clone(decision.strategy), WaitingStage::Decision(later));
        Waiting { row, peek, cost, strategy, asked: self.started, stage, notes, advice }
    }
}
