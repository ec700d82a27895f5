//! Questions about totals: validation, and the sums that answer them.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_node::limiter::{InvalidField, shown};
use weir_node::telemetry::CountedOutcome;
use weir_units::Micros;

use super::resolutions::{Resolution, UsageTotal};
use super::series::SeriesName;

/// The most points of a series.
pub(crate) const MAX_POINTS: u64 = 10_000;

/// The most points of all series of an answer together.
pub(crate) const MAX_POINTS_OF_ALL: usize = 200_000;

/// Default span of time, in seconds.
const DEFAULT_SPAN: u64 = 3_600;

/// Question about totals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsageAsk {
    /// The strategy; `None` is any.
    pub(crate) strategy: Option<String>,
    /// The resource pattern; `None` is any.
    pub(crate) pattern: Option<String>,
    /// The outcome; `None` is any.
    pub(crate) outcome: Option<String>,
    /// Start of the span, since the epoch; `None` is an hour before the end.
    pub(crate) from: Option<Micros>,
    /// End of the span, since the epoch; `None` is now.
    pub(crate) to: Option<Micros>,
    /// Length of a point; `None` is the whole span.
    pub(crate) step: Option<Micros>,
}

/// Sums by series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageAnswer {
    /// Sorted by name.
    pub(crate) rows: Vec<UsageRow>,
    /// The first second.
    pub(crate) from: u64,
    /// The second after the last one.
    pub(crate) to: u64,
    /// Seconds of a point.
    pub(crate) step: u64,
    /// Resolution of the values.
    pub(crate) resolution: Resolution,
    /// Nodes that contributed.
    pub(crate) nodes: Vec<String>,
    /// Reason why other nodes' decisions are missing.
    pub(crate) incomplete: Option<String>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageRow {
    /// The strategy.
    pub(crate) strategy: Arc<str>,
    /// The resource pattern.
    pub(crate) pattern: Arc<str>,
    /// The outcome.
    pub(crate) outcome: Arc<str>,
    /// Sum of the whole span.
    pub(crate) total: UsageTotal,
    /// Start and sum of each point.
    pub(crate) points: Vec<(u64, UsageTotal)>,
    /// Usage of costs by name, in the order of the names.
    pub(crate) costs: Vec<UsageCost>,
}

/// Usage of one cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageCost {
    /// The name of the cost.
    pub(crate) name: Arc<str>,
    /// The unit; empty if the configuration of this node gives it none.
    pub(crate) unit: Arc<str>,
    /// Sum of the whole span.
    pub(crate) total: u64,
    /// Start and sum of each point.
    pub(crate) points: Vec<(u64, u64)>,
}

/// A validated question.
pub(super) struct UsagePlan {
    ask: UsageAsk,
    pub(super) from: u64,
    pub(super) to: u64,
    step: u64,
    pub(super) resolution: Resolution,
}

/// Sums so far.
pub(super) struct UsageSums {
    pub(super) plan: UsagePlan,
    sums: BTreeMap<SeriesName, BTreeMap<u64, UsageTotal>>,
    points: usize,
}

impl UsagePlan {
    /// Validates a question. `resolution` returns the resolution that covers the time since a second.
    pub(super) fn new(
        ask: UsageAsk,
        now: Micros,
        resolution: impl Fn(u64) -> Resolution,
    ) -> Result<Self, InvalidField> {
        if let Some(outcome) = ask.outcome.as_deref()
            && !CountedOutcome::ALL.iter().any(|one| one.name() == outcome)
        {
            let known: Vec<&str> = CountedOutcome::ALL.iter().map(|one| one.name()).collect();
            return Err(invalid(
                "outcome",
                format!("\"{}\"", shown(outcome)),
                format!("it must be one of {}", known.join(", ")),
            ));
        }
        let to = ask.to.unwrap_or(Micros(now.0 + 1));
        let from = ask.from.unwrap_or(Micros(to.0.saturating_sub(Micros::from_secs(DEFAULT_SPAN).0)));
        if from >= to {
            return Err(invalid(
                "from",
                seconds(from),
                format!("it must be before `to`, which is {}", seconds(to)),
            ));
        }
        let resolution = resolution(from.0 / 1_000_000);
        let width = resolution.seconds();
        let first = from.0 / 1_000_000 / width * width;
        let end = to.0.div_ceil(1_000_000).div_ceil(width) * width;
        let step = match ask.step {
            None => end - first,
            Some(step) => checked_step(step, resolution)?,
        };
        let points = (end - first).div_ceil(step);
        if points > MAX_POINTS {
            let bound = format!("{points} points from `from` to `to`: at most {MAX_POINTS}");
            return Err(invalid("step", format!("{step}s"), bound));
        }
        Ok(Self { ask, from: first, to: end, step, resolution })
    }

