//! `weir settle`: what a held call has really used.

use std::process::ExitCode;

use anyhow::Result;
use weir_proto::v1::{SettleOutcome, SettleRequest, SettleResponse};

use super::costs::{CostArg, cost, plain, used};
use super::subject::SubjectArgs;
use super::{done, render};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir allow chat bob --cost output=4096,256 --hold 2m --id x   ask, and hold what is granted
  weir settle chat bob --id x --cost output=731                 charge what was used, and give back the rest
  weir settle chat bob --id x --cost output=0                   the call failed: give back all of it";

#[derive(Debug, clap::Args)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The id of the held call
    #[arg(long)]
    id: String,
    /// Units that were used: a number, or NAME=UNITS; repeatable [default: the granted units]
    #[arg(long = "cost", value_parser = cost, value_name = "[NAME=]UNITS")]
    costs: Vec<CostArg>,
}

pub(crate) fn run(args: SettleArgs) -> ExitCode {
    done(settle(args))
}

fn settle(args: SettleArgs) -> Result<()> {
    let SubjectArgs { resource, consumer, strategy, attributes, ask } = args.subject;
    let (costs, cost, attributes) = (used(&args.costs), plain(&args.costs), attributes.into_iter().collect());
    let request = SettleRequest { resource, consumer, strategy, id: args.id, costs, cost, attributes };
    let response = ask.server.answer(async |client| client.settle(request).await)?;
    ask.output.print("weir.v1.SettleResponse", &response, || text(&response))
}

fn text(response: &SettleResponse) -> String {
    let first = match response.outcome() {
        _ if response.limits.is_empty() => "not charged: the consumer is on the allow list",
        SettleOutcome::Settled => "settled",
        SettleOutcome::Late => "settled late: the hold had ended",
        SettleOutcome::Unknown => "charged in full: no hold of this id is known",
        SettleOutcome::Unspecified => "settled, in a way that this client does not know",
    };
    let known = if response.applied || response.limits.is_empty() {
        ""
    } else {
        ", before: nothing is charged again"
    };
    let limits = response.limits.iter().map(|limit| {
        let rest = render::remaining(limit.remaining, limit.limit, limit.reset_after.as_ref());
        format!("    {}  used {}, charged {}, {rest}", limit.name, limit.used, limit.charged)
    });
    format!("{first}{known}\n{}", limits.collect::<String>())
}
