//! `weir queue`: operations on the queues of a running server.

pub(super) mod explanation;
mod operate;
mod outcomes;
mod texts;

pub(super) use self::texts::{changes, example, summary};

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use weir_proto::v1::{
    AckRequest, DeliveryCause, EnqueueRequest, EnqueueResponse, ExtendRequest, NackRequest, NewItem, Reason,
    StatsRequest, StatsResponse, TakeRequest, TakeResponse,
};

use super::server_args::{AskArgs, span};
use super::{answered, duration, render};

/// The default name of the consumer.
const DEFAULT_CONSUMER: &str = "weir queue";

/// Maximum number of bytes read: one more than the largest payload.
const READ_AT_MOST: u64 = (64 << 10) + 1;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir queue put jobs 'resize cat.png' --id cat-1     exits 0 if the work is in the queue, 1 if the queue is full
  weir queue put jobs < work.json                     the work is what comes from stdin
  weir queue take jobs --wait 20s                     waits for an item; exits 1 if none came
  weir queue ack jobs 1704067200000-0 --outcome done  exits 1 if no worker had the item
  weir queue nack jobs 1704067200000-0 --delay 1m     it is delivered again in a minute
  weir queue extend jobs 1704067200000-0 --visibility 5m   its worker has it for five more minutes
  weir queue take jobs:dead                           what was delivered too often
  weir queue browse jobs:dead                         shows it, and takes nothing
  weir queue redrive jobs                             brings it back into the queue (needs server.admin_service)
  weir queue purge jobs:dead --yes                    removes it (needs server.admin_service)
  weir queue outcomes jobs --last 1h                  what became of the items of the last hour
  weir queue outcomes jobs --all --output json        the whole archive, a line for each item
  weir queue outcomes jobs --totals --fate dropped    how many items were dropped
  weir queue stats jobs --outcomes 10                 depth, deliveries, and the last outcomes";

#[derive(Debug, clap::Args)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, clap::Subcommand)]
enum QueueCommand {
    /// Put work into a queue; exits 0 if it is in, 1 if it was refused, 2 on an error
    Put(PutArgs),
    /// Take items out; exits 0 if there are some, 1 if there are none, 2 on an error
    Take(TakeArgs),
    /// Ack items whose work is done; exits 0 if workers had all of them, 1 if not, 2 on an error
    Ack(AckArgs),
    /// Nack items, so that they are delivered again; exits 0 if workers had all of them, 1 if not, 2 on an error
    Nack(NackArgs),
    /// Extend the visibility timeout of items; exits 0 if workers had all of them, 1 if not, 2 on an error
    Extend(ExtendArgs),
    /// Show items without taking them; exits 0 if there are some, 1 if there are none, 2 on an error
    Browse(operate::BrowseArgs),
    /// Bring dead letters back; exits 0 if all that nobody has came back, 1 if the queue is full, 2 on an error
    Redrive(operate::RedriveArgs),
    /// Remove all items of a queue; exits 0, or 2 on an error
    Purge(operate::PurgeArgs),
    /// Show what became of items, in JSON a line for each; exits 0 if there are some, 1 if there are none, 2 on an error
    Outcomes(outcomes::OutcomesArgs),
    /// Show the state of a queue
    Stats(StatsArgs),
}

/// The queue and the server of a command.
#[derive(Debug, clap::Args)]
struct WhichQueue {
    /// A queue of the server's configuration, or NAME:dead for its dead letters
    queue: String,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, clap::Args)]
struct PutArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// The work, each argument an item [default: one item, from stdin]
    payloads: Vec<String>,
    /// The id under which an item is accepted once; give one for each item, or none
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct TakeArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// Name of the worker
    #[arg(long, default_value = DEFAULT_CONSUMER)]
    consumer: String,
    /// The most items, 1 to 100
    #[arg(long, default_value_t = 1)]
    max_items: u32,
    /// Longest wait for the first item: 500ms, 20s, 5m [default: none]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    wait: Option<Duration>,
    /// Ack the items as soon as they are printed
    #[arg(long)]
    ack: bool,
}

/// Items that workers have.
#[derive(Debug, clap::Args)]
struct ItemsArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// The ids of the items
    #[arg(required = true)]
    ids: Vec<String>,
    /// The token of an item's delivery; give one for each id, or none
    #[arg(long = "token", value_name = "TOKEN")]
    tokens: Vec<u64>,
}

