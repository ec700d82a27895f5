//! Random limits with costs, under two configurations.

use std::sync::Arc;

use proptest::prelude::*;
use weir_core::algorithm::budget::{BudgetLimit, CostedLimits, HoldBounds, LimitCost};
use weir_core::algorithm::{Algorithm, Calendar};
use weir_core::strategy::{Field, Strategy as Rules};
use weir_testing::rules::numbered;
use weir_units::{CEILING, Micros};

use crate::properties::random;

/// The names of costs.
pub const NAMES: [&str; 2] = ["input", "output"];

/// Limits under two configurations.
#[derive(Debug, Clone)]
pub struct StoryLimits {
    limits: Vec<StoryLimit>,
    /// `max` under both configurations, and `known_for`.
    hold: Option<([u64; 2], u64)>,
}

/// A limit under two configurations.
#[derive(Debug, Clone)]
struct StoryLimit {
    algorithms: (Algorithm, Algorithm),
    cost: LimitCost,
    at_once: bool,
    near: [Option<u8>; 2],
}

impl StoryLimits {
    /// A configuration, as both sides have it.
    pub fn configuration(&self, changed: bool) -> (Arc<Rules>, Arc<CostedLimits>) {
        let index = usize::from(changed);
        let algorithm = |limit: &StoryLimit| if changed { limit.algorithms.1 } else { limit.algorithms.0 };
        let limits: Vec<Algorithm> = self.limits.iter().map(algorithm).collect();
        let strategy = numbered("budgets", &[Field::Resource, Field::Consumer], &limits);
        let costs = self.limits.iter().map(|limit| BudgetLimit {
            algorithm: algorithm(limit),
            cost: limit.cost,
            at_once: limit.at_once,
            near_percent: limit.near[index],
        });
        let bounds = |(max, known_for): ([u64; 2], u64)| HoldBounds {
            max: Micros(max[index]),
            known_for: Micros(known_for),
        };
        let costed = CostedLimits {
            limits: costs.collect(),
            names: NAMES.map(Into::into).into(),
            hold: self.hold.map(bounds),
        };
        (strategy, Arc::new(costed))
    }
}

impl StoryLimits {
    /// The same without holds.
    pub fn without_holds(self) -> Self {
        Self { hold: None, ..self }
    }
}

/// Limits, of which those without a fixed cost can be held.
pub fn limits() -> impl Strategy<Value = StoryLimits> {
    let max = || prop_oneof![3 => 1..=64_u64, 2 => 65..=5_000_u64, 1 => Just(3_600_000_000)];
    let known_for = prop_oneof![2 => 1..=100_u64, 1 => Just(60_000_000)];
    let hold = prop_oneof![1 => Just(None), 7 => ([max(), max()], known_for).prop_map(Some)];
    let is_enforced = |limit: &StoryLimit| !limit.algorithms.0.is_shadow();
    let limits = prop::collection::vec(limit(), 1..=5)
        .prop_filter("a strategy enforces something", move |limits| limits.iter().any(is_enforced));
    (limits, hold).prop_map(|(limits, hold)| StoryLimits { limits, hold })
}

fn limit() -> BoxedStrategy<StoryLimit> {
    let held = || {
        prop_oneof![
            3 => (random::bucket(), random::bucket()),
            3 => (window(), window()),
            2 => (random::interval(), random::interval()),
            2 => (log(), log()),
            2 => (random::sliding(), random::sliding()),
            2 => (random::slots(), random::slots()),
            1 => (random::sparse(), random::sparse()),
        ]
        .boxed()
    };
    let any = prop_oneof![
        (random::any_bucket(), random::any_bucket()),
        (random::warm_up(), random::warm_up()),
        (random::held_log(), random::held_log()),
        (random::strict_log(), random::strict_log()),
        (random::window(), random::window()),
    ]
    .boxed();
    let named = prop_oneof![
        3 => Just(LimitCost::Named(0)),
        2 => Just(LimitCost::Named(1)),
        1 => Just(LimitCost::Request),
    ];
    let fixed = || (0..=3_u64).prop_map(LimitCost::Fixed);
    let near = || prop_oneof![2 => Just(None), 1 => (1..=100_u8).prop_map(Some)];
    let debt = prop_oneof![1 => Just(None), 3 => (0..=9_u64).prop_map(Some)];
    let numbers = prop_oneof![6 => (held(), named), 1 => (held(), fixed()), 1 => (any, fixed())];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.15));
    (numbers, flags, debt, [near(), near()])
        .prop_map(|((algorithms, cost), (at_once, shadow), debt, near)| {
            let made = |algorithm: Algorithm| {
                let algorithm = algorithm.with_max_debt(debt);
                if shadow { algorithm.in_shadow() } else { algorithm }
            };
            let algorithms = (made(algorithms.0), made(algorithms.1));
            StoryLimit { algorithms, cost, at_once, near }
        })
        .boxed()
}

/// Windows that can be held: none counts denied attempts.
fn window() -> BoxedStrategy<Algorithm> {
    let amount = || prop_oneof![6 => 0..=9_u64, 2 => 0..=1000_u64, 1 => 0..CEILING];
    let span = || prop_oneof![4 => 1..=100_u64, 1 => 1..=50_000_u64].prop_map(Micros);
    let fixed = (amount(), span(), any::<bool>())
        .prop_map(|(limit, span, anchored)| Algorithm::fixed_window(limit, span, anchored, false).unwrap());
    let spread =
        (amount(), span()).prop_map(|(limit, span)| Algorithm::spread_window(limit, span, false).unwrap());
    let month =
        amount().prop_map(|limit| Algorithm::calendar_window(limit, Calendar::Month, 60, false).unwrap());
    prop_oneof![5 => fixed, 2 => spread, 1 => month].boxed()
}

fn log() -> BoxedStrategy<Algorithm> {
    (0..=9_u64, 1..=200_u64)
        .prop_map(|(limit, span)| Algorithm::sliding_log(limit, Micros(span)).unwrap())
        .boxed()
}
