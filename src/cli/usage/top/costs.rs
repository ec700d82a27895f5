//! The table of costs by name of the live page.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Borders, Row, Table};

use super::columns::{Column, fitting, width_of};
use super::view::CostRow;

/// The titles of costs by name, and how important each column is.
const TITLES: [&str; 6] = ["strategy", "resources", "cost", "unit", "used/s", "used"];
const RANKS: [usize; 6] = [0, 5, 1, 4, 2, 3];

/// Draws the costs by name.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, costs: &[CostRow]) {
    let rows: Vec<[String; 6]> = costs.iter().map(cells).collect();
    let column = |(place, (title, rank)): (usize, (&&str, usize))| {
        let cells = rows.iter().filter_map(|row| row.get(place).map(String::as_str));
        Column { width: width_of(title, cells), rank }
    };
    let columns: Vec<Column> = TITLES.iter().zip(RANKS).enumerate().map(column).collect();
    let shown = fitting(&columns, usize::from(area.width));
    let row = |cells: &[String; 6]| {
        Row::new(shown.iter().filter_map(|&place| cells.get(place).cloned()).collect::<Vec<_>>())
    };
    let widths = shown.iter().map(|&place| columns.get(place).map_or(0, |column| column.width));
    let head = shown.iter().filter_map(|&place| TITLES.get(place).copied());
    let widths: Vec<_> = widths.map(|width| Constraint::Length(short(width))).collect();
    let table = Table::new(rows.iter().map(row), widths)
        .header(Row::new(head.collect::<Vec<_>>()).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::new().borders(Borders::TOP).title(" costs by name, of the last minute "));
    frame.render_widget(table, area);
}

/// The cells of a cost by name.
pub(super) fn cells(one: &CostRow) -> [String; 6] {
    let texts = [&one.strategy, &one.pattern, &one.name, &one.unit].map(Clone::clone);
    let [strategy, pattern, name, unit] = texts;
    [strategy, pattern, name, unit, format!("{:.1}", one.per_s), one.units.to_string()]
}

fn short(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}