#[derive(Debug, clap::Args)]
struct AckArgs {
    #[command(flatten)]
    items: ItemsArgs,
    /// The outcome that the queue's archive keeps for them
    #[arg(long, default_value = "", hide_default_value = true)]
    outcome: String,
}

#[derive(Debug, clap::Args)]
struct NackArgs {
    #[command(flatten)]
    items: ItemsArgs,
    /// Delay until the next delivery: 500ms, 10s, 5m [default: none]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    delay: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct ExtendArgs {
    #[command(flatten)]
    items: ItemsArgs,
    /// Visibility timeout from now on: 500ms, 10s, 5m
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    visibility: Duration,
}

#[derive(Debug, clap::Args)]
struct StatsArgs {
    #[command(flatten)]
    queue: WhichQueue,
    /// Number of the newest outcomes to show, at most 100
    #[arg(long, default_value_t = 0)]
    outcomes: u32,
}

pub(crate) fn run(args: QueueArgs) -> ExitCode {
    let done = match args.command {
        QueueCommand::Put(args) => put(args),
        QueueCommand::Take(args) => take(args),
        QueueCommand::Ack(args) => ack(args),
        QueueCommand::Nack(args) => nack(args),
        QueueCommand::Extend(args) => extend(args),
        QueueCommand::Browse(args) => operate::browse(args),
        QueueCommand::Redrive(args) => operate::redrive(args),
        QueueCommand::Purge(args) => operate::purge(args),
        QueueCommand::Outcomes(args) => outcomes::run(args),
        QueueCommand::Stats(args) => stats(args),
    };
    answered(done)
}

fn put(args: PutArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    let payloads = match args.payloads.is_empty() {
        false => args.payloads.into_iter().map(String::into_bytes).collect(),
        true => vec![from_stdin()?],
    };
    if !args.ids.is_empty() && args.ids.len() != payloads.len() {
        bail!(
            "there are {} of --id and {} items: give one for each item, or none",
            args.ids.len(),
            payloads.len()
        );
    }
    let ids = args.ids.into_iter().chain(std::iter::repeat(String::new()));
    let items = payloads.into_iter().zip(ids).map(|(payload, id)| NewItem { payload, id }).collect();
    let request = EnqueueRequest { queue, items };
    let response = ask.server.answer(async |client| client.enqueue(request).await)?;
    ask.output.print("weir.v1.EnqueueResponse", &response, || put_text(&response))?;
    Ok(response.accepted)
}

fn from_stdin() -> Result<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        bail!("there is no work: give it as an argument, or on stdin");
    }
    let mut payload = Vec::new();
    stdin.lock().take(READ_AT_MOST).read_to_end(&mut payload).context("stdin cannot be read")?;
    Ok(payload)
}

fn take(args: TakeArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    let max_wait = span(args.wait)?;
    let timeout = ask.server.timeout.saturating_add(args.wait.unwrap_or_default());
    let request = TakeRequest {
        queue: queue.clone(),
        consumer: args.consumer,
        max_items: Some(args.max_items),
        max_wait,
    };
    let response = ask.server.answer_within(timeout, async |client| client.take(request).await)?;
    ask.output.print("weir.v1.TakeResponse", &response, || take_text(&response))?;
    if args.ack && !response.items.is_empty() {
        let (ids, tokens) = response.items.iter().map(|item| (item.id.clone(), item.token)).unzip();
        let request = AckRequest { queue, ids, tokens, outcome: String::new() };
        ask.server.answer(async |client| client.ack(request).await)?;
    }
    Ok(!response.items.is_empty())
}

fn ack(AckArgs { items, outcome }: AckArgs) -> Result<bool> {
    let ItemsArgs { queue: WhichQueue { queue, ask }, ids, tokens } = items;
    let request = AckRequest { queue, ids: ids.clone(), tokens, outcome };
    let response = ask.server.answer(async |client| client.ack(request).await)?;
    ask.output.print("weir.v1.AckResponse", &response, || {
        settled(&ids, &response.acked, "acked", response.depth)
    })?;
    Ok(response.acked.iter().all(|acked| *acked))
}

fn nack(NackArgs { items, delay }: NackArgs) -> Result<bool> {
    let ItemsArgs { queue: WhichQueue { queue, ask }, ids, tokens } = items;
    let request = NackRequest { queue, ids: ids.clone(), tokens, delay: span(delay)? };
    let response = ask.server.answer(async |client| client.nack(request).await)?;
    ask.output.print("weir.v1.NackResponse", &response, || {
        let mut text = settled(&ids, &response.nacked, "given back", response.depth);
        if response.dead_lettered > 0 {
            text += &format!("  {} went to the dead letters\n", response.dead_lettered);
        }
        text
    })?;
    Ok(response.nacked.iter().all(|nacked| *nacked))
}

