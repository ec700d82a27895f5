//! `weir allow`: one question to a running server.

#[cfg(feature = "envoy")]
mod envoy;
mod inline;
pub(super) mod shaping;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weir_proto::v1::{InlineLimit, ShouldAllowRequest};

use super::costs::{CostArg, cost, named, plain};
use super::server_args::AskArgs;
use super::{answered, attribute, duration, render};

#[derive(Debug, clap::Args)]
pub(crate) struct AllowArgs {
    /// Resource, for example zewtopia.com/tigerfeeding; with --envoy, the domain
    resource: String,
    /// Consumer; optional where no limit counts by consumer. With --envoy, the entries of a
    /// descriptor: KEY=VALUE,KEY=VALUE
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
    /// A limit that the request brings along, instead of a strategy: api:token_bucket:10/1s:20 (the last number is the
    /// burst), or fixed_window, sliding_window or sliding_log, such as api:sliding_log:100/1m. The server must have
    /// `server.inline_limits: true`
    #[arg(long, value_parser = inline::limit, value_name = "NAME:ALGORITHM:RATE[:BURST]",
          conflicts_with_all = ["strategy", "reserve", "debit", "refund"])]
    inline: Option<InlineLimit>,
    /// A further fact about the call, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    /// Units to charge, 0 checks without charging; or a cost by its name, and the least to grant instead:
    /// output=4096,256. May be given several times
    #[arg(long = "cost", env = "WEIR_COST", value_parser = cost, value_name = "[NAME=]UNITS[,LEAST]")]
    costs: Vec<CostArg>,
    /// Hold what is granted for this time, until `weir settle` with the same id
    #[arg(long, value_parser = duration, value_name = "SPAN",
          conflicts_with_all = ["peek", "at_most", "reserve", "debit", "refund"])]
    hold: Option<Duration>,
    /// Check without charging
    #[arg(long)]
    peek: bool,
    /// Show headers for an HTTP answer
    #[arg(long)]
    headers: bool,
    /// Charge as much of the cost as fits into the limits
    #[arg(long, conflicts_with_all = ["peek"])]
    at_most: bool,
    /// Reserve a call that may start within this time: 500ms, 5s, 1m
    #[arg(long, value_parser = duration, value_name = "SPAN", conflicts_with_all = ["peek", "at_most"])]
    reserve: Option<Duration>,
    /// Charge a cost that was used already, even above the limits
    #[arg(long, conflicts_with_all = ["peek", "at_most", "reserve"])]
    debit: bool,
    /// Refund a cost that was charged
    #[arg(long, conflicts_with_all = ["peek", "at_most", "reserve", "debit"])]
    refund: bool,
    /// Idempotency id [default: none; of a reservation a random one]
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with_all = ["peek"])]
    id: String,
    /// If the call must wait for its turn, report the wait and sleep until then
    #[arg(long, conflicts_with_all = ["peek", "debit", "refund"])]
    wait: bool,
    #[cfg(feature = "envoy")]
    #[command(flatten)]
    of_envoy: envoy::AskEnvoyArgs,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn run(args: AllowArgs) -> ExitCode {
    answered(ask(args))
}

/// Asks, prints the answer, and returns true if the call is allowed.
fn ask(args: AllowArgs) -> Result<bool> {
    #[cfg(feature = "envoy")]
    if args.of_envoy.is_on() {
        return envoy::ask(args);
    }
    if args.debit {
        return shaping::debit(args);
    }
    if args.refund {
        return shaping::refund(args);
    }
    if let Some(max_wait) = args.reserve {
        return shaping::reserve(args, max_wait);
    }
    let request = ShouldAllowRequest {
        resource: args.resource,
        consumer: args.consumer,
        strategy: args.strategy,
        cost: plain(&args.costs),
        costs: named(&args.costs),
        hold_for: args.hold.map(TryInto::try_into).transpose().context("--hold is too long")?,
        peek: args.peek,
        attributes: args.attributes.into_iter().collect(),
        headers: args.headers,
        at_most: args.at_most,
        id: args.id,
        inline: args.inline,
    };
    let response = args.ask.server.answer(async |client| client.should_allow(request).await)?;
    args.ask.output.print(render::RESPONSE, &response, || render::text(&response))?;
    if args.wait && response.allowed {
        shaping::wait(response.wait.as_ref(), args.ask.output)?;
    }
    Ok(response.allowed)
}
