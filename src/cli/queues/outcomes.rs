//! `weir queue outcomes`: the archive of a queue, by item, time, way and text, and its totals.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{ItemFate, ItemOutcome, OutcomeTotals, OutcomesRequest, OutcomesResponse};
use weir_time::clock::Clock;

use super::WhichQueue;
use crate::cli::allow_output::AllowOutput;
use crate::cli::{duration, print, render};

#[derive(Debug, clap::Args)]
pub(super) struct OutcomesArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// Only the outcome of this item
    #[arg(long, default_value = "", value_name = "ID")]
    item: String,
    /// Only those of the last so long: 5m, 2h
    #[arg(long, value_parser = duration, value_name = "SPAN", conflicts_with_all = ["from", "until"])]
    last: Option<Duration>,
    /// Only those from this time on, in milliseconds since 1970
    #[arg(long, default_value_t = 0, value_name = "MS")]
    from: u64,
    /// Only those up to this time, in milliseconds since 1970
    #[arg(long, default_value_t = 0, value_name = "MS")]
    until: u64,
    /// Only those of items that left in this way
    #[arg(long, value_name = "WAY")]
    fate: Option<FateArg>,
    /// Only those whose Ack had exactly this text
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    outcome: String,
    /// The most outcomes
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_items: u32,
    /// All outcomes, however many there are
    #[arg(long, conflicts_with = "max_items")]
    all: bool,
    /// The number of outcomes by the way in which items left, in place of the outcomes
    #[arg(long, conflicts_with_all = ["max_items", "all"])]
    totals: bool,
}

/// The way in which an item left its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FateArg {
    /// A worker acked it
    Acked,
    /// Items that went to the dead letters
    DeadLettered,
    /// Items that were dropped for new ones
    Dropped,
    /// Items that were too old, without dead letters
    AgedOut,
}

/// Outcomes of one call.
const AT_ONCE: u64 = 100;

/// Prints outcomes as they come, page by page. JSON has one outcome per line.
pub(super) fn run(args: OutcomesArgs) -> Result<bool> {
    let request = args.request();
    let OutcomesArgs { queue: WhichQueue { ask, .. }, max_items, all, totals, .. } = args;
    if totals {
        let totals = ask.server.answer(async |client| sum(client, request).await)?;
        ask.output.print("weir.v1.OutcomeTotals", &totals, || totals_text(&totals))?;
        return Ok(totals != OutcomeTotals::default());
    }
    let most = if all { u64::MAX } else { max_items.into() };
    let mut printed = Ok(());
    let pages = async |client: &mut Client| {
        each_page(client, request, most, |page| {
            printed = print_page(page, ask.output);
            printed.is_ok()
        })
        .await
    };
    let (found, has_more) = ask.server.answer(pages)?;
    printed.context("the answer cannot be printed")?;
    let note = match (ask.output, found, has_more) {
        (AllowOutput::Text, 0, _) => "nothing\n",
        (AllowOutput::Text, _, true) => "  there are more: raise --max-items, or add --all\n",
        _ => "",
    };
    print(note).context("the answer cannot be printed")?;
    Ok(found > 0)
}

impl OutcomesArgs {
    /// The request for the first page.
    fn request(&self) -> OutcomesRequest {
        let from_unix_ms = match self.last {
            Some(last) => milliseconds().saturating_sub(u64::try_from(last.as_millis()).unwrap_or(u64::MAX)),
            None => self.from,
        };
        let fate = match self.fate {
            None => ItemFate::Unspecified,
            Some(FateArg::Acked) => ItemFate::Acked,
            Some(FateArg::DeadLettered) => ItemFate::DeadLettered,
            Some(FateArg::Dropped) => ItemFate::Dropped,
            Some(FateArg::AgedOut) => ItemFate::AgedOut,
        };
        OutcomesRequest {
            queue: self.queue.queue.clone(),
            item_id: self.item.clone(),
            from_unix_ms,
            until_unix_ms: self.until,
            fate: fate.into(),
            outcome: self.outcome.clone(),
            ..OutcomesRequest::default()
        }
    }
}

