//! `weir bans`: who is banned, and lifting bans.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{ConsumerBan, LiftBanRequest, LiftBanResponse, ListBansRequest, ListBansResponse};

use super::super::allow_output::AllowOutput;
use super::super::print;
use super::super::server_args::ServerArgs;
use super::super::terminal::clean_cell;
use super::explained;

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  weir bans                                                       who is banned, and until when
  weir bans --consumer bob
  weir bans lift bob --reason 'their client is fixed'             all bans of a consumer
  weir bans lift bob --strategy api --limit each --dry-run";

#[derive(Debug, clap::Args)]
pub(crate) struct BansArgs {
    #[command(subcommand)]
    command: Option<BansCommand>,
    /// Only those of this strategy
    #[arg(long, default_value = "", hide_default_value = true)]
    strategy: String,
    /// Only those of this consumer
    #[arg(long, default_value = "", hide_default_value = true)]
    consumer: String,
    #[command(flatten)]
    show: ShowBans,
}

#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant)] // a process has one of these
enum BansCommand {
    /// End the bans of a consumer, on all nodes
    Lift {
        /// The consumer
        consumer: String,
        /// Only those of this strategy
        #[arg(long, default_value = "", hide_default_value = true)]
        strategy: String,
        /// Only those of this limit
        #[arg(long)]
        limit: Option<String>,
        /// Only those from this resource
        #[arg(long)]
        resource: Option<String>,
        /// Why, for the audit
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
        /// Print which bans would be lifted, and lift none
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        show: ShowBans,
    },
}

#[derive(Debug, clap::Args)]
struct ShowBans {
    #[command(flatten)]
    server: ServerArgs,
    /// Text for people, or the proto-JSON of each response
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: AllowOutput,
}

pub(crate) fn run(args: BansArgs) -> ExitCode {
    let done = match args.command {
        None => list(&args.show, &args.strategy, &args.consumer),
        Some(BansCommand::Lift { consumer, strategy, limit, resource, reason, dry_run, show }) => {
            let is_meant = |ban: &ConsumerBan| {
                limit.as_ref().is_none_or(|limit| *limit == ban.limit)
                    && resource.as_ref().is_none_or(|resource| *resource == ban.resource)
            };
            lift(&show, (&strategy, &consumer), is_meant, &reason, dry_run)
        }
    };
    super::super::done(done.map_err(explained))
}

fn list(show: &ShowBans, strategy: &str, consumer: &str) -> Result<()> {
    let pages = show.server.answer(async |client| pages(client, strategy, consumer).await)?;
    let is_empty = pages.iter().all(|page| page.bans.is_empty());
    for page in &pages {
        show.output.print("weir.v1.ListBansResponse", page, || {
            page.bans.iter().map(|ban| format!("{}\n", text(ban))).collect()
        })?;
    }
    let incomplete = pages.last().map(|page| &*page.incomplete).unwrap_or_default();
    if show.output == AllowOutput::Text {
        let mut rest = if is_empty { "nobody is banned\n".to_owned() } else { String::new() };
        if !incomplete.is_empty() {
            let _ = writeln!(rest, "bans by other nodes may be missing: {}", clean_cell(incomplete));
        }
        print(&rest).context("the answer cannot be printed")?;
    }
    Ok(())
}

fn lift(
    show: &ShowBans,
    (strategy, consumer): (&str, &str),
    is_meant: impl Fn(&ConsumerBan) -> bool,
    reason: &str,
    dry_run: bool,
) -> Result<()> {
    let lifted = show.server.answer(async |client| {
        let pages = pages(client, strategy, consumer).await?;
        let mut lifted = Vec::new();
        for ban in pages.into_iter().flat_map(|page| page.bans).filter(|ban| is_meant(ban)) {
            let request = LiftBanRequest { ban: Some(ban), reason: reason.to_owned(), dry_run };
            lifted.push(client.lift_ban(request).await?);
        }
        Ok(lifted)
    })?;
    if lifted.is_empty() {
        bail!("{consumer} is not banned, or not so; `weir bans` shows all bans");
    }
    let verb = if dry_run { "dry run: it would be lifted" } else { "lifted" };
    for one in &lifted {
        let LiftBanResponse { ban } = one;
        let about = ban.as_ref().map(text).unwrap_or_default();
        show.output.print("weir.v1.LiftBanResponse", one, || format!("{verb}: {about}\n"))?;
    }
    Ok(())
}

/// All pages of the bans.
async fn pages(
    client: &mut Client,
    strategy: &str,
    consumer: &str,
) -> Result<Vec<ListBansResponse>, ClientError> {
    let mut pages: Vec<ListBansResponse> = Vec::new();
    loop {
        let page_token = pages.last().map(|page| page.next_page_token.clone()).unwrap_or_default();
        let (strategy, consumer) = (strategy.to_owned(), consumer.to_owned());
        let request = ListBansRequest { strategy, consumer, page_size: Some(1_000), page_token };
        let page = client.list_bans(request).await?;
        let is_last = page.next_page_token.is_empty();
        pages.push(page);
        if is_last {
            return Ok(pages);
        }
    }
}

fn text(ban: &ConsumerBan) -> String {
    let ConsumerBan { strategy, limit, consumer, resource, attributes, ends_at } = ban;
    let mut text = format!("{consumer} by {strategy}/{limit}");
    if !resource.is_empty() {
        let _ = write!(text, " on {resource}");
    }
    for (name, value) in attributes.iter().collect::<BTreeMap<_, _>>() {
        let _ = write!(text, ", {name}={value}");
    }
    if let Some(end) = ends_at {
        let _ = write!(text, ", until {end}");
    }
    clean_cell(&text)
}
