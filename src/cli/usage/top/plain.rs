//! A page as text.

use std::fmt::Write as _;

use weir_proto::v1::ConsumerCalls;

use super::super::super::terminal::clean_cell;
use super::super::nodes;
use super::costs;
use super::view::{UsageView, estimate};

pub(super) fn page(view: &UsageView) -> String {
    let mut page = nodes::page(&view.nodes);
    if !view.incomplete.is_empty() {
        let _ = writeln!(page, "other nodes are missing: {}", view.incomplete);
    }
    page.push('\n');
    let head = [
        "strategy",
        "resources",
        "calls/s",
        "denied/s",
        "cost/s",
        "calls",
        "denied",
        "by list",
        "uncharged",
        "degraded",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(view.rows.iter().map(|row| {
        [
            row.strategy.clone(),
            row.pattern.clone(),
            format!("{:.1}", row.calls_per_s),
            format!("{:.1}", row.denied_per_s),
            format!("{:.1}", row.cost_per_s),
            row.calls.to_string(),
            row.denied.to_string(),
            row.listed.to_string(),
            row.uncharged.to_string(),
            row.degraded.to_string(),
        ]
    }));
    table(&mut page, &rows, 2);
    if !view.costs.is_empty() {
        let head = ["costs of", "resources", "cost", "unit", "used/s", "used"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(view.costs.iter().map(costs::cells)).collect();
        page.push('\n');
        table(&mut page, &rows, 4);
    }
    for (what, consumers) in [("denied", &view.denied), ("allowed", &view.allowed)] {
        let _ = writeln!(page, "\n{what} most, {}", view.window);
        let head = [["consumer", "strategy", "calls"].map(str::to_owned)];
        let rows: Vec<_> = head.into_iter().chain(consumers.iter().take(10).map(consumer)).collect();
        table(&mut page, &rows, 2);
    }
    page
}

fn consumer(one: &ConsumerCalls) -> [String; 3] {
    [clean_cell(&one.consumer), clean_cell(&one.strategy), estimate(one)]
}

/// Appends a table with columns two blanks apart; from column `texts` on they are numbers, right-aligned.
fn table<const N: usize>(page: &mut String, rows: &[[String; N]], texts: usize) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = if column < texts {
                write!(line, "  {cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        let _ = writeln!(page, "{}", line.trim_end());
    }
}