/// Asks for pages until there are enough, or no more, or `take` is false. A call looks at 1,000 outcomes at most, and may find
/// none among them. Returns how many there were, and whether there are more.
async fn each_page(
    client: &mut Client,
    mut request: OutcomesRequest,
    most: u64,
    mut take: impl FnMut(&OutcomesResponse) -> bool,
) -> Result<(u64, bool), ClientError> {
    let mut found = 0;
    loop {
        request.max_items = u32::try_from((most - found).min(AT_ONCE)).ok();
        let page = client.outcomes(request.clone()).await?;
        found = most.min(found + page.outcomes.len() as u64);
        let is_last = page.next.is_empty() || found == most;
        if !take(&page) || is_last {
            return Ok((found, !page.next.is_empty()));
        }
        request.before = page.next;
    }
}

/// The totals of all pages.
async fn sum(client: &mut Client, mut request: OutcomesRequest) -> Result<OutcomeTotals, ClientError> {
    let mut sum = OutcomeTotals::default();
    request.max_items = Some(0);
    loop {
        let OutcomesResponse { totals, next, .. } = client.outcomes(request.clone()).await?;
        let OutcomeTotals { acked, dead_lettered, dropped, aged_out } = totals.unwrap_or_default();
        sum.acked = sum.acked.saturating_add(acked);
        sum.dead_lettered = sum.dead_lettered.saturating_add(dead_lettered);
        sum.dropped = sum.dropped.saturating_add(dropped);
        sum.aged_out = sum.aged_out.saturating_add(aged_out);
        if next.is_empty() {
            return Ok(sum);
        }
        request.before = next;
    }
}

fn print_page(page: &OutcomesResponse, output: AllowOutput) -> io::Result<()> {
    let now = milliseconds();
    let line = |outcome: &ItemOutcome| match output {
        AllowOutput::Text => Ok(line(outcome, now)),
        AllowOutput::Json => render::json_line("weir.v1.ItemOutcome", outcome),
    };
    let lines: Result<String> = page.outcomes.iter().map(line).collect();
    print(&lines.map_err(io::Error::other)?)
}

pub(super) fn milliseconds() -> u64 {
    Clock::System.now().0 / 1_000
}

fn totals_text(totals: &OutcomeTotals) -> String {
    let OutcomeTotals { acked, dead_lettered, dropped, aged_out } = totals;
    format!("acked {acked}\ndead-lettered {dead_lettered}\ndropped {dropped}\ntoo old {aged_out}\n")
}

/// The outcome as a text of one line, and what is kept of its payload on another.
pub(super) fn line(outcome: &ItemOutcome, now: u64) -> String {
    let ItemOutcome { item_id, at_unix_ms, deliveries, consumer, outcome: text, .. } = outcome;
    let ago = Duration::from_millis(now.saturating_sub(*at_unix_ms));
    let ago = render::duration(&prost_types::Duration::try_from(ago).unwrap_or_default());
    let fate = match outcome.fate() {
        ItemFate::Unspecified => "left",
        ItemFate::Acked => "acked",
        ItemFate::DeadLettered => "went to the dead letters",
        ItemFate::Dropped => "dropped",
        ItemFate::AgedOut => "too old",
    };
    let times = if *deliveries == 1 { "1 delivery".to_owned() } else { format!("{deliveries} deliveries") };
    let mut line = format!("item {item_id}, {ago} ago, {fate}, {times}");
    for (before, part) in [(", by ", consumer), (": ", text), ("\n  sha1 ", &outcome.payload_digest)] {
        if !part.is_empty() {
            line += &format!("{before}{part}");
        }
    }
    if !outcome.payload_head.is_empty() {
        line += &format!("\n  {}", String::from_utf8_lossy(&outcome.payload_head));
    }
    line + "\n"
}
