//! `weir control`: changes limits, lists and overrides of a running server.

pub(super) mod bans;
mod many;
pub(super) mod reload;
mod text;

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::ValueEnum;
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{
    AccessList, ChangeOptions, ControlAccess, ControlOverride, ControlStrategy, DeleteEntryRequest,
    EntryChange, EntryVersion, FindChangeRequest, ListChangesRequest, PutAccessRequest, PutOverrideRequest,
    PutStrategyRequest, StateChange, delete_entry_request,
};

use super::server_args::AskArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir control put-override api/orders bob --limit each=50/1s --for 1h --reason 'they asked'
  weir control put-access deny 'bot-*' --reason 'an attack'       block consumers; `allow` lets them through
  weir control put-strategy api --limit each=5/1s --reason incident --dry-run
  weir control put-many changes.jsonl --reason 'new rates'        thousands of overrides; `applied ID` finds a call
  weir control delete strategy api --reset                        the files' numbers again, and all limits full
  weir control list                                               what is in force, and what waits
  weir control history                                            who changed what, and why";

#[derive(Debug, clap::Args)]
pub(crate) struct ControlArgs {
    #[command(subcommand)]
    command: ControlCommand,
}

#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant)] // a process has one of these
enum ControlCommand {
    /// Give some consumers other numbers
    PutOverride {
        #[command(flatten)]
        which: WhichOverride,
        #[command(flatten)]
        numbers: NumbersArgs,
        #[command(flatten)]
        change: LastingChangeArgs,
    },
    /// Deny or allow consumers
    PutAccess {
        #[command(flatten)]
        which: WhichAccess,
        /// Do it also for a pattern that fits nearly everybody: fewer than three characters before the *
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        change: LastingChangeArgs,
    },
    /// Give a strategy other numbers
    PutStrategy {
        /// The strategy
        name: String,
        #[command(flatten)]
        numbers: NumbersArgs,
        /// Reset all its limits on all nodes, instead of keeping existing usage
        #[arg(long)]
        reset: bool,
        #[command(flatten)]
        change: LastingChangeArgs,
    },
    /// Apply the changes of a file, in calls whose changes are applied together or not at all
    PutMany(many::PutManyArgs),
    /// Show whether a change was made, by its id
    Applied {
        /// The id of the change: 16 hexadecimal digits
        change: String,
        #[command(flatten)]
        show: AskArgs,
    },
    /// Remove an entry, so that the files apply again
    Delete {
        #[command(subcommand)]
        what: DeleteCommand,
    },
    /// Show the entries in force, and those that wait
    List(AskArgs),
    /// Show the entries, and then each change until it is interrupted
    Watch(AskArgs),
    /// Show the last changes that the node knows, the last first
    History {
        /// At most so many
        #[arg(long, default_value_t = 20)]
        last: u32,
        #[command(flatten)]
        show: AskArgs,
    },
}

