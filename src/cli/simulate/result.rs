//! The result of a simulation or of a run against a server: a row for each strategy, with its columns of a plot.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, bail};
use weir_units::Micros;

use super::drawn_limit::DrawnLimit;
use crate::simulation::{SimulatedCalls, SimulatedStrategy};

/// Columns of a plot.
pub(super) const COLUMNS: usize = 60;

/// Maximum number of columns where `--column` says how long they are.
const MAX_COLUMNS: usize = 1_000;

/// The result of a simulation.
pub(crate) struct Simulated {
    /// The name of the configuration, if it is known.
    pub(super) config: Option<String>,
    pub(super) pattern: String,
    pub(super) seed: u64,
    /// The duration of a column of the plots.
    pub(super) column: Micros,
    /// True if the calls depend on the answers, so that each strategy has its own.
    pub(super) closed: bool,
    pub(super) strategies: Vec<SimulatedRow>,
}

/// The result of one strategy.
pub(super) struct SimulatedRow {
    pub(super) result: SimulatedStrategy,
    pub(super) calls: Arc<SimulatedCalls>,
    /// The offered cost in each column.
    pub(super) offered: Vec<u64>,
    pub(super) window: Micros,
    /// Maximum cost that was admitted in any `window`.
    pub(super) most: u64,
    /// The admitted cost in each column.
    pub(super) admitted: Vec<u64>,
    /// The limit that the picture has as a line.
    pub(super) limit: Option<DrawnLimit>,
}

/// Runs against a server. It does not say how its strategies are configured.
pub(crate) struct LiveRuns {
    pub(crate) pattern: String,
    /// The duration of a column, if it is given.
    pub(crate) column: Option<Micros>,
    /// The window of "most in any".
    pub(crate) window: Micros,
    pub(crate) runs: Vec<(SimulatedStrategy, SimulatedCalls)>,
}

/// The parameters of the columns.
pub(super) struct ResultShape {
    /// The name of the configuration, if it is known.
    pub(super) config: Option<String>,
    pub(super) pattern: String,
    pub(super) seed: u64,
    /// True if each strategy has its own calls.
    pub(super) closed: bool,
    /// The end; `None`: that of the last call.
    pub(super) end: Option<Micros>,
    /// The duration of a column, if it is given.
    pub(super) column: Option<Micros>,
}

impl ResultShape {
    /// Returns the result of these runs. `drawn` returns the window of "most in any" of a strategy, and the limit that is drawn.
    pub(super) fn with_runs(
        self,
        runs: Vec<(SimulatedStrategy, SimulatedCalls)>,
        drawn: impl Fn(&SimulatedStrategy, &SimulatedCalls) -> (Micros, Option<DrawnLimit>),
    ) -> Result<Simulated> {
        let last = runs.iter().filter_map(|(_, calls)| calls.calls.last()).map(|call| call.at.0 + 1).max();
        let end = self.end.unwrap_or(Micros(last.unwrap_or(1)));
        let column = self.column.unwrap_or(Micros(end.0.div_ceil(COLUMNS as u64).max(1)));
        let columns = usize::try_from(end.0.div_ceil(column.0)).unwrap_or(usize::MAX);
        if columns > MAX_COLUMNS {
            bail!("--column makes {columns} columns of {end}: at most {MAX_COLUMNS}");
        }
        let columns = if self.column.is_some() { columns } else { COLUMNS };
        let row = |(result, calls): (SimulatedStrategy, SimulatedCalls)| {
            let (window, limit) = drawn(&result, &calls);
            let most = result.most_in(window, &calls);
            let admitted = calls.calls.iter().zip(&result.admitted).filter(|(_, admitted)| **admitted);
            let admitted = in_columns(admitted.map(|(call, _)| (call.at, call.cost)), column, columns);
            let offered = in_columns(calls.calls.iter().map(|call| (call.at, call.cost)), column, columns);
            SimulatedRow { result, calls: Arc::new(calls), offered, window, most, admitted, limit }
        };
        let strategies = runs.into_iter().map(row).collect();
        let Self { config, pattern, seed, closed, .. } = self;
        Ok(Simulated { config, pattern, seed, column, closed, strategies })
    }
}

impl SimulatedRow {
    /// The cost that was denied in each column.
    pub(super) fn denied(&self) -> impl Iterator<Item = u64> {
        self.offered.iter().zip(&self.admitted).map(|(offered, admitted)| offered.saturating_sub(*admitted))
    }

    /// The limits that denied, those that denied most first, as in `all 340, each 12`.
    pub(super) fn denied_by(&self) -> String {
        let mut limits: Vec<_> = self.result.denied_by.iter().collect();
        limits.sort_by_key(|(name, calls)| (std::cmp::Reverse(*calls), name));
        limits.iter().map(|(name, calls)| format!("{name} {calls}")).collect::<Vec<_>>().join(", ")
    }
}

impl Simulated {
    /// The result of runs against a server.
    pub(crate) fn live(live: LiveRuns) -> Result<Self> {
        let LiveRuns { pattern, column, window, runs } = live;
        ResultShape { config: None, pattern, seed: 0, closed: true, end: None, column }
            .with_runs(runs, |_, _| (window, None))
    }

    /// The calls of all strategies, if they are the same.
    pub(super) fn offered(&self) -> &[u64] {
        match self.strategies.first() {
            Some(row) if !self.closed => &row.offered,
            _ => &[],
        }
    }

    /// The highest cost that was admitted in a column.
    pub(super) fn highest(&self) -> u64 {
        self.strategies.iter().flat_map(|row| &row.admitted).copied().max().unwrap_or(0)
    }

    /// The number of consumers that call.
    pub(super) fn consumers(&self) -> usize {
        let of = |row: &SimulatedRow| {
            let names = row.calls.subjects.iter().map(|(_, consumer)| consumer.as_str());
            names.collect::<HashSet<_>>().len()
        };
        self.strategies.iter().map(of).max().unwrap_or(0)
    }

    /// Configuration, pattern and consumers, for titles.
    pub(super) fn title(&self) -> String {
        let (config, consumers) = (self.config.iter(), self.consumers());
        let consumers = format!("{consumers} consumer{}", if consumers == 1 { "" } else { "s" });
        config.chain([&self.pattern, &consumers]).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

fn in_columns(costs: impl Iterator<Item = (Micros, u64)>, column: Micros, most: usize) -> Vec<u64> {
    let mut columns = vec![0_u64; most];
    for (at, cost) in costs {
        let place = usize::try_from(at.0 / column.0).unwrap_or(most).min(most.saturating_sub(1));
        if let Some(sum) = columns.get_mut(place) {
            *sum = sum.saturating_add(cost);
        }
    }
    columns
}
