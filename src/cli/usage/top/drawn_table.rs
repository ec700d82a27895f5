//! A table of the live page, whose columns are as wide as their cells.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Borders, Row, Table};

use super::columns::{Column, fitting, width_of};

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Returns the columns of these rows by their titles and ranks.
pub(super) fn ranked<'t, const N: usize>(
    titles: &[&'t str; N],
    ranks: &[usize; N],
    rows: &[[String; N]],
) -> Vec<(&'t str, Column)> {
    let column = |(place, (title, rank)): (usize, (&&'t str, &usize))| {
        let cells = rows.iter().filter_map(|row| row.get(place).map(String::as_str));
        (*title, Column { width: width_of(title, cells), rank: *rank })
    };
    titles.iter().zip(ranks).enumerate().map(column).collect()
}

/// Draws the columns that fit.
pub(super) fn draw_table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    columns: &[(&str, Column)],
    rows: &[[String; N]],
) {
    let widths: Vec<Column> = columns.iter().map(|(_, column)| *column).collect();
    let shown = fitting(&widths, usize::from(area.width));
    let row = |cells: &[String; N]| {
        Row::new(shown.iter().filter_map(|&place| cells.get(place).cloned()).collect::<Vec<_>>())
    };
    let found = || shown.iter().filter_map(|&place| columns.get(place));
    let head: Vec<&str> = found().map(|(title, _)| *title).collect();
    let widths = found().map(|(_, column)| Constraint::Length(short(column.width)));
    let table = Table::new(rows.iter().map(row), widths.collect::<Vec<_>>())
        .header(Row::new(head).style(BOLD))
        .block(Block::new().borders(Borders::TOP).title(title.to_owned()));
    frame.render_widget(table, area);
}

/// Narrows a width.
pub(super) fn short(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}
