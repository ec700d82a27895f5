//! The table of costs by name of the live page.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::drawn_table::{draw_table, ranked};
use super::view::CostRow;

/// The titles of costs by name, and how important each column is.
const TITLES: [&str; 6] = ["strategy", "resources", "cost", "unit", "used/s", "used"];
const RANKS: [usize; 6] = [0, 5, 1, 4, 2, 3];

/// Draws the costs by name.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, costs: &[CostRow]) {
    let rows: Vec<[String; 6]> = costs.iter().map(cells).collect();
    draw_table(frame, area, " costs by name, of the last minute ", &ranked(&TITLES, &RANKS, &rows), &rows);
}

/// The cells of a cost by name.
pub(super) fn cells(one: &CostRow) -> [String; 6] {
    let texts = [&one.strategy, &one.pattern, &one.name, &one.unit].map(Clone::clone);
    let [strategy, pattern, name, unit] = texts;
    [strategy, pattern, name, unit, format!("{:.1}", one.per_s), one.units.to_string()]
}
