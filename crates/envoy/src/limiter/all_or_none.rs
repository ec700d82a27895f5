//! Descriptors that are charged together, all of them or none: of a domain in `envoy.all_or_none`, those whose entries `by`
//! have equal values. They are one decision over limits with costs of their own, under one tag.
//!
//! ```text
//!   key    envoy:minute.3f2a…|R4:edge/7:user_id=3:bob      the resource is what they have in common, and the name of a limit
//!          └ the unit, and a digest of the counter         says which counter it is: wherever it stands in a request
//! ```
//!
//! A counter is the same whether its descriptor comes alone or with others, so each of them is decided here. Bills and refunds
//! are forced, before the others and each for itself.

use std::sync::Arc;
use std::time::Instant;

use crate::rules::{Domain, STRATEGY};
use futures_util::future::{join, join_all};
use smallvec::SmallVec;
use weir_core::algorithm::budget::{
    Ask, BudgetLimit, BudgetLimitVerdict, CostedLimits, LimitCost, SettledCosts,
};
use weir_core::algorithm::{Algorithm, MAX_LIMITS, Op, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_node::limiter::{InvalidField, LimiterError, shown};
use weir_node::settle::Outcome;
use weir_store::{BudgetDecision, BudgetOp, LimitSet, StoreError, no_verdict};
use weir_time::clock;
use weir_units::{CEILING, Micros};

use super::decide::Outcomes;
use super::{DescriptorDecision, DescriptorQuestion, EnvoyDecisions, EnvoyLimiter, RateLimitAsk, name};

/// A question's place, and its outcome.
type PlacedOutcome = (usize, Result<Outcome<DescriptorDecision>, LimiterError>);

/// Descriptors that have the values of `by` in common.
pub(super) struct DescriptorGroup {
    /// Values that the descriptors have in common.
    resource: String,
    /// Bills and refunds.
    forced: Vec<GroupMember>,
    charged: Vec<GroupMember>,
}

/// One counter of a group.
#[derive(Clone)]
struct GroupMember {
    /// The questions about it: descriptors of a request may be equal.
    places: SmallVec<[usize; 1]>,
    limit: Limit,
    op: Op,
    hits: u64,
}

/// Finds the groups. More descriptors than a decision may have limits are refused, before anything is charged.
pub(super) fn groups(
    by: &[String],
    ask: &RateLimitAsk<'_>,
    questions: &[DescriptorQuestion<'_>],
    shadow_mode: bool,
) -> Result<Vec<DescriptorGroup>, InvalidField> {
    let mut groups: Vec<DescriptorGroup> = Vec::new();
    for (place, (question, descriptor)) in questions.iter().zip(&ask.descriptors).enumerate() {
        let value = |key: &String| ask.entries_of(descriptor).iter().find(|(found, _)| found == key).copied();
        let common: Option<Vec<(&str, &str)>> = by.iter().map(value).collect();
        let (Some(common), Some(member)) = (common, GroupMember::new(place, question, shadow_mode)) else {
            continue;
        };
        let resource = name::counter_name(ask.domain, &common, None);
        let at = groups.iter().position(|group| group.resource == resource).unwrap_or_else(|| {
            groups.push(DescriptorGroup { resource, forced: Vec::new(), charged: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.add(member, &question.name)?;
        }
    }
    match groups.iter().map(|group| group.charged.len()).max() {
        Some(most) if most > MAX_LIMITS => Err(InvalidField {
            field: "descriptors",
            value: format!("{most} that are charged together"),
            bound: format!(
                "at most {MAX_LIMITS} may be: the domain is in envoy.all_or_none by [{}]",
                by.join(", ")
            ),
        }),
        _ => Ok(groups),
    }
}

impl DescriptorGroup {
    fn add(&mut self, member: GroupMember, counter: &str) -> Result<(), InvalidField> {
        if member.op != Op::Charge {
            self.forced.push(member);
            return Ok(());
        }
        let Some(known) = self.charged.iter_mut().find(|known| known.limit.name == member.limit.name) else {
            self.charged.push(member);
            return Ok(());
        };
        if known.limit.algorithm != member.limit.algorithm {
            return Err(InvalidField {
                field: "descriptors",
                value: format!("\"{}\" with two limits", shown(counter)),
                bound: "descriptors that are charged together have one limit for each counter".to_owned(),
            });
        }
        known.places.extend(member.places);
        known.hits = known.hits.saturating_add(member.hits).min(CEILING - 1);
        Ok(())
    }
}

impl GroupMember {
    /// `None` if no limit applies. A limit that never denies is in shadow mode here, so that it keeps no other from being
    /// charged.
    fn new(place: usize, question: &DescriptorQuestion<'_>, shadow_mode: bool) -> Option<Self> {
        let [limit] = question.found.limit()?.strategy().limits() else { return None };
        let is_shadow = shadow_mode || question.found.rule().is_some_and(|rule| rule.shadow_mode);
        let algorithm = if is_shadow { limit.algorithm.in_shadow() } else { limit.algorithm };
        let name = format!("{}.{}", limit.name, name::digest_of(&question.name));
        let limit = Limit { name: name.as_str().into(), scope: Scope::new(&[Field::Resource]), algorithm };
        Some(Self { places: [place].into(), limit, op: question.op, hits: question.hits.min(CEILING - 1) })
    }
}

impl EnvoyDecisions {
    /// One answer per question: those of `groups` together, all others as ever.
    pub(super) async fn decide_groups(
        &self,
        envoy: &EnvoyLimiter,
        domain: &Domain,
        (groups, questions): (Vec<DescriptorGroup>, &[DescriptorQuestion<'_>]),
        asker: (Option<Instant>, u32),
        started: Instant,
    ) -> Result<Outcomes, LimiterError> {
        let members = groups.iter().flat_map(|group| group.forced.iter().chain(&group.charged));
        let grouped: Vec<usize> = members.flat_map(|member| member.places.iter().copied()).collect();
        let alone: Vec<usize> = (0..questions.len()).filter(|place| !grouped.contains(place)).collect();
        let rest: Vec<_> = alone.iter().filter_map(|&place| questions.get(place).cloned()).collect();
        let until = (self.store_deadline(asker.0, started), asker.1);
        let decide = |group| self.decide_group(envoy, domain, group, questions, until);
        let of_groups = join_all(groups.into_iter().map(decide));
        let (of_rest, of_groups) = join(self.decide_all(envoy, &rest, asker, started), of_groups).await;
        let mut all: Vec<(usize, Option<Outcome<DescriptorDecision>>)> =
            alone.into_iter().zip(of_rest?).collect();
        for (place, outcome) in of_groups.into_iter().flatten() {
            all.push((place, Some(outcome?)));
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
    }

    async fn decide_group(
        &self,
        envoy: &EnvoyLimiter,
        domain: &Domain,
        group: DescriptorGroup,
        questions: &[DescriptorQuestion<'_>],
        until: (Option<Instant>, u32),
    ) -> Vec<PlacedOutcome> {
        let mut outcomes = Vec::new();
        let is_shadow = group.charged.iter().all(|member| member.limit.algorithm.is_shadow());
        // A decision has a limit that is enforced; where none is, nothing depends on the others.
        let most = if is_shadow { MAX_LIMITS - 1 } else { MAX_LIMITS };
        for members in group.forced.chunks(1).chain(group.charged.chunks(most)) {
            let started = clock::monotonic();
            let decided = self.decide_members(domain, &group.resource, members, until).await;
            if !self.at_once || decided.is_err() {
                self.count_call(started, decided.as_ref().err());
            }
            for (index, member) in members.iter().enumerate() {
                let decided = match &decided {
                    Ok((now, limits)) => {
                        limits.get(index).map(|limit| decision_of(*now, limit)).ok_or_else(no_verdict)
                    }
                    Err(error) => Err(error.clone()),
                };
                for &place in &member.places {
                    let question = questions.get(place);
                    let Some((question, limit)) = question.and_then(|one| Some((one, one.found.limit()?)))
                    else {
                        continue;
                    };
                    outcomes.push((place, self.settle(envoy, question, limit, (decided.clone(), false))));
                }
            }
        }
        outcomes
    }

    /// Asks the store about the limits of these members: one of a bill or a refund, or all that are charged.
    async fn decide_members(
        &self,
        domain: &Domain,
        resource: &str,
        members: &[GroupMember],
        (deadline, caller): (Option<Instant>, u32),
    ) -> Result<(Micros, SmallVec<[BudgetLimitVerdict; 4]>), StoreError> {
        let strategy = strategy(domain, members)?;
        let costed = strategy.costed().ok_or_else(no_verdict)?;
        let (op, hits) = members.first().map_or((Op::Charge, 0), |member| (member.op, member.hits));
        let ask = Ask { costs: SmallVec::new(), cost: 0, peek: false, has_id: false, hold_for: None };
        let billed = SettledCosts { costs: SmallVec::new(), cost: Some(hits) };
        let op = match op {
            Op::Force => BudgetOp::Debit(&billed),
            Op::Refund => BudgetOp::Refund(hits, LimitSet::NONE.with(0)),
            _ => BudgetOp::Ask(&ask),
        };
        let subject = Subject { resource, ..Subject::default() };
        let decision = BudgetDecision { strategy: &strategy, costed, subject, op, id: "", deadline, caller };
        let answer = self.store.decide_costs(&decision);
        let verdict = answer.verdicts().await?.budget.ok_or_else(no_verdict)?;
        Ok((verdict.now, verdict.limits))
    }
}

/// The limits of the members, with their costs. There are at least two: a store may place a limit that is alone apart from the
/// others of its tag. The second one then takes nothing, so it has no state.
fn strategy(domain: &Domain, members: &[GroupMember]) -> Result<Arc<Strategy>, StoreError> {
    let refused = |error: &dyn ToString| StoreError::Refused(error.to_string().into());
    let cost_of = |member: &GroupMember| match member.op {
        Op::Charge => LimitCost::Fixed(member.hits),
        _ => LimitCost::Request,
    };
    let mut limits: Vec<Limit> = members.iter().map(|member| member.limit.clone()).collect();
    let mut costs: Vec<LimitCost> = members.iter().map(cost_of).collect();
    if limits.len() == 1 || limits.iter().all(|limit| limit.algorithm.is_shadow()) {
        let algorithm = Algorithm::uniform(Micros::from_secs(1)).map_err(|error| refused(&error))?;
        limits.push(Limit { name: "none".into(), scope: Scope::new(&[Field::Resource]), algorithm });
        costs.push(LimitCost::Fixed(0));
    }
    let with_cost = |(limit, cost): (&Limit, LimitCost)| BudgetLimit {
        algorithm: limit.algorithm,
        cost,
        at_once: false,
        near_percent: None,
    };
    let costed = CostedLimits {
        limits: limits.iter().zip(costs).map(with_cost).collect(),
        names: Vec::new(),
        hold: None,
    };
    let strategy = Strategy::new(STRATEGY, limits, false, FailurePolicy::Error);
    let strategy = strategy.map_err(|error| refused(&error))?;
    Ok(Arc::new(strategy.owned_by(domain.owner()).with_costs(costed)))
}

/// The decision over one descriptor: it is over if its own limit is.
fn decision_of(now: Micros, limit: &BudgetLimitVerdict) -> DescriptorDecision {
    let fits = limit.cause.is_none();
    let granted = limit.granted.or(limit.charged).unwrap_or(0);
    let verdict =
        Verdict { now, allowed: fits, fitted: fits, granted, wait: Micros::ZERO, applied: granted > 0 };
    DescriptorDecision { verdict, limit: limit.plain(), cached: false }
}
