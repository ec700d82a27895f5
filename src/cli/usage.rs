//! `weir usage`: totals of decisions by time, as a table, CSV or JSON. `weir top` and `weir nodes` ask the same service.

pub(super) mod nodes;
pub(super) mod top;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{GetUsageRequest, GetUsageResponse};

use super::allow_output::AllowOutput;
use super::server_args::AskArgs;
use super::terminal::clean_cell;
use super::{done, duration, print, render, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir usage                                          calls and cost of the last hour, by strategy and outcome
  weir usage --step 1s --last 10m --strategy api      by second
  weir usage --step 1m --csv > usage.csv";

#[derive(Debug, clap::Args)]
// Answers are collected from all nodes.
#[command(mut_arg("timeout", |timeout| timeout.default_value("5s")))]
pub(crate) struct UsageArgs {
    /// Duration of a point: 1s, 1m, 1h [default: one point for all of the time]
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
    /// Print comma-separated values: start, strategy, resource_pattern, outcome, calls, cost, cost_name, unit
    #[arg(long, conflicts_with = "output")]
    csv: bool,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn run(args: UsageArgs) -> ExitCode {
    done(usage(args))
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
    let response = args.ask.server.answer(async |client| asked(client, request, last).await)?;
    if !response.incomplete.is_empty() {
        say(&format!("note: other nodes are missing: {}", response.incomplete));
    }
    let text = match (args.csv, args.ask.output) {
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

/// The rows of all points, in the order of [`HEAD`]. A cost by name has a row of its own, without calls.
fn rows(response: &GetUsageResponse) -> Vec<UsageLine> {
    let mut rows = Vec::new();
    for series in &response.series {
        for point in &series.points {
            let start = point.start.as_ref().map(ToString::to_string).unwrap_or_default();
            let row = |calls: u64, cost: u64, name: &str, unit: &str| {
                let [strategy, pattern, outcome] =
                    [&series.strategy, &series.resource_pattern, &series.outcome].map(Clone::clone);
                let (calls, cost) = (calls.to_string(), cost.to_string());
                [start.clone(), strategy, pattern, outcome, calls, cost, name.to_owned(), unit.to_owned()]
            };
            if point.calls > 0 || point.cost > 0 {
                rows.push(row(point.calls, point.cost, "", ""));
            }
            for (name, units) in &point.costs {
                rows.push(row(0, *units, name, series.units.get(name).map_or("", String::as_str)));
            }
        }
    }
    // By time; of one time in the order of the answer.
    rows.sort_by(|one, other| one[0].cmp(&other[0]));
    rows
}

type UsageLine = [String; 8];

const HEAD: [&str; 8] =
    ["start", "strategy", "resource_pattern", "outcome", "calls", "cost", "cost_name", "unit"];

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
    let widths: [usize; 8] = std::array::from_fn(width);
    // Without costs by name nothing says that there are some.
    let are_named = lines.iter().skip(1).any(|line| !line[6].is_empty());
    let mut out = String::new();
    for [start, strategy, pattern, outcome, calls, cost, name, unit] in &lines {
        let [a, b, c, d, e, f, g, _] = widths;
        let mut line =
            format!("{start:a$}  {strategy:b$}  {pattern:c$}  {outcome:d$}  {calls:>e$}  {cost:>f$}");
        if are_named {
            let _ = write!(line, "  {name:g$}  {unit}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;
    use weir_proto::v1::{GetUsageResponse, UsagePoint, UsageSeries};

    use super::{csv, csv_cell, table};

    #[test]
    fn a_cost_by_name_has_a_row_of_its_own() {
        let point = UsagePoint {
            start: Some(Timestamp { seconds: 0, nanos: 0 }),
            calls: 2,
            cost: 0,
            costs: [("output".to_owned(), 731), ("usd".to_owned(), 12_400)].into(),
        };
        let series = UsageSeries {
            strategy: "llm".to_owned(),
            resource_pattern: "chat".to_owned(),
            outcome: "allowed".to_owned(),
            points: vec![point],
            units: [("usd".to_owned(), "usd_micros".to_owned())].into(),
            ..UsageSeries::default()
        };
        let mut response = GetUsageResponse { series: vec![series], ..GetUsageResponse::default() };
        let start = "1970-01-01T00:00:00Z";
        let head = "start,strategy,resource_pattern,outcome,calls,cost,cost_name,unit";
        let expected = [
            head.to_owned(),
            format!("{start},llm,chat,allowed,2,0,,"),
            format!("{start},llm,chat,allowed,0,731,output,"),
            format!("{start},llm,chat,allowed,0,12400,usd,usd_micros"),
        ];
        assert_eq!(csv(&response).lines().collect::<Vec<_>>(), expected);
        assert!(table(&response).lines().last().unwrap().ends_with("12400  usd        usd_micros"));
        response.series[0].points[0].costs.clear();
        assert!(!table(&response).contains("cost_name"), "{}", table(&response));
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (cell, expected) in [("api/*", "api/*"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\"")] {
            assert_eq!(csv_cell(cell), expected);
        }
    }
}
