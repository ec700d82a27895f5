//! The rows of the picture, which share their scales.

use std::fmt::Write as _;

use weir_units::Micros;

use super::super::text::span;
use super::super::{Simulated, SimulatedRow};
use super::{LEFT, escaped, shortened};

/// Width of all bars at most, if each of them has a pixel.
const PLOT: usize = 720;
/// Height of a row's two lines of text.
const TITLE: usize = 42;
/// Height of the admitted cost.
const BARS: usize = 80;
/// Height of the denied cost.
const DENIED: usize = 36;
/// Height of the labels of time, and the distance to the next row.
const FOOT: usize = 34;
/// Labels of the axis of time.
const TICKS: usize = 6;
/// A line that is so many times as high as the highest bar is left out, because nothing else would be seen.
const HIGHEST_LINE: f64 = 4.0;

/// The axes that all rows have in common.
pub(super) struct Axes {
    /// The admitted cost at the top.
    top: u64,
    /// The denied cost at the bottom; 0 if nothing was denied.
    bottom: u64,
    column: Micros,
    /// Width of a bar with its gap, in whole pixels.
    bar: usize,
    /// Width of all bars.
    pub(super) plot: usize,
    /// Height of a row.
    pub(super) row: usize,
}

impl Axes {
    pub(super) fn new(simulated: &Simulated) -> Self {
        let column = simulated.column;
        let admitted = simulated.highest().max(1);
        let lines = simulated.strategies.iter().filter_map(|row| line(row, column));
        let line = lines.filter(|line| *line <= admitted as f64 * HIGHEST_LINE).fold(0.0, f64::max);
        let denied = simulated.strategies.iter().flat_map(SimulatedRow::denied).max().unwrap_or(0);
        let columns = simulated.strategies.iter().map(|row| row.admitted.len()).max().unwrap_or(0).max(1);
        let bar = (PLOT / columns).max(1);
        Self {
            top: round_up(admitted.max(line.ceil() as u64)),
            bottom: if denied == 0 { 0 } else { round_up(denied) },
            column,
            bar,
            plot: bar * columns,
            row: TITLE + BARS + if denied == 0 { 0 } else { DENIED } + FOOT,
        }
    }

    /// Draws the row of one strategy.
    pub(super) fn draw(&self, out: &mut String, top: usize, row: &SimulatedRow) {
        let (ceiling, floor) = (top + TITLE, top + TITLE + BARS);
        let texts = [("", 14, title(row)), (" class=\"d\"", 30, self.about_limits(row))];
        for (class, y, text) in texts {
            let text = escaped(&shortened(&text));
            let _ = writeln!(out, "<text{class} x=\"8\" y=\"{}\">{text}</text>", top + y);
        }
        let mut edges = vec![(ceiling, self.top), (floor, 0)];
        if self.bottom > 0 {
            edges.push((floor + DENIED, self.bottom));
        }
        for (y, label) in edges {
            let _ = writeln!(
                out,
                "<line class=\"x\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>\
                 <text class=\"d\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
                LEFT + self.plot,
                LEFT - 6,
                y + 4,
            );
        }
        // The unit of the axis, between its two numbers.
        for (line, unit) in ["cost in".to_owned(), span(self.column)].into_iter().enumerate() {
            let y = ceiling + BARS / 2 + 12 * line;
            let _ = writeln!(
                out,
                "<text class=\"d\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{unit}</text>",
                LEFT - 6
            );
        }
        self.bars(out, floor, row);
        self.line(out, floor, row);
        let under = if self.bottom > 0 { DENIED } else { 0 };
        self.times(out, floor + under + 14, row.admitted.len());
    }

    /// The limits that denied, and the one that is drawn.
    fn about_limits(&self, row: &SimulatedRow) -> String {
        let denied_by = row.denied_by();
        let denied_by = (!denied_by.is_empty()).then(|| format!("denied by {denied_by}"));
        let drawn = row.limit.as_ref().map(|limit| {
            let counters = match limit.counters {
                1 => String::new(),
                many => format!(", {many} counters"),
            };
            let per = (limit.per(self.column) * 100.0).round() / 100.0;
            let place = if self.line_height(row).is_some() { "" } else { " (higher than the picture)" };
            format!("limit {}{counters}: {per} in {}{place}", limit.name, span(self.column))
        });
        denied_by.into_iter().chain(drawn).collect::<Vec<_>>().join("; ")
    }

    fn bars(&self, out: &mut String, floor: usize, row: &SimulatedRow) {
        let height = |sum: u64, all: usize, top: u64| {
            usize::try_from(u128::from(sum) * all as u128 / u128::from(top.max(1))).unwrap_or(all).max(1)
        };
        // A bar of two pixels would be half a gap.
        let width = if self.bar > 2 { self.bar - 1 } else { self.bar };
        for (column, (&admitted, denied)) in row.admitted.iter().zip(row.denied()).enumerate() {
            let x = LEFT + column * self.bar;
            let mut bar = |class: &str, y: usize, height: usize| {
                let rect = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
                let _ = writeln!(out, "<rect class=\"{class}\" {rect}/>");
            };
            if admitted > 0 {
                let height = height(admitted, BARS, self.top);
                bar("a", floor - height, height);
            }
            if denied > 0 {
                bar("n", floor, height(denied, DENIED, self.bottom));
            }
        }
    }

    fn line(&self, out: &mut String, floor: usize, row: &SimulatedRow) {
        let Some(height) = self.line_height(row) else { return };
        let y = floor as f64 - height;
        let end = LEFT + self.plot;
        let _ = writeln!(out, "<line class=\"l\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
    }

    /// The height of the row's line; `None` if it is above the picture.
    fn line_height(&self, row: &SimulatedRow) -> Option<f64> {
        let limit = line(row, self.column).filter(|limit| *limit <= self.top as f64)?;
        Some(limit * BARS as f64 / self.top as f64)
    }

    /// Labels of the axis of time. The first and the last stay within the picture.
    fn times(&self, out: &mut String, y: usize, columns: usize) {
        for tick in 0..=TICKS {
            let column = columns * tick / TICKS;
            let at = Micros(self.column.0.saturating_mul(column as u64));
            let anchor = match tick {
                0 => "start",
                TICKS => "end",
                _ => "middle",
            };
            let _ = writeln!(
                out,
                "<text class=\"d\" x=\"{}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
                LEFT + column * self.bar,
                span(at),
            );
        }
    }
}

fn title(row: &SimulatedRow) -> String {
    format!(
        "{}: {} of {} allowed, at most {} in any {}",
        row.result.strategy,
        row.result.allowed,
        row.calls.calls.len(),
        row.most,
        span(row.window),
    )
}

/// Returns the units that the drawn limit admits in a column.
fn line(row: &SimulatedRow, column: Micros) -> Option<f64> {
    row.limit.as_ref().map(|limit| limit.per(column))
}

/// The next number of one or two digits that is not below `most`, times a power of ten.
fn round_up(most: u64) -> u64 {
    let mut unit = 1_u64;
    while most / unit >= 100 {
        unit = unit.saturating_mul(10);
    }
    most.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_number() {
        let rounded = [1, 7, 99, 100, 101, 994, 12_345, u64::MAX / 2].map(round_up);
        assert_eq!(rounded[..7], [1, 7, 99, 100, 110, 1_000, 13_000]);
        assert!(rounded[7] >= u64::MAX / 2);
    }
}
