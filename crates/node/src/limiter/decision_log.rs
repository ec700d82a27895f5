//! Lines of the decision log.
//!
//! Events are the operations that charge or give back; peeks and counts are not logged. A decision is logged where it
//! is counted, in the order in which its worker settled it. Its timestamp is the store's.

use std::sync::Arc;

use smallvec::SmallVec;
use weir_core::algorithm::budget::BudgetVerdict;
use weir_core::algorithm::{LimitVerdict, Op, Verdict};
use weir_core::strategy::{Field, Strategy, inline_name};
use weir_store::{
    BudgetDecision, BudgetOp, Decision, LimitSet, OwnedSubject, Part, Store, StoreError, Verdicts,
};

use super::decided::{LimiterError, LimitsDecision};
use super::{Limiter, Question, logged_costs, record};
use crate::settle::Outcome;
use crate::telemetry::{CountedOutcome, DecisionLine, LoggedCosts, Recorder, is_denial};

/// Owned fields of a pending decision that will be logged.
pub(super) struct PendingLogLine {
    strategy: Arc<Strategy>,
    subject: OwnedSubject,
    op: Op,
    cost: u64,
    is_for_default: bool,
    /// The limits and the id, where it has any.
    part: Option<(LimitSet, String)>,
    /// The costs by name, where it has any.
    costs: Option<LoggedCosts>,
}

/// Costs by name in a line.
#[derive(Clone, Copy, Default)]
struct LineCosts<'a> {
    asked: Option<&'a LoggedCosts>,
    verdict: Option<&'a BudgetVerdict>,
}

impl PendingLogLine {
    fn new(decision: &Decision<'_>, question: &Question<'_>) -> Self {
        Self {
            strategy: Arc::clone(decision.strategy),
            subject: OwnedSubject::new(&decision.subject),
            op: decision.op,
            cost: decision.costs.first().copied().unwrap_or_default(),
            is_for_default: question.is_for_default(),
            part: decision.part.map(|part| (part.limits, part.id.to_owned())),
            costs: logged_costs::asked(question),
        }
    }
}

/// The name of an operation in the log; `None` if it changes nothing.
const fn name_of(op: Op) -> Option<&'static str> {
    match op {
        Op::Charge => Some("charge"),
        Op::AtMost => Some("at_most"),
        Op::Reserve { .. } => Some("reserve"),
        Op::Cancel => Some("cancel"),
        Op::Force => Some("debit"),
        Op::Refund => Some("refund"),
        Op::Reset => Some("reset"),
        Op::Peek | Op::Count { .. } => None,
    }
}

impl<S: Store> Limiter<S> {
    /// Returns an owned copy of a pending decision, if it may be logged.
    #[inline]
    pub(super) fn logged_later(
        &self,
        decision: &Decision<'_>,
        question: &Question<'_>,
    ) -> Option<PendingLogLine> {
        self.recorder.decision_log().and_then(|log| {
            let wanted = log.wants(decision.subject.resource, decision.subject.consumer, true);
            (wanted && name_of(decision.op).is_some()).then(|| PendingLogLine::new(decision, question))
        })
    }

    /// Logs an answered decision. `is_for_default` is true if the request left the strategy to the configuration. `asked` are
    /// its costs by name.
    #[cold]
    pub(super) fn log_decision(
        &self,
        decision: &Decision<'_>,
        (is_for_default, asked): (bool, Option<&LoggedCosts>),
        outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    ) {
        let cost = decision.costs.first().copied().unwrap_or_default();
        let (counted, _) = record::counted(outcome, cost, decision.op == Op::Peek);
        let verdict = match outcome {
            Ok(
                Outcome::Decided(LimitsDecision { verdict, limits, .. })
                | Outcome::Local(LimitsDecision { verdict, limits, .. }),
            ) => Some((verdict, *limits)),
            _ => None,
        };
        let costs = match outcome {
            Ok(Outcome::Decided(decision)) => decision.costs,
            _ => None,
        };
        let costs = LineCosts { asked, verdict: costs };
        // The limits in the line are those that answered.
        let local = decision.strategy.local().filter(|_| matches!(outcome, Ok(Outcome::Local(_))));
        let strategy = local.map_or(decision.strategy, |local| local.strategy());
        self.log_line(&Decision { strategy, ..*decision }, is_for_default, counted.name(), verdict, costs);
    }

    #[cold]
    pub(super) fn log_waited(
        &self,
        owned: &PendingLogLine,
        outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    ) {
        let PendingLogLine { strategy, subject, op, cost, is_for_default, part, costs: asked } = owned;
        let part = part.as_ref().map(|(limits, id)| Part { limits: *limits, id });
        let costs = [*cost];
        let decision =
            Decision { part: part.as_ref(), ..Decision::new(strategy, subject.subject(), *op, &costs) };
        self.log_decision(&decision, (*is_for_default, asked.as_ref()), outcome);
    }

    /// Logs a debit, a cancelled reservation, a refund or a reset.
    #[cold]
    pub(super) fn log_change(
        &self,
        decision: &Decision<'_>,
        is_for_default: bool,
        result: &Result<Verdicts, StoreError>,
    ) {
        let Some((verdict, limits)) = result.as_ref().ok().and_then(|verdicts| verdicts.get(0)) else {
            let (outcome, costs) = (CountedOutcome::Error.name(), LineCosts::default());
            return self.log_line(decision, is_for_default, outcome, None, costs);
        };
        let outcome = if is_applied(decision.op, verdict) { "done" } else { "known" };
        self.log_line(decision, is_for_default, outcome, Some((verdict, limits)), LineCosts::default());
    }

