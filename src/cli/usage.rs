//! `weir usage`: totals of decisions by time, as a table, CSV or JSON.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{GetUsageRequest, GetUsageResponse};

use super::allow_output::AllowOutput;
use super::server_args::ServerArgs;
use super::terminal::clean_cell;
use super::{duration, fail, print, render, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir usage                                          calls and cost of the last hour, by strategy and outcome
  weir usage --step 1s --last 10m --strategy api      by second
  weir usage --step 1m --csv > usage.csv";

const FAILED: u8 = 2;

#[derive(Debug, clap::Args)]
// Answers are collected from all nodes.
#[command(mut_arg("timeout", |timeout| timeout.default_value("5s")))]
pub(crate) struct UsageArgs {
    /// How long a point is: 1s, 1m, 1h [default: one point for all of the time]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    step: Option<Duration>,
    /// The time until now [default: 1h]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    last: Option<Duration>,
    /// Only decisions under this strategy
    #[arg(long, env = "WEIR_STRATEGY")]
    strategy: Option<String>,
    /// Only decisions with this outcome, such as denied
    #[arg(long)]
    outcome: Option<String>,
    /// Print comma-separated values: start, strategy, resource_pattern, outcome, calls, cost
    #[arg(long, conflicts_with = "output")]
    csv: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Text for people, or the proto-JSON of the response
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: AllowOutput,
}

pub(crate) fn run(args: UsageArgs) -> ExitCode {
    match usage(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}"), FAILED),
    }
}

fn usage(args: UsageArgs) -> Result<()> {
    let step = args.step.map(prost_types::Duration::try_from).transpose().context("--step is too long")?;
    let last = args.last.map(|last| i64::try_from(last.as_secs().max(1))).transpose()?;
    let request = GetUsageRequest {
        strategy: args.strategy,
        outcome: args.outcome,
        step,
        ..GetUsageRequest::default()
    };
    let response = args.server.answer(async |client| asked(client, request, last).await)?;
    if !response.incomplete.is_empty() {
        say(&format!("note: other nodes are missing: {}", response.incomplete));
    }
    let text = match (args.csv, args.output) {
        (true, _) => csv(&response),
        (false, AllowOutput::Text) => table(&response),
        (false, AllowOutput::Json) => render::json("weir.v1.GetUsageResponse", &response)?,
    };
    print(&text).context("the answer cannot be printed")
}

async fn asked(
    client: &mut Client,
    mut request: GetUsageRequest,
    last: Option<i64>,
) -> Result<GetUsageResponse, ClientError> {
    if let Some(last) = last {
        // Times are by the server's clock, so its time is requested first.
        let now = client.get_usage(GetUsageRequest { step: None, ..request.clone() }).await?.to;
        let from = now.map(|now| now.seconds.saturating_sub(last));
        request.from = from.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 });
        request.to = now;
    }
    client.get_usage(request).await
}

/// The rows of all points with calls: start, strategy, pattern, outcome, calls, cost.
fn rows(response: &GetUsageResponse) -> Vec<[String; 6]> {
    let mut rows = Vec::new();
    for series in &response.series {
        for point in series.points.iter().filter(|point| point.calls > 0 || point.cost > 0) {
            let start = point.start.as_ref().map(ToString::to_string).unwrap_or_default();
            let (strategy, pattern) = (series.strategy.clone(), series.resource_pattern.clone());
            let outcome = series.outcome.clone();
            rows.push([start, strategy, pattern, outcome, point.calls.to_string(), point.cost.to_string()]);
        }
    }
    // By time; of one time in the order of the answer.
    rows.sort_by(|one, other| one[0].cmp(&other[0]));
    rows
}

const HEAD: [&str; 6] = ["start", "strategy", "resource_pattern", "outcome", "calls", "cost"];

fn csv(response: &GetUsageResponse) -> String {
    let mut out = format!("{}\n", HEAD.join(","));
    for row in rows(response) {
        let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

/// Quotes a cell that needs it, as RFC 4180 says.
fn csv_cell(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

fn table(response: &GetUsageResponse) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows(response).into_iter().map(|row| row.map(|cell| clean_cell(&cell))));
    if lines.len() == 1 {
        return "no decisions in this time\n".to_owned();
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for [start, strategy, pattern, outcome, calls, cost] in &lines {
        let [a, b, c, d, e, f] = widths;
        let line = format!("{start:a$}  {strategy:b$}  {pattern:c$}  {outcome:d$}  {calls:>e$}  {cost:>f$}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::csv_cell;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (cell, expected) in [("api/*", "api/*"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\"")] {
            assert_eq!(csv_cell(cell), expected);
        }
    }
}
