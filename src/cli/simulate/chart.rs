//! The result of a simulation as SVG and as HTML. Both are self-contained, and follow the reader's color scheme (light
//! or dark).

use std::fmt::Write as _;

use super::text::{cells, header, span};
use super::{COLUMNS, Simulated};

const WIDTH: usize = 800;
/// Height of one strategy's row, including its title.
const ROW: usize = 90;
const BAR_HEIGHT: usize = 60;
const TITLE: usize = 24;

const COLORS: &str = "\
.weir{--text:#1f2328;--offered:#d0d7de;--admitted:#1f6feb;font:12px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){.weir{--text:#e6edf3;--offered:#3d444d;--admitted:#58a6ff}}\
.weir text{fill:var(--text)}.weir .o{fill:var(--offered)}.weir .a{fill:var(--admitted)}";

/// Draws a row of bars for each strategy: the offered cost, and in front of it the admitted cost.
pub(super) fn svg(simulated: &Simulated) -> String {
    let height = simulated.strategies.len() * ROW + TITLE;
    let highest = simulated.highest().max(1);
    let bar =
        |sum: u64| usize::try_from(u128::from(sum) * BAR_HEIGHT as u128 / u128::from(highest)).unwrap_or(0);
    let columns = simulated.strategies.first().map_or(COLUMNS, |row| row.admitted.len()).max(1);
    // The usual number of columns has bars of whole pixels.
    let width = if columns == COLUMNS { (WIDTH / COLUMNS) as f64 } else { WIDTH as f64 / columns as f64 };
    let mut out = format!(
        "<svg class=\"weir\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"What each strategy admits\">\n<style>{COLORS}</style>\n\
         <text x=\"0\" y=\"14\">{}: a bar is {}, the highest is {highest}</text>\n",
        escaped(&simulated.pattern),
        span(simulated.column),
    );
    for (place, row) in simulated.strategies.iter().enumerate() {
        let top = TITLE + place * ROW;
        let floor = top + 18 + BAR_HEIGHT;
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{}\">{}: {} of {} allowed, at most {} in any {}</text>",
            top + 12,
            escaped(&row.result.strategy),
            row.result.allowed,
            row.calls.calls.len(),
            row.most,
            span(row.window),
        );
        for (column, (&offered, &admitted)) in row.offered.iter().zip(&row.admitted).enumerate() {
            let offered = if simulated.closed { 0 } else { offered };
            for (class, sum) in [("o", offered), ("a", admitted)].into_iter().filter(|(_, sum)| *sum > 0) {
                let (x, height) = (column as f64 * width, bar(sum).max(1));
                let _ = writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\"/>",
                    floor - height,
                    (width - 1.0).max(0.5),
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
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
