//! `weir queue outcomes`: what became of items, by id and by time.

use std::time::Duration;

use anyhow::Result;
use weir_proto::v1::{ItemOutcome, OutcomesRequest, OutcomesResponse};
use weir_time::clock::Clock;

use super::{WhichQueue, show};
use crate::cli::{duration, render};

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
    /// The most outcomes
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_items: u32,
}

/// Outcomes of one call.
const AT_ONCE: u32 = 100;

/// Calls until there are enough, or no more: a call looks at 1,000 outcomes at most, and may find none among them.
pub(super) fn run(args: OutcomesArgs) -> Result<bool> {
    let WhichQueue { queue, server, output } = args.queue;
    let from_unix_ms = match args.last {
        Some(last) => milliseconds().saturating_sub(u64::try_from(last.as_millis()).unwrap_or(u64::MAX)),
        None => args.from,
    };
    let mut all = OutcomesResponse::default();
    let mut left = args.max_items;
    loop {
        let request = OutcomesRequest {
            queue: queue.clone(),
            item_id: args.item.clone(),
            from_unix_ms,
            until_unix_ms: args.until,
            max_items: Some(left.min(AT_ONCE)),
            before: std::mem::take(&mut all.next),
        };
        let page = server.answer(async |client| client.outcomes(request).await)?;
        left = left.saturating_sub(u32::try_from(page.outcomes.len()).unwrap_or(u32::MAX));
        all.outcomes.extend(page.outcomes);
        all.next = page.next;
        if left == 0 || all.next.is_empty() {
            break;
        }
    }
    show(output, "weir.v1.OutcomesResponse", &all, text)?;
    Ok(!all.outcomes.is_empty())
}

fn milliseconds() -> u64 {
    Clock::System.now().0 / 1_000
}

fn text(response: &OutcomesResponse) -> String {
    if response.outcomes.is_empty() {
        return "nothing\n".to_owned();
    }
    let now = milliseconds();
    let mut text: String = response.outcomes.iter().map(|outcome| line(outcome, now)).collect();
    if !response.next.is_empty() {
        text += "  there are more: raise --max-items\n";
    }
    text
}

fn line(outcome: &ItemOutcome, now: u64) -> String {
    let ItemOutcome { item_id, at_unix_ms, deliveries, consumer, outcome } = outcome;
    let ago = Duration::from_millis(now.saturating_sub(*at_unix_ms));
    let ago = prost_types::Duration::try_from(ago).unwrap_or_default();
    let times = if *deliveries == 1 { "delivery".to_owned() } else { format!("{deliveries} deliveries") };
    format!("item {item_id}, {} ago, {times}, by {consumer}: {outcome}\n", render::duration(&ago))
}
