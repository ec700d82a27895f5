//! `weir lease`: acquires, renews, releases and lists permits of a running server.

mod operator;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use weir_config::Config;
use weir_proto::v1::{
    AcquireRequest, AcquireResponse, Reason, ReleaseLeasesRequest, ReleaseRequest, ReleaseResponse,
    RenewRequest, RenewResponse, WorkOutcome,
};

use super::server_args::{AskArgs, span};
use super::{EXAMPLE_CONSUMER, answered, attribute, duration, render};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir lease acquire exports/acme acme --id job-17            exits 0 if the permit is granted, 1 if not
  weir lease renew exports/acme acme --id job-17              exits 1 if the lease has ended
  weir lease release exports/acme acme --id job-17 --outcome dropped
  weir lease list exports exports/acme acme                   the leases that are held, by their ends
  weir lease release exports/acme acme                        all of them; exits 1 if there was none

The last two are for operators: the server must have `server.admin_service: true`.";

/// Returns the arguments of a command to try with the first strategy of permits.
pub(super) fn example(config: &Config) -> Option<String> {
    let first = config.rules.strategies().iter().find(|strategy| strategy.permits().is_some())?;
    Some(format!("lease acquire exports/example {EXAMPLE_CONSUMER} --id example --strategy {}", first.name()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct LeaseArgs {
    #[command(subcommand)]
    command: LeaseCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LeaseCommand {
    /// Take permits; exits 0 if they are granted, 1 if not, 2 on an error
    Acquire(AcquireArgs),
    /// Renew a lease; exits 0 if it is held, 1 if not, 2 on an error
    Renew(RenewArgs),
    /// Release the permits, of all leases if no id is given; exits 0 if one was held, 1 if not, 2 on an error
    Release(ReleaseArgs),
    /// List the leases that are held of a strategy, resource and consumer
    List(operator::ListArgs),
}

/// The lease and the server of a command.
#[derive(Debug, clap::Args)]
struct WhichLease {
    /// Resource, for example exports/acme
    resource: String,
    /// Consumer; optional where permits are not counted by consumer
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
    /// A further fact about the call, such as tier=batch; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, clap::Args)]
struct AcquireArgs {
    #[command(flatten)]
    lease: WhichLease,
    /// The id of the lease; each holder of one resource and consumer has another one
    #[arg(long)]
    id: String,
    /// Permits of the lease [default: 1]
    #[arg(long)]
    weight: Option<u64>,
    /// Duration of the lease without renewal [default: that of the strategy]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    ttl: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct RenewArgs {
    #[command(flatten)]
    lease: WhichLease,
    /// The id of the lease
    #[arg(long)]
    id: String,
    /// Duration of the lease from now on [default: that of the strategy]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    ttl: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct ReleaseArgs {
    #[command(flatten)]
    lease: WhichLease,
    /// The id of the lease. Without an id, all leases are released for their holders; with several, these
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// Outcome of the work of one lease; adaptive limits follow it
    #[arg(long, default_value = "success")]
    outcome: OutcomeArg,
    /// Duration of the work [default: the time since the lease was acquired]
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    rtt: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutcomeArg {
    /// The work was done
    Success,
    /// Do not use the duration of this work
    Ignored,
    /// The work failed for lack of capacity
    Dropped,
}

pub(crate) fn run(args: LeaseArgs) -> ExitCode {
    let held = match args.command {
        LeaseCommand::Acquire(args) => acquire(args),
        LeaseCommand::Renew(args) => renew(args),
        LeaseCommand::Release(args) => release(args),
        LeaseCommand::List(args) => operator::list(args),
    };
    answered(held)
}

/// Acquires permits, prints the answer, and returns true if they are granted.
fn acquire(args: AcquireArgs) -> Result<bool> {
    let WhichLease { resource, consumer, strategy, attributes, ask } = args.lease;
    let (weight, ttl, attributes) = (args.weight, span(args.ttl)?, attributes.into_iter().collect());
    let id = args.id;
    let request = AcquireRequest { resource, consumer, strategy, id, weight, ttl, attributes };
    let response = ask.server.answer(async |client| client.acquire(request).await)?;
    ask.output.print("weir.v1.AcquireResponse", &response, || acquired(&response))?;
    Ok(response.allowed)
}

fn renew(args: RenewArgs) -> Result<bool> {
    let WhichLease { resource, consumer, strategy, attributes, ask } = args.lease;
    let (ttl, attributes, id) = (span(args.ttl)?, attributes.into_iter().collect(), args.id);
    let request = RenewRequest { resource, consumer, strategy, id, ttl, attributes };
    let response = ask.server.answer(async |client| client.renew(request).await)?;
    ask.output.print("weir.v1.RenewResponse", &response, || {
        let RenewResponse { held, expires_after, limit, remaining, .. } = response;
        let ends = expires_after.map(|span| format!(", the lease ends in {}", render::duration(&span)));
        format!("{}\n  {}{}\n", state(held), free(remaining, limit), ends.unwrap_or_default())
    })?;
    Ok(response.held)
}

fn release(args: ReleaseArgs) -> Result<bool> {
    let WhichLease { resource, consumer, strategy, attributes, ask } = args.lease;
    let [id] = &args.ids[..] else {
        if args.outcome != OutcomeArg::Success || args.rtt.is_some() {
            bail!("--outcome and --rtt are about one lease; name one --id");
        }
        let (ids, attributes) = (args.ids, attributes.into_iter().collect());
        let request = ReleaseLeasesRequest { resource, consumer, strategy, attributes, ids, all: false };
        return operator::release(request, &ask);
    };
    let outcome = match args.outcome {
        OutcomeArg::Success => WorkOutcome::Success,
        OutcomeArg::Ignored => WorkOutcome::Ignored,
        OutcomeArg::Dropped => WorkOutcome::Dropped,
    };
    let (rtt, attributes) = (span(args.rtt)?, attributes.into_iter().collect());
    let (outcome, id) = (outcome.into(), id.clone());
    let request = ReleaseRequest { resource, consumer, strategy, id, outcome, rtt, attributes };
    let response = ask.server.answer(async |client| client.release(request).await)?;
    ask.output.print("weir.v1.ReleaseResponse", &response, || {
        let ReleaseResponse { held, limit, remaining, .. } = response;
        let first = if held { "released" } else { state(false) };
        format!("{first}\n  {}\n", free(remaining, limit))
    })?;
    Ok(response.held)
}

fn acquired(response: &AcquireResponse) -> String {
    let mut text = String::from(if response.allowed { "allowed" } else { "denied" });
    if !response.message.is_empty() {
        text += &format!(": {}", response.message);
    }
    text.push('\n');
    if response.reason() == Reason::AllowList {
        text += "  the consumer is on the allow list: there is no lease\n";
    }
    if response.degraded {
        text +=
            "  degraded: the store failed, and the strategy's failure policy answered; there is no lease\n";
    }
    if let (Some(remaining), Some(limit)) = (response.remaining, response.limit) {
        text += &format!("  {}", free(remaining, limit));
        if let Some(span) = &response.expires_after {
            text += &format!(", the lease ends in {}", render::duration(span));
        }
        if let Some(span) = &response.lease_expiry_bound {
            text += &format!(", free in {} if nobody renews", render::duration(span));
        }
        text.push('\n');
    }
    text
}

const fn state(held: bool) -> &'static str {
    if held { "held" } else { "not held: the lease has ended, was released, or never was" }
}

fn free(remaining: u64, limit: u64) -> String {
    format!("{remaining} of {limit} permits free")
}
