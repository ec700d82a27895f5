//! Random calls on limits with costs.

use proptest::prelude::*;
use weir_core::algorithm::Algorithm;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, LimitCost, SettledCosts,
};
use weir_store::LimitSet;
use weir_units::{CEILING, Micros, Retry};

use super::limits::{NAMES, StoryLimits, limits};
use crate::properties::random::Pause;

/// Limits under two configurations, and calls.
#[derive(Debug, Clone)]
pub struct Story {
    pub limits: StoryLimits,
    pub steps: Vec<StoryStep>,
}

/// One call.
#[derive(Debug, Clone)]
pub struct StoryStep {
    pause: Pause,
    clock: ClockStep,
    /// True if the second configuration is in force.
    pub changed: bool,
    kind: StepKind,
    id: usize,
    units: [Units; 3],
    least: [Option<u16>; 2],
    hold_for: u16,
    limits: u8,
}

/// A step of the clock before a call, beside the pause.
#[derive(Debug, Clone, Copy)]
enum ClockStep {
    None,
    Back(u64),
    To(u64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum StepKind {
    Charge,
    Peek,
    Hold,
    Settle,
    Debit,
    Refund,
    Reset,
}

/// A cost or a use.
#[derive(Debug, Clone, Copy)]
enum Units {
    None,
    Exactly(u64),
    /// The last `remaining` of the first limit with this cost, or one less or more.
    Remaining(i8),
    /// The limit itself, or one less or more.
    Limit(i8),
}

/// An operation of a story.
#[derive(Debug)]
pub enum StoryOp {
    Ask(Ask),
    Settle(SettledCosts),
    Debit(SettledCosts),
    Refund(u64, LimitSet),
    Reset(LimitSet),
}

const IDS: [&str; 4] = ["", "first", "second", "third"];

impl StoryStep {
    /// Returns the id of a hold or settlement.
    pub fn id(&self) -> &'static str {
        match self.kind {
            StepKind::Hold | StepKind::Settle => IDS[self.id.max(1)],
            StepKind::Charge | StepKind::Debit => IDS[self.id],
            _ => "",
        }
    }

    /// Returns the time of the call, after a call at `before` that was answered with `last`.
    pub fn time(&self, before: Micros, last: Option<&BudgetVerdict>) -> Micros {
        let reset = last.map_or(0, |last| last.reset_after.0);
        let retry = last.map_or(0, |last| match last.retry {
            Retry::After(wait) => wait.0,
            _ => last.held_for.unwrap_or(Micros::ZERO).0,
        });
        let pause = match self.pause {
            Pause::Exactly(pause) => pause,
            Pause::Retry(off) => retry.saturating_add_signed(off.into()),
            Pause::Reset(off) => reset.saturating_add_signed(off.into()),
            Pause::Share(share) => (u128::from(reset) * u128::from(share) / 65_536) as u64,
        };
        let at = before.0.saturating_add(pause).min(CEILING);
        Micros(match self.clock {
            ClockStep::None => at,
            ClockStep::Back(by) => at.saturating_sub(by),
            ClockStep::To(time) => time,
        })
    }

    /// Returns the operation of the call.
    pub fn op(&self, costed: &CostedLimits, last: Option<&BudgetVerdict>) -> StoryOp {
        let units = |place: usize, cost| self.units[place].resolve(costed, cost, last);
        let named = |name: usize| units(name, LimitCost::Named(name));
        let used = || SettledCosts {
            costs: (0..NAMES.len()).map(named).collect(),
            cost: units(2, LimitCost::Request),
        };
        let limits = |fits: &dyn Fn(&Algorithm) -> bool| {
            let has = |(index, limit): &(usize, &BudgetLimit)| {
                self.limits & 1 << index != 0 && fits(&limit.algorithm)
            };
            costed
                .limits
                .iter()
                .enumerate()
                .filter(has)
                .fold(LimitSet::NONE, |all, (index, _)| all.with(index))
        };
        let refunds = |limit: &Algorithm| limit.is_adjustable() && !limit.counts_denied();
        match self.kind {
            StepKind::Settle if costed.hold.is_some() => StoryOp::Settle(used()),
            StepKind::Debit => StoryOp::Debit(used()),
            StepKind::Refund => StoryOp::Refund(units(2, LimitCost::Request).unwrap_or(1), limits(&refunds)),
            StepKind::Reset => StoryOp::Reset(limits(&|_| true)),
            kind => StoryOp::Ask(self.ask(costed, kind, last)),
        }
    }

    fn ask(&self, costed: &CostedLimits, kind: StepKind, last: Option<&BudgetVerdict>) -> Ask {
        let units = |place: usize, cost| self.units[place].resolve(costed, cost, last).unwrap_or(1);
        let asked = |(name, least): (usize, &Option<u16>)| {
            let cost = units(name, LimitCost::Named(name));
            let least = least.filter(|_| cost > 0);
            AskedCost { cost, at_least: least.map(|share| 1 + u64::from(share) % cost) }
        };
        let holds = costed.hold.filter(|_| matches!(kind, StepKind::Hold | StepKind::Settle));
        let hold_for = holds.map(|bounds| Micros(1 + u64::from(self.hold_for) % bounds.max.0));
        Ask {
            costs: self.least.iter().enumerate().map(asked).collect(),
            cost: units(2, LimitCost::Request),
            peek: kind == StepKind::Peek,
            has_id: !self.id().is_empty() && kind != StepKind::Peek,
            hold_for,
        }
    }
}

impl Units {
    /// The units of a cost; below 2^52, as the service has it.
    fn resolve(self, costed: &CostedLimits, cost: LimitCost, last: Option<&BudgetVerdict>) -> Option<u64> {
        let index = costed.limits.iter().position(|limit| limit.cost == cost).unwrap_or(0);
        let off = |units: u64, off: i8| units.saturating_add_signed(off.into()).min(CEILING - 1);
        match self {
            Self::None => None,
            Self::Exactly(units) => Some(units),
            Self::Remaining(by) => Some(off(last.map_or(1, |last| last.limits[index].remaining), by)),
            Self::Limit(by) => Some(off(costed.limits[index].algorithm.limit(), by)),
        }
    }
}

pub fn story() -> impl Strategy<Value = Story> {
    (limits(), prop::collection::vec(step(), 1..40)).prop_map(|(limits, steps)| Story { limits, steps })
}

/// The same without holds, and mostly without ids: the short path decides what it can.
pub fn plain_story() -> impl Strategy<Value = Story> {
    story().prop_map(|Story { limits, mut steps }| {
        for step in steps.iter_mut().filter(|step| step.kind == StepKind::Hold) {
            (step.kind, step.id) = (StepKind::Charge, 0);
        }
        Story { limits: limits.without_holds(), steps }
    })
}

fn step() -> BoxedStrategy<StoryStep> {
    let clock = prop_oneof![
        16 => Just(ClockStep::None),
        3 => (1..50_u64).prop_map(ClockStep::Back),
        1 => prop::sample::select(vec![7_200_000_000, 7_200_000_001, 7_199_999_990]).prop_map(ClockStep::Back),
        1 => any::<u32>().prop_map(|by| ClockStep::Back(by.into())),
        1 => (0..=CEILING).prop_map(ClockStep::To),
    ];
    let pause = prop_oneof![
        4 => Just(Pause::Exactly(0)),
        6 => (0..=20_u64).prop_map(Pause::Exactly),
        1 => (0..=10_000_000_000_u64).prop_map(Pause::Exactly),
        3 => (-1..=1_i8).prop_map(Pause::Retry),
        1 => (-1..=1_i8).prop_map(Pause::Reset),
        2 => any::<u16>().prop_map(Pause::Share),
    ];
    let kind = prop_oneof![
        8 => Just(StepKind::Hold),
        6 => Just(StepKind::Settle),
        4 => Just(StepKind::Charge),
        2 => Just(StepKind::Peek),
        2 => Just(StepKind::Debit),
        2 => Just(StepKind::Refund),
        1 => Just(StepKind::Reset),
    ];
    let units = || {
        prop_oneof![
            1 => Just(Units::None),
            10 => (0..=2_u64).prop_map(Units::Exactly),
            2 => (0..=6_u64).prop_map(Units::Exactly),
            1 => (0..CEILING).prop_map(Units::Exactly),
            3 => (-1..=1_i8).prop_map(Units::Remaining),
            2 => (-1..=1_i8).prop_map(Units::Limit),
        ]
    };
    let least = || prop_oneof![3 => Just(None), 1 => any::<u16>().prop_map(Some)];
    let numbers = ([units(), units(), units()], [least(), least()], any::<u16>(), any::<u8>());
    (pause, clock, prop::bool::weighted(0.15), kind, 0..IDS.len(), numbers)
        .prop_map(|(pause, clock, changed, kind, id, (units, least, hold_for, limits))| StoryStep {
            pause,
            clock,
            changed,
            kind,
            id,
            units,
            least,
            hold_for,
            limits,
        })
        .boxed()
}