    fn wants(&self, name: &SeriesName) -> bool {
        let is =
            |wanted: &Option<String>, given: &str| wanted.as_deref().is_none_or(|wanted| wanted == given);
        is(&self.ask.strategy, &name.strategy)
            && is(&self.ask.pattern, &name.pattern)
            && is(&self.ask.outcome, &name.outcome)
    }
}

/// Whole seconds, and whole slots of the resolution.
fn checked_step(step: Micros, resolution: Resolution) -> Result<u64, InvalidField> {
    let width = resolution.seconds();
    let whole = step.0 / 1_000_000;
    if whole == 0 || !step.0.is_multiple_of(1_000_000) || !whole.is_multiple_of(width) {
        let bound = format!(
            "it must be a multiple of {width}s, because the time since `from` is kept {}",
            resolution.kept()
        );
        return Err(invalid("step", format!("{}us", step.0), bound));
    }
    Ok(whole)
}

impl UsageSums {
    pub(super) fn new(plan: UsagePlan) -> Self {
        Self { plan, sums: BTreeMap::new(), points: 0 }
    }

    /// Adds the counts of the slot that begins at `second`.
    pub(super) fn add(&mut self, name: &SeriesName, second: u64, calls: u64, cost: u64) {
        let UsagePlan { from, to, step, .. } = self.plan;
        if !(from..to).contains(&second) || !self.plan.wants(name) {
            return;
        }
        let point = (second - from) / step;
        if !self.sums.contains_key(name) {
            self.sums.insert(name.clone(), BTreeMap::new());
        }
        let Some(points) = self.sums.get_mut(name) else { return };
        let before = points.len();
        let total = points.entry(point).or_default();
        total.calls = total.calls.saturating_add(calls);
        total.cost = total.cost.wrapping_add(cost);
        self.points += points.len() - before;
    }

    /// True if there are too many points.
    pub(super) fn is_too_large(&self) -> bool {
        self.points > MAX_POINTS_OF_ALL
    }

    pub(super) fn into_answer(
        self,
        nodes: Vec<String>,
        incomplete: Option<String>,
    ) -> Result<UsageAnswer, InvalidField> {
        let UsagePlan { from, to, step, resolution, .. } = self.plan;
        if self.points > MAX_POINTS_OF_ALL {
            let bound = format!(
                "more than {MAX_POINTS_OF_ALL} points in all series together; take a longer one, or name a strategy, a \
                 pattern or an outcome"
            );
            return Err(invalid("step", format!("{step}s"), bound));
        }
        let mut rows: Vec<UsageRow> = Vec::new();
        // The costs of a series come after its calls, which may be missing.
        for (name, points) in self.sums {
            let mut total = UsageTotal::default();
            for one in points.values() {
                total.calls = total.calls.saturating_add(one.calls);
                total.cost = total.cost.wrapping_add(one.cost);
            }
            let points: Vec<_> =
                points.into_iter().map(|(point, total)| (from + point * step, total)).collect();
            let SeriesName { strategy, pattern, outcome, cost } = name;
            let empty = UsageRow {
                strategy,
                pattern,
                outcome,
                total: UsageTotal::default(),
                points: Vec::new(),
                costs: Vec::new(),
            };
            if cost.is_empty() {
                rows.push(UsageRow { total, points, ..empty });
                continue;
            }
            let is_same = rows.last().is_some_and(|row| {
                (&row.strategy, &row.pattern, &row.outcome)
                    == (&empty.strategy, &empty.pattern, &empty.outcome)
            });
            if !is_same {
                rows.push(empty);
            }
            if let Some(row) = rows.last_mut() {
                let points = points.into_iter().map(|(at, total)| (at, total.cost)).collect();
                row.costs.push(UsageCost { name: cost, unit: Arc::default(), total: total.cost, points });
            }
        }
        Ok(UsageAnswer { rows, from, to, step, resolution, nodes, incomplete })
    }
}

fn invalid(field: &'static str, value: String, bound: String) -> InvalidField {
    InvalidField { field, value, bound }
}

