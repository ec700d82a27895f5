//! The result of a simulation as JSON and CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde_json::json;

use super::Simulated;

/// Formats the result as JSON. All times are in microseconds.
pub(super) fn json(simulated: &Simulated) -> Result<String> {
    let rows = simulated.strategies.iter().map(|row| {
        let result = &row.result;
        json!({
            "strategy": result.strategy,
            "calls": row.calls.calls.len(),
            "last_call_us": row.calls.calls.last().map(|call| call.at.0),
            "allowed": result.allowed,
            "allowed_cost": result.allowed_cost,
            "denied": result.denied,
            "never": result.never,
            "denied_by": result.denied_by.iter().cloned().collect::<BTreeMap<_, _>>(),
            "drawn_limit": row.limit.as_ref().map(|limit| json!({
                "name": limit.name,
                "counters": limit.counters,
                "per_column": limit.per(simulated.column),
            })),
            "costs": result.costs.iter().map(|sum| {
                (sum.name.clone(), json!({ "asked": sum.asked, "granted": sum.granted }))
            }).collect::<BTreeMap<_, _>>(),
            "window_us": row.window.0,
            "most_in_any_window": row.most,
            "mean_wait_us": result.mean_wait().0,
            "longest_wait_us": result.longest_wait.0,
            "mean_hold_us": result.mean_hold().0,
            "longest_hold_us": result.longest_hold.0,
            "admitted": row.admitted,
        })
    });
    let all = json!({
        "config": simulated.config,
        "pattern": simulated.pattern,
        "consumers": simulated.consumers(),
        "seed": simulated.seed,
        "calls": simulated.strategies.iter().map(|row| row.calls.calls.len()).max(),
        "column_us": simulated.column.0,
        "offered": simulated.offered(),
        "strategies": rows.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// Formats the offered and the admitted cost of each column as CSV.
pub(super) fn csv(simulated: &Simulated) -> String {
    let mut out = String::from("at_s,strategy,offered,admitted\n");
    for row in &simulated.strategies {
        for (place, (offered, admitted)) in (0_u64..).zip(row.offered.iter().zip(&row.admitted)) {
            let at = place * simulated.column.0;
            // Names contain neither commas nor quotes.
            let _ = writeln!(
                out,
                "{}.{:06},{},{offered},{admitted}",
                at / 1_000_000,
                at % 1_000_000,
                row.result.strategy
            );
        }
    }
    out
}
