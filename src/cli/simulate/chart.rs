//! The result of a simulation as SVG and as HTML. Both are self-contained, and follow the reader's color scheme (light
//! or dark).

use std::fmt::Write as _;

use super::text::{cells, header, span};
use super::{COLUMNS, Simulated, SimulatedRow};

const WIDTH: usize = 800;
/// The left end of the bars, and their width in all: sixty columns have bars of whole pixels.
const LEFT: usize = 64;
const PLOT: usize = 720;
/// Height of the title and the legend.
const HEAD: usize = 46;
/// Height of one strategy's row: its title, the bars, and the labels of its axis.
const ROW: usize = 140;
const TITLE: usize = 26;
const BARS: usize = 80;
/// Characters that fit into a line.
const LINE: usize = 118;
/// Labels of the axis of time.
const TICKS: usize = 6;

const COLORS: &str = "\
.weir{--text:#1f2328;--dim:#59636e;--offered:#d0d7de;--admitted:#1f6feb;--limit:#cf222e;--axis:#afb8c1;font:12px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){.weir{--text:#e6edf3;--dim:#9198a1;--offered:#3d444d;--admitted:#58a6ff;--limit:#ff7b72;--axis:#656c76}}\
.weir text{fill:var(--text)}.weir .d{fill:var(--dim);font-size:11px}.weir .o{fill:var(--offered)}.weir .a{fill:var(--admitted)}\
.weir .l{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 3}.weir .x{stroke:var(--axis)}";

/// Draws a row of bars for each strategy: the offered cost, and in front of it the admitted cost; and its limit as a line.
pub(super) fn svg(simulated: &Simulated) -> String {
    let height = simulated.strategies.len() * ROW + HEAD;
    let line = |row: &SimulatedRow| row.per_column(simulated.column).unwrap_or(0.0).ceil() as u64;
    let highest = simulated.strategies.iter().map(line).max().unwrap_or(0).max(simulated.highest());
    let axes = Axes { top: round_up(highest.max(1)), column: span(simulated.column), simulated };
    let mut out = format!(
        "<svg class=\"weir\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"What each strategy admits over time\">\n<style>{COLORS}</style>\n\
         <text x=\"8\" y=\"15\">{}</text>\n",
        escaped(&shortened(&format!("{}, by time; a bar is {}", simulated.pattern, axes.column))),
    );
    legend(&mut out, simulated);
    for (place, row) in simulated.strategies.iter().enumerate() {
        axes.draw(&mut out, HEAD + place * ROW, row);
    }
    out.push_str("</svg>\n");
    out
}

/// The axes that all rows have in common.
struct Axes<'a> {
    /// The cost at the top.
    top: u64,
    /// The duration of a bar, as text.
    column: String,
    simulated: &'a Simulated,
}