fn extend(ExtendArgs { items, visibility }: ExtendArgs) -> Result<bool> {
    let ItemsArgs { queue: WhichQueue { queue, ask }, ids, tokens } = items;
    let visibility = span(Some(visibility))?;
    let request = ExtendRequest { queue, ids: ids.clone(), tokens, visibility };
    let response = ask.server.answer(async |client| client.extend(request).await)?;
    ask.output.print("weir.v1.ExtendResponse", &response, || {
        settled(&ids, &response.extended, "extended", response.depth)
    })?;
    Ok(response.extended.iter().all(|extended| *extended))
}

fn stats(args: StatsArgs) -> Result<bool> {
    let WhichQueue { queue, ask } = args.queue;
    let request = StatsRequest { queue, outcomes: args.outcomes };
    let response = ask.server.answer(async |client| client.queue_stats(request).await)?;
    ask.output.print("weir.v1.StatsResponse", &response, || stats_text(&response))?;
    Ok(true)
}

fn put_text(response: &EnqueueResponse) -> String {
    let EnqueueResponse { item_ids, depth, capacity, dropped, .. } = response;
    let first = match response.reason() {
        _ if response.accepted => "accepted",
        Reason::Never => "refused: the queue can never hold so much",
        _ => "refused: the queue is full",
    };
    let mut text = format!("{first}\n");
    for id in item_ids {
        text += &format!("  item {id}\n");
    }
    if *dropped > 0 {
        text += &format!("  {dropped} older items were dropped for them\n");
    }
    text + &format!("  {depth} of {capacity} places taken\n")
}

fn take_text(response: &TakeResponse) -> String {
    if response.items.is_empty() {
        return "nothing\n".to_owned();
    }
    let mut text = String::new();
    for item in &response.items {
        let why = match item.cause() {
            DeliveryCause::Unspecified | DeliveryCause::First => String::new(),
            DeliveryCause::Nack => format!(", after a nack of {}", item.previous_consumer),
            DeliveryCause::Visibility => {
                format!(", because {} did not ack it in time", item.previous_consumer)
            }
        };
        let origin =
            if item.origin.is_empty() { String::new() } else { format!(", in its queue {}", item.origin) };
        text += &format!("item {}{origin}, delivery {}{why}\n", item.id, item.deliveries);
        text += &format!("{}\n", String::from_utf8_lossy(&item.payload));
    }
    text
}

fn settled(ids: &[String], done: &[bool], word: &str, depth: u64) -> String {
    let mut text = String::new();
    for (id, done) in ids.iter().zip(done) {
        let what = if *done {
            word
        } else {
            "no worker has it under this token: it was acked before, never taken, or taken by another worker"
        };
        text += &format!("{id}  {what}\n");
    }
    text + &format!("  {depth} places taken\n")
}

fn stats_text(response: &StatsResponse) -> String {
    let StatsResponse { depth, capacity, bytes, max_bytes, unacked, dead_depth, .. } = response;
    let waiting = depth.saturating_sub(*unacked);
    let mut text =
        format!("{depth} of {capacity} places taken: {waiting} wait, {unacked} are with workers\n");
    text += &format!("  bytes           {bytes} of {max_bytes}\n");
    if let Some(age) = &response.oldest_age {
        text += &format!("  oldest          {}\n", render::duration(age));
    }
    text += &format!("  dead letters    {dead_depth}\n");
    text += &format!("  accepted        {}\n", response.accepted);
    let (nack, late) = (response.redelivered_nack, response.redelivered_visibility);
    text += &format!(
        "  delivered       {}, again after a nack {nack}, again because of no ack in time {late}\n",
        response.first_deliveries
    );
    text += &format!("  acked           {}\n", response.acked);
    text += &format!("  dead-lettered   {}\n", response.dead_lettered);
    let StatsResponse { aged_out, dropped, purged, redriven, .. } = response;
    let later = [("aged out", aged_out), ("dropped", dropped), ("purged", purged), ("redriven", redriven)];
    for (name, &items) in later {
        if items > 0 {
            text += &format!("  {name:<15} {items}\n");
        }
    }
    text += &format!("  outcomes kept   {}\n", response.outcomes);
    let now = outcomes::milliseconds();
    for outcome in &response.newest {
        text += &format!("    {}", outcomes::line(outcome, now));
    }
    text
}
