//! A page as text.

use std::fmt::Write as _;

use super::super::super::terminal::text_table;
use super::super::nodes;
use super::costs;
use super::view::{UsageView, consumer_cells};

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
    page += &text_table(&rows, 2);
    if !view.costs.is_empty() {
        let head = ["costs of", "resources", "cost", "unit", "used/s", "used"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(view.costs.iter().map(costs::cells)).collect();
        page.push('\n');
        page += &text_table(&rows, 4);
    }
    for (what, consumers) in [("denied", &view.denied), ("allowed", &view.allowed)] {
        let _ = writeln!(page, "\n{what} most, {}", view.window);
        let head = [["consumer", "strategy", "calls"].map(str::to_owned)];
        let rows: Vec<_> = head.into_iter().chain(consumers.iter().take(10).map(consumer_cells)).collect();
        page += &text_table(&rows, 2);
    }
    page
}