impl Axes<'_> {
    fn draw(&self, out: &mut String, top: usize, row: &SimulatedRow) {
        let (ceiling, floor) = (top + TITLE, top + TITLE + BARS);
        let title = format!(
            "{}: {} of {} allowed, at most {} in any {}",
            row.result.strategy,
            row.result.allowed,
            row.calls.calls.len(),
            row.most,
            span(row.window),
        );
        let _ = writeln!(out, "<text x=\"8\" y=\"{}\">{}</text>", top + 14, escaped(&shortened(&title)));
        for (y, label) in [(ceiling, self.top.to_string()), (floor, "0".to_owned())] {
            let _ = writeln!(
                out,
                "<line class=\"x\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>\
                 <text class=\"d\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
                LEFT + PLOT,
                LEFT - 6,
                y + 4,
            );
        }
        // The unit of the axis, between its two numbers.
        for (line, unit) in ["cost in", &*self.column].into_iter().enumerate() {
            let y = ceiling + BARS / 2 + 12 * line;
            let _ = writeln!(
                out,
                "<text class=\"d\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{unit}</text>",
                LEFT - 6
            );
        }
        self.bars(out, floor, row);
        if let Some(limit) = row.per_column(self.simulated.column) {
            let y = floor as f64 - limit * BARS as f64 / self.top as f64;
            let _ = writeln!(
                out,
                "<line class=\"l\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                LEFT + PLOT
            );
        }
        self.times(out, floor + 14, row);
    }

    fn bars(&self, out: &mut String, floor: usize, row: &SimulatedRow) {
        let width = width_of(row);
        let height =
            |sum: u64| usize::try_from(u128::from(sum) * BARS as u128 / u128::from(self.top)).unwrap_or(0);
        for (column, (&offered, &admitted)) in row.offered.iter().zip(&row.admitted).enumerate() {
            let offered = if self.simulated.closed { 0 } else { offered };
            for (class, sum) in [("o", offered), ("a", admitted)].into_iter().filter(|(_, sum)| *sum > 0) {
                let (x, height) = (LEFT as f64 + column as f64 * width, height(sum).max(1));
                let _ = writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\"/>",
                    floor - height,
                    (width - 1.0).max(0.5),
                );
            }
        }
    }

    /// Labels of the axis of time. The first and the last stay within the picture.
    fn times(&self, out: &mut String, y: usize, row: &SimulatedRow) {
        let columns = row.admitted.len().max(1);
        let width = width_of(row);
        for tick in 0..=TICKS {
            let column = columns * tick / TICKS;
            let at = weir_units::Micros(self.simulated.column.0.saturating_mul(column as u64));
            let anchor = match tick {
                0 => "start",
                TICKS => "end",
                _ => "middle",
            };
            let _ = writeln!(
                out,
                "<text class=\"d\" x=\"{}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
                LEFT as f64 + column as f64 * width,
                span(at),
            );
        }
    }
}

fn width_of(row: &SimulatedRow) -> f64 {
    let columns = row.admitted.len().max(1);
    if columns == COLUMNS { (PLOT / COLUMNS) as f64 } else { PLOT as f64 / columns as f64 }
}

/// What the colors and the line stand for.
fn legend(out: &mut String, simulated: &Simulated) {
    let offered = (!simulated.closed).then_some(("o", "offered"));
    let mut x = LEFT;
    for (class, name) in offered.into_iter().chain([("a", "admitted")]) {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"24\" width=\"12\" height=\"12\"/><text class=\"d\" x=\"{}\" y=\"34\">{name}</text>",
            x + 17,
        );
        x += 90;
    }
    let _ = writeln!(
        out,
        "<line class=\"l\" x1=\"{x}\" x2=\"{}\" y1=\"30\" y2=\"30\"/>\
         <text class=\"d\" x=\"{}\" y=\"34\">its limit, spread evenly over its window</text>",
        x + 24,
        x + 30,
    );
}

/// The next number of one or two digits that is not below `most`, times a power of ten.
fn round_up(most: u64) -> u64 {
    let mut unit = 1_u64;
    while most / unit >= 100 {
        unit = unit.saturating_mul(10);
    }
    most.div_ceil(unit).saturating_mul(unit)
}

/// Cut to what fits into a line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Formats a page with the picture and the table.
pub(super) fn html(simulated: &Simulated) -> String {
    let mut rows = String::new();
    for row in &simulated.strategies {
        let cells = cells(simulated, row);
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(rows, "<tr>{cells}</tr>");
    }
    let header: String = header(simulated).iter().map(|name| format!("<th>{name}</th>")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>weir simulate</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <style>body{{font:14px system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem}}\
         svg{{width:100%}}table{{border-collapse:collapse;display:block;overflow-x:auto}}\
         td,th{{padding:.2rem .6rem;text-align:right}}td:first-child,th:first-child{{text-align:left}}</style></head>\n\
         <body><h1>{}</h1>\n<p>{} calls, seed {}</p>\n<table><thead><tr>{header}</tr></thead><tbody>\n{rows}</tbody></table>\n{}\
         </body></html>\n",
        escaped(&simulated.pattern),
        simulated.strategies.iter().map(|row| row.calls.calls.len()).max().unwrap_or(0),
        simulated.seed,
        svg(simulated),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn a_long_title_is_cut_and_not_clipped() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), LINE + 1);
    }
}