    /// Logs a settlement, a debit, a refund or a reset of limits with costs of their own.
    #[cold]
    pub(super) fn log_costs(
        &self,
        changed: &BudgetDecision<'_>,
        question: &Question<'_>,
        cost: Option<u64>,
        result: &Result<Verdicts, StoreError>,
    ) {
        let (operation, op, limits) = match changed.op {
            BudgetOp::Ask(_) => return,
            BudgetOp::Settle(_) => ("settle", Op::Force, LimitSet::ALL),
            BudgetOp::Debit(_) => ("debit", Op::Force, LimitSet::ALL),
            BudgetOp::Refund(_, limits) => ("refund", Op::Refund, limits),
            BudgetOp::Reset(limits) => ("reset", Op::Reset, limits),
        };
        let (costs, part) = ([cost.unwrap_or_default()], Part { limits, id: changed.id });
        let decision =
            Decision { part: Some(&part), ..Decision::new(changed.strategy, changed.subject, op, &costs) };
        let asked = (op == Op::Force).then(|| logged_costs::used(question));
        let answered = result.as_ref().ok().and_then(|verdicts| {
            let (verdict, limits) = verdicts.get(0)?;
            // What a refund gave back is what it names.
            let granted = if op == Op::Refund && verdict.applied { costs[0] } else { verdict.granted };
            Some((Verdict { granted, ..*verdict }, limits, verdicts.budget.as_deref()))
        });
        let outcome = match &answered {
            Some((verdict, ..)) if verdict.applied => "done",
            Some(_) => "known",
            None => CountedOutcome::Error.name(),
        };
        let costs =
            LineCosts { asked: asked.as_ref(), verdict: answered.as_ref().and_then(|(.., costs)| *costs) };
        let verdict = answered.as_ref().map(|(verdict, limits, _)| (verdict, *limits));
        write_line(&self.recorder, operation, &decision, question.is_for_default(), outcome, verdict, costs);
    }

    fn log_line(
        &self,
        decision: &Decision<'_>,
        is_for_default: bool,
        outcome: &'static str,
        verdict: Option<(&Verdict, &[LimitVerdict])>,
        costs: LineCosts<'_>,
    ) {
        if let Some(operation) = name_of(decision.op) {
            write_line(&self.recorder, operation, decision, is_for_default, outcome, verdict, costs);
        }
    }
}

/// Logs a decision by limits of a feature.
#[cold]
pub fn log_decision(
    recorder: &Recorder,
    decision: &Decision<'_>,
    outcome: CountedOutcome,
    verdict: Option<(&Verdict, &LimitVerdict)>,
) {
    let outcome = match (decision.op, verdict) {
        (Op::Force | Op::Refund, Some(_)) => "done",
        _ => outcome.name(),
    };
    let verdict = verdict.map(|(verdict, limit)| (verdict, std::slice::from_ref(limit)));
    if let Some(operation) = name_of(decision.op) {
        write_line(recorder, operation, decision, false, outcome, verdict, LineCosts::default());
    }
}

fn write_line(
    recorder: &Recorder,
    operation: &'static str,
    decision: &Decision<'_>,
    is_for_default: bool,
    outcome: &'static str,
    verdict: Option<(&Verdict, &[LimitVerdict])>,
    LineCosts { asked, verdict: by_name }: LineCosts<'_>,
) {
    let Decision { strategy, subject, op, costs, part, .. } = *decision;
    let Some(log) = recorder.decision_log() else { return };
    if !log.wants(subject.resource, subject.consumer, is_denial(outcome)) {
        return;
    }
    let line = DecisionLine {
        time: verdict.map(|(verdict, _)| verdict.now),
        operation,
        strategy: strategy.name(),
        is_for_default,
        inline: inline_name(strategy.name()).and_then(|_| strategy.algorithms().first()),
        subject,
        cost: costs.first().copied().unwrap_or_default(),
        // A cancellation grants nothing: it tells there whether it was made before.
        granted: verdict.filter(|_| op != Op::Cancel).map_or(0, |(verdict, _)| verdict.granted),
        max_wait: match op {
            Op::Reserve { max_wait } => Some(max_wait),
            _ => None,
        },
        id: part.map_or("", |part| part.id),
        applied: verdict.is_some_and(|(verdict, _)| is_applied(op, verdict)),
        outcome,
        named: named(strategy, op, part),
        limits: match verdict {
            Some((_, limits)) => decision.limits().zip(limits.iter().copied()).collect(),
            None => SmallVec::new(),
        },
        asked,
        costs: by_name,
    };
    log.write(&line);
}

/// True if this call made the change. A repeated refund gives back nothing.
fn is_applied(op: Op, verdict: &Verdict) -> bool {
    verdict.applied && (verdict.granted > 0 || op != Op::Refund)
}

/// Names of the limits that a refund or a reset named; empty if they are the operation's default ones.
pub(super) fn named<'s>(strategy: &'s Strategy, op: Op, part: Option<&Part<'_>>) -> SmallVec<[&'s str; 4]> {
    let meant = |limit: &weir_core::strategy::Limit| op != Op::Reset || limit.scope.has(Field::Consumer);
    let limits = || strategy.limits().iter().enumerate();
    let set = match part {
        Some(part) if matches!(op, Op::Refund | Op::Reset) => part.limits,
        _ => return SmallVec::new(),
    };
    if limits().all(|(index, limit)| set.has(index) == meant(limit)) {
        return SmallVec::new();
    }
    limits().filter(|(index, _)| set.has(*index)).map(|(_, limit)| &*limit.name).collect()
}
