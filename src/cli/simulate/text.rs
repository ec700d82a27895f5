//! The result of a simulation for a terminal: a table, and a plot of the admitted cost.

use std::fmt::Write as _;

use weir_units::Micros;

use super::{Simulated, SimulatedRow};
use crate::simulation::{CostSum, SimulatedStrategy};

/// The ratio of offered to admitted cost from which both have a scale of their own: bars have eight heights.
const OWN_SCALES: u64 = 4;

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn text(simulated: &Simulated) -> String {
    let mut rows = vec![header(simulated)];
    rows.extend(simulated.strategies.iter().map(|row| cells(simulated, row)));
    let mut out = aligned(&rows);
    costs(simulated, &mut out);
    let width = simulated.strategies.iter().map(|row| row.result.strategy.len()).max().unwrap_or(0).max(7);
    let (highest, offered) = scales(simulated);
    let scale = match simulated.closed || offered == highest {
        true => format!("█ is {highest}"),
        false => format!("█ is {highest}, of offered {offered}"),
    };
    let column = span(simulated.column);
    let _ = writeln!(out, "\nadmitted over time: {}; a column is {column}, {scale}", simulated.title());
    if !simulated.closed {
        let _ = writeln!(out, "{:width$} |{}|", "offered", bars(simulated.offered(), offered));
    }
    for row in &simulated.strategies {
        let _ = writeln!(out, "{:width$} |{}|", row.result.strategy, bars(&row.admitted, highest));
    }
    out
}

/// The units of each named cost that were asked and granted, if a strategy has some.
fn costs(simulated: &Simulated, out: &mut String) {
    let row = |result: &SimulatedStrategy, sum: &CostSum| {
        vec![result.strategy.clone(), sum.name.clone(), sum.asked.to_string(), sum.granted.to_string()]
    };
    let mut rows = vec![["strategy", "cost", "asked", "granted"].map(str::to_owned).to_vec()];
    let results = simulated.strategies.iter().map(|row| &row.result);
    rows.extend(results.flat_map(|result| result.costs.iter().map(move |sum| row(result, sum))));
    if rows.len() > 1 {
        let _ = write!(out, "\n{}", aligned(&rows));
    }
}

/// The values of a full bar: admitted, and offered. They differ if most was denied.
fn scales(simulated: &Simulated) -> (u64, u64) {
    let admitted = simulated.highest().max(1);
    match simulated.offered().iter().copied().max() {
        None => (admitted, admitted),
        Some(offered) if offered / admitted >= OWN_SCALES => (admitted, offered),
        Some(offered) => (offered, offered),
    }
}

const HEADER: [&str; 7] =
    ["strategy", "offered", "allowed", "denied", "most in any", "mean wait", "longest wait"];

/// Columns that are shown only if a strategy paces its calls.
const HOLDS: [&str; 2] = ["mean hold", "longest hold"];

/// The column of a closed loop: the time until enough calls have passed.
const TOOK: [&str; 1] = ["took"];

/// The limits that denied, if any did.
const DENIED_BY: [&str; 1] = ["denied by"];

/// Returns the names of the columns.
pub(super) fn header(simulated: &Simulated) -> Vec<String> {
    let holds = HOLDS.iter().filter(|_| has_holds(simulated));
    let took = TOOK.iter().filter(|_| simulated.closed);
    let denied_by = DENIED_BY.iter().filter(|_| has_denials(simulated));
    HEADER.iter().chain(holds).chain(took).chain(denied_by).map(|name| (*name).to_owned()).collect()
}

fn has_denials(simulated: &Simulated) -> bool {
    simulated.strategies.iter().any(|row| !row.result.denied_by.is_empty())
}

fn has_holds(simulated: &Simulated) -> bool {
    simulated.strategies.iter().any(|row| row.result.longest_hold > Micros::ZERO)
}

/// Formats the cells of one strategy, in the order of [`header`].
pub(super) fn cells(simulated: &Simulated, row: &SimulatedRow) -> Vec<String> {
    let result = &row.result;
    let mut cells = vec![
        result.strategy.clone(),
        row.calls.calls.len().to_string(),
        result.allowed.to_string(),
        result.denied.to_string(),
        format!("{}: {}", span(row.window), row.most),
        span(result.mean_wait()),
        span(result.longest_wait),
    ];
    if has_holds(simulated) {
        cells.extend([span(result.mean_hold()), span(result.longest_hold)]);
    }
    if simulated.closed {
        cells.push(row.calls.calls.last().map_or_else(String::new, |last| span(last.at)));
    }
    if has_denials(simulated) {
        let denied_by = row.denied_by();
        cells.push(if denied_by.is_empty() { "-".to_owned() } else { denied_by });
    }
    cells
}

pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ = match column {
                0 => write!(out, "{cell:width$}"),
                _ => write!(out, "  {cell:>width$}"),
            };
        }
        out.push('\n');
    }
    out
}

/// Draws one character per column. Positive values are never drawn as empty.
fn bars(columns: &[u64], highest: u64) -> String {
    let height = |sum: u64| {
        let eighths = (u128::from(sum) * 8).div_ceil(u128::from(highest.max(1)));
        usize::try_from(eighths).unwrap_or(8).min(8)
    };
    columns.iter().map(|&sum| BARS.get(height(sum)).copied().unwrap_or(' ')).collect()
}

/// Formats a duration with at most two units.
pub(super) fn span(Micros(us): Micros) -> String {
    match us {
        0 => "0s".to_owned(),
        1..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{}ms", decimals(us, 1_000)),
        1_000_000..60_000_000 => format!("{}s", decimals(us, 1_000_000)),
        60_000_000..3_600_000_000 => two(us, (60_000_000, "m"), (1_000_000, "s")),
        3_600_000_000..86_400_000_000 => two(us, (3_600_000_000, "h"), (60_000_000, "m")),
        _ => two(us, (86_400_000_000, "d"), (3_600_000_000, "h")),
    }
}

/// Formats a number with at most two decimals, without trailing zeros.
fn decimals(us: u64, unit: u64) -> String {
    let hundredths = us * 100 / unit;
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn two(us: u64, (large, large_name): (u64, &str), (small, small_name): (u64, &str)) -> String {
    match us % large / small {
        0 => format!("{}{large_name}", us / large),
        rest => format!("{}{large_name}{rest}{small_name}", us / large),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let shown = [0, 999, 1_500, 12_345_678, 60_000_000, 90_000_000, 5_400_000_000, 90_000_000_000];
        let expected = ["0s", "999us", "1.5ms", "12.34s", "1m", "1m30s", "1h30m", "1d1h"];
        assert_eq!(shown.map(|us| span(Micros(us))), expected);
    }

    #[test]
    fn bars_stand_for_their_share() {
        assert_eq!(bars(&[0, 1, 50, 100], 100), " ▁▄█");
    }
}
