//! `weir queue browse | redrive | purge`: what operators do with a queue.

use anyhow::{Result, bail};
use weir_proto::v1::{
    BrowseRequest, BrowseResponse, BrowsedItem, ItemState, PurgeRequest, RedriveRequest, RedriveResponse,
};

use super::WhichQueue;
use crate::cli::render;

#[derive(Debug, clap::Args)]
pub(super) struct BrowseArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// The most items, 1 to 100
    #[arg(long, default_value_t = 20)]
    max_items: u32,
    /// Only items after this id: the next page
    #[arg(long, default_value = "", value_name = "ID")]
    after: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// The most dead letters that come back [default: all that there are now]
    #[arg(long, value_name = "N")]
    max_items: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PurgeArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// Remove the items; without this, the command removes nothing
    #[arg(long)]
    yes: bool,
}

/// Dead letters that one call looks at.
const AT_ONCE: u64 = 100;

pub(super) fn browse(args: BrowseArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    let request = BrowseRequest { queue, max_items: Some(args.max_items), after: args.after };
    let response = ask.server.answer(async |client| client.browse(request).await)?;
    ask.output.print("weir.v1.BrowseResponse", &response, || browse_text(&response))?;
    Ok(!response.items.is_empty())
}

/// Calls until there are no dead letters that were there at first, or the queue is full.
pub(super) fn redrive(args: RedriveArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    let mut left = args.max_items.unwrap_or(u64::MAX);
    if left == 0 {
        bail!("--max-items is 0: it must be 1 or more");
    }
    let mut all = RedriveResponse::default();
    loop {
        let max_items = u32::try_from(left.min(AT_ONCE)).ok();
        let request = RedriveRequest { queue: queue.clone(), max_items, after: all.next.clone() };
        let response = ask.server.answer(async |client| client.redrive(request).await)?;
        left = left.saturating_sub(response.item_ids.len() as u64);
        let mut item_ids = std::mem::take(&mut all.item_ids);
        item_ids.extend(response.item_ids.iter().cloned());
        all = RedriveResponse { item_ids, ..response };
        if all.full || all.next.is_empty() || left == 0 {
            break;
        }
    }
    ask.output.print("weir.v1.RedriveResponse", &all, || redrive_text(&all))?;
    Ok(!all.full)
}

pub(super) fn purge(args: PurgeArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    if !args.yes {
        bail!("this removes all items of `{queue}`, also those that workers have; say --yes if you mean it");
    }
    let response = ask.server.answer(async |client| client.purge(PurgeRequest { queue }).await)?;
    ask.output
        .print("weir.v1.PurgeResponse", &response, || format!("{} items removed\n", response.purged))?;
    Ok(true)
}

fn browse_text(response: &BrowseResponse) -> String {
    if response.items.is_empty() {
        return "nothing\n".to_owned();
    }
    let mut text: String = response.items.iter().map(item_text).collect();
    text += &format!("  {} places taken\n", response.depth);
    if !response.next.is_empty() {
        text += &format!("  more: --after {}\n", response.next);
    }
    text
}

fn item_text(item: &BrowsedItem) -> String {
    let due = || item.due_after.as_ref().map(render::duration).unwrap_or_default();
    let state = match item.state() {
        ItemState::Unspecified | ItemState::New => "waits".to_owned(),
        ItemState::Taken => format!("with {} for {} more", item.consumer, due()),
        ItemState::GivenBack => format!("given back by {}, comes again in {}", item.consumer, due()),
        ItemState::Overdue => format!("{} did not ack it in time, comes again now", item.consumer),
    };
    let origin =
        if item.origin.is_empty() { String::new() } else { format!(", in its queue {}", item.origin) };
    let (id, deliveries) = (&item.id, item.deliveries);
    format!(
        "item {id}{origin}, {deliveries} deliveries: {state}\n{}\n",
        String::from_utf8_lossy(&item.payload)
    )
}

fn redrive_text(response: &RedriveResponse) -> String {
    let RedriveResponse { item_ids, full, depth, dead_depth, .. } = response;
    let mut text = format!("{} dead letters came back\n", item_ids.len());
    if *full {
        text += "  the queue is full\n";
    }
    text + &format!("  {depth} places taken, {dead_depth} dead letters left\n")
}