fn seconds(at: Micros) -> String {
    format!("{}.{:06} s after 1970", at.0 / 1_000_000, at.0 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = Micros::from_secs(1_704_067_205);

    fn plan(ask: UsageAsk) -> Result<UsagePlan, String> {
        let resolution = |from| match NOW.0 / 1_000_000 - from {
            ..=3_600 => Resolution::Second,
            3_601..=86_400 => Resolution::Minute,
            _ => Resolution::Hour,
        };
        UsagePlan::new(ask, NOW, resolution).map_err(|error| error.to_string())
    }

    fn back(seconds: u64, step: Option<u64>) -> UsageAsk {
        let from = Some(Micros(NOW.0 - seconds * 1_000_000));
        UsageAsk { from, step: step.map(Micros::from_secs), ..UsageAsk::default() }
    }

    #[test]
    fn the_time_is_rounded_to_the_resolution() {
        let default = plan(UsageAsk::default()).ok().unwrap();
        assert_eq!((default.from, default.to), (1_704_063_605, 1_704_067_206));
        assert_eq!(default.step, 3_601);
        let hours = plan(back(100_000, Some(7_200))).ok().unwrap();
        assert_eq!((hours.from % 3_600, hours.to % 3_600, hours.step), (0, 0, 7_200));
    }

    #[test]
    fn what_cannot_be_answered_names_the_field_and_the_bound() {
        let error = |ask| plan(ask).err().unwrap();
        assert_eq!(
            error(back(7_200, Some(1))),
            "step is 1000000us: it must be a multiple of 60s, because the time since `from` is kept by minute for a day"
        );
        let empty = UsageAsk { to: Some(NOW), from: Some(NOW), ..UsageAsk::default() };
        assert!(error(empty).starts_with("from is 1704067205.000000 s after 1970: it must be before `to`"));
        let future = UsageAsk { to: Some(Micros(NOW.0 + 20_000_000_000)), ..back(10, Some(1)) };
        assert_eq!(error(future), "step is 1s: 20010 points from `from` to `to`: at most 10000");
        let outcome = UsageAsk { outcome: Some("ok".to_owned()), ..UsageAsk::default() };
        assert_eq!(
            error(outcome),
            "outcome is \"ok\": it must be one of allowed, denied, never, deny_list, allow_list, degraded_allowed, \
             degraded_denied, error, peeked, repeated, banned"
        );
        let step = UsageAsk { step: Some(Micros(1_500_000)), ..back(10, None) };
        assert!(error(step).starts_with("step is 1500000us: it must be a multiple of 1s"));
    }

    #[test]
    fn costs_by_name_are_in_the_series_of_their_calls() {
        let mut sums = UsageSums::new(plan(back(60, Some(30))).ok().unwrap());
        let from = sums.plan.from;
        let name = |strategy: &str, cost: &str| SeriesName {
            strategy: strategy.into(),
            pattern: "p".into(),
            outcome: "allowed".into(),
            cost: cost.into(),
        };
        sums.add(&name("s", ""), from, 2, 0);
        for (second, units) in [(0, 3), (1, 4), (31, 5)] {
            sums.add(&name("s", "output"), from + second, 0, units);
        }
        sums.add(&name("settled", "usd"), from + 31, 0, 9);
        let answer = sums.into_answer(vec![], None).unwrap();
        let [one, other] = &answer.rows[..] else { panic!("{answer:?}") };
        assert_eq!((one.total.calls, one.total.cost, one.points.len()), (2, 0, 1));
        assert_eq!((&*one.costs[0].name, one.costs[0].total), ("output", 12));
        assert_eq!(one.costs[0].points, [(from, 7), (from + 30, 5)]);
        assert_eq!((&*other.strategy, other.total.calls, other.costs[0].total), ("settled", 0, 9));
    }

    #[test]
    fn an_answer_with_too_many_points_is_refused() {
        let mut sums = UsageSums::new(plan(back(3_600, Some(1))).ok().unwrap());
        let from = sums.plan.from;
        for series in 0..100 {
            let pattern = format!("p{series}").into();
            let outcome = "allowed".into();
            let name = SeriesName { strategy: "s".into(), pattern, outcome, cost: Arc::default() };
            (0..2_500).for_each(|second| sums.add(&name, from + second, 1, 1));
        }
        assert!(sums.is_too_large());
        let error = sums.into_answer(vec![], None).unwrap_err();
        assert!(error.to_string().starts_with("step is 1s: more than 200000 points"), "{error}");
    }
}