#[derive(Debug, clap::Subcommand)]
enum DeleteCommand {
    /// The override of a consumer
    Override {
        #[command(flatten)]
        which: WhichOverride,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// An entry of an access list
    Access {
        #[command(flatten)]
        which: WhichAccess,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// The numbers of a strategy
    Strategy {
        /// The strategy
        name: String,
        /// Reset all its limits on all nodes, instead of keeping existing usage
        #[arg(long)]
        reset: bool,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

#[derive(Debug, clap::Args)]
struct WhichOverride {
    /// The resource, or the beginning of many and a final *
    resource: String,
    /// The consumer, or the beginning of many and a final *
    consumer: String,
    /// The strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
}

#[derive(Debug, clap::Args)]
struct WhichAccess {
    /// The list
    list: ListArg,
    /// The consumer, or the beginning of many and a final *
    consumer: String,
    /// Only for this strategy [default: for all]
    #[arg(long, default_value = "", hide_default_value = true)]
    strategy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListArg {
    /// Deny the consumers
    Deny,
    /// Allow the consumers without a charge
    Allow,
}

#[derive(Debug, clap::Args)]
struct NumbersArgs {
    /// A limit and its numbers: each=50/1s, each=50, or keys of its algorithm, such as 'each={ rate: 50/1s, burst: 100 }';
    /// may be given several times. The only limit of a strategy with permits is called `concurrency`
    #[arg(long = "limit", required = true, value_parser = limit, value_name = "NAME=NUMBERS")]
    limits: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
struct LastingChangeArgs {
    /// Lifetime of the entry: 10m, 1h, 7d [default: until it is deleted]
    #[arg(long = "for", value_parser = lasting, value_name = "SPAN")]
    lasts: Option<prost_types::Duration>,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// Why, for the audit
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Only if the entry is at this version, as `list` shows it; 0:0 if there must be none
    #[arg(long, value_parser = version, value_name = "VERSION:CHANGE")]
    expect: Option<EntryVersion>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    show: AskArgs,
}

pub(crate) fn run(args: ControlArgs) -> ExitCode {
    let done = match args.command {
        ControlCommand::PutOverride { which, numbers, change } => put_override(which, numbers, change),
        ControlCommand::PutAccess { which, yes, change } => put_access(which, yes, change),
        ControlCommand::PutStrategy { name, numbers, reset, change } => {
            put_strategy((name, numbers, reset), change)
        }
        ControlCommand::PutMany(args) => many::put_many(args),
        ControlCommand::Applied { change, show } => applied(change, &show),
        ControlCommand::Delete { what } => delete(what),
        ControlCommand::List(show) => list(&show),
        ControlCommand::Watch(show) => watch(&show),
        ControlCommand::History { last, show } => history(last, &show),
    };
    super::done(done.map_err(explained))
}

/// Says which setting is missing.
fn explained(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(ClientError::Refused { code: "UNIMPLEMENTED", .. }) => error
            .context("the server does not serve ControlService: set `server.control: true` and restart it"),
        _ => error,
    }
}

fn put_override(which: WhichOverride, numbers: NumbersArgs, put: LastingChangeArgs) -> Result<()> {
    let one = ControlOverride { limits: numbers.limits.into_iter().collect(), ..which.message() };
    let (options, show) = put.options();
    let request = PutOverrideRequest { r#override: Some(one), options: Some(options.clone()) };
    let response = show.server.answer(async |client| client.put_override(request).await)?;
    changed(&response, &options, &show)
}

/// Characters before the * of a pattern that is put without being asked for.
const LEAST_PREFIX: usize = 3;

fn put_access(which: WhichAccess, yes: bool, put: LastingChangeArgs) -> Result<()> {
    let prefix = which.consumer.strip_suffix('*');
    if prefix.is_some_and(|prefix| prefix.chars().count() < LEAST_PREFIX) && !yes && !put.change.dry_run {
        bail!(
            "{:?} fits every consumer, or nearly so; --dry-run shows the entry, and --yes puts it",
            which.consumer
        );
    }
    let (options, show) = put.options();
    let request = PutAccessRequest { access: Some(which.message()), options: Some(options.clone()) };
    let response = show.server.answer(async |client| client.put_access(request).await)?;
    changed(&response, &options, &show)
}

fn put_strategy(
    (strategy, numbers, reset): (String, NumbersArgs, bool),
    put: LastingChangeArgs,
) -> Result<()> {
    let limits = numbers.limits.into_iter().collect();
    let one = ControlStrategy { strategy, limits, state: state(reset) };
    let (options, show) = put.options();
    let request = PutStrategyRequest { strategy: Some(one), options: Some(options.clone()) };
    let response = show.server.answer(async |client| client.put_strategy(request).await)?;
    changed(&response, &options, &show)
}

fn delete(what: DeleteCommand) -> Result<()> {
    use delete_entry_request::Entry;
    let (entry, change) = match what {
        DeleteCommand::Override { which, change } => (Entry::Override(which.message()), change),
        DeleteCommand::Access { which, change } => (Entry::Access(which.message()), change),
        DeleteCommand::Strategy { name, reset, change } => {
            let one = ControlStrategy { strategy: name, limits: HashMap::new(), state: state(reset) };
            (Entry::Strategy(one), change)
        }
    };
    let (options, show) = change.options(None);
    let request = DeleteEntryRequest { entry: Some(entry), options: Some(options.clone()) };
    let response = show.server.answer(async |client| client.delete_entry(request).await)?;
    changed(&response, &options, &show)
}

fn changed(response: &EntryChange, options: &ChangeOptions, show: &AskArgs) -> Result<()> {
    show.output.print("weir.v1.EntryChange", response, || text::change(response, options.dry_run))
}

fn applied(change: String, show: &AskArgs) -> Result<()> {
    let request = FindChangeRequest { change };
    let response = show.server.answer(async |client| client.find_change(request).await)?;
    show.output.print("weir.v1.FindChangeResponse", &response, || text::found(&response))
}

fn list(show: &AskArgs) -> Result<()> {
    let response = show.server.answer(async |client| client.list_entries().await)?;
    show.output.print("weir.v1.ListEntriesResponse", &response, || text::list(&response))
}

fn history(last: u32, show: &AskArgs) -> Result<()> {
    let request = ListChangesRequest { limit: Some(last) };
    let response = show.server.answer(async |client| client.control_history(request).await)?;
    show.output.print("weir.v1.ListChangesResponse", &response, || text::history(&response))
}

/// Prints entries until the server ends the watch.
fn watch(show: &AskArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut client = show.server.connect().await?;
        let mut watch = client.watch_entries().await?;
        while let Some(entry) = Client::next_entry(&mut watch).await? {
            show.output.print("weir.v1.ControlEntry", &entry, || text::entry(&entry))?;
        }
        bail!("the server has ended the watch: it shuts down")
    })
}

impl WhichOverride {
    fn message(self) -> ControlOverride {
        let Self { resource, consumer, strategy } = self;
        ControlOverride { consumer, resource, strategy, limits: HashMap::new() }
    }
}

impl WhichAccess {
    fn message(self) -> ControlAccess {
        let list = match self.list {
            ListArg::Deny => AccessList::Deny,
            ListArg::Allow => AccessList::Allow,
        };
        ControlAccess { list: list.into(), consumer: self.consumer, strategy: self.strategy }
    }
}

impl LastingChangeArgs {
    fn options(self) -> (ChangeOptions, AskArgs) {
        self.change.options(self.lasts)
    }
}

impl ChangeArgs {
    fn options(self, expires_after: Option<prost_types::Duration>) -> (ChangeOptions, AskArgs) {
        let Self { reason, expect, dry_run, show } = self;
        let change = String::new();
        (ChangeOptions { expires_after, reason, expect_version: expect, dry_run, change }, show)
    }
}

fn state(reset: bool) -> i32 {
    if reset { StateChange::Reset.into() } else { StateChange::AsIs.into() }
}

/// `NAME=NUMBERS`.
fn limit(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, numbers)) if !name.is_empty() && !numbers.is_empty() => {
            Ok((name.to_owned(), numbers.to_owned()))
        }
        _ => Err("expected NAME=NUMBERS, such as each=50/1s".to_owned()),
    }
}

/// A duration as the configuration writes it.
fn lasting(text: &str) -> Result<prost_types::Duration, String> {
    let span = weir_config::span(text)?;
    let seconds = i64::try_from(span.0 / 1_000_000).map_err(|_| "it is too long".to_owned())?;
    let nanos = i32::try_from(span.0 % 1_000_000 * 1_000).map_err(|_| "it is too long".to_owned())?;
    Ok(prost_types::Duration { seconds, nanos })
}

/// `VERSION:CHANGE`, as a list shows it: the change in hexadecimal digits.
fn version(text: &str) -> Result<EntryVersion, String> {
    let read = text.split_once(':').and_then(|(version, change)| {
        let is_id = (1..=16).contains(&change.len()) && change.bytes().all(|byte| byte.is_ascii_hexdigit());
        let change = if change == "0" { String::new() } else { change.to_owned() };
        Some(EntryVersion { version: version.parse().ok()?, change }).filter(|_| is_id)
    });
    read.ok_or_else(|| "expected VERSION:CHANGE as `weir control list` shows it, or 0:0".to_owned())
}
