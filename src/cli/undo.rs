//! `weir cancel`, `weir debit` and `weir reset`: changes of limits by hand.

use std::process::ExitCode;

use anyhow::Result;
use weir_proto::v1::{CancelReservationRequest, DebitRequest, ResetRequest};

use super::allow::shaping::{debited, states};
use super::costs::{CostArg, cost, plain, used};
use super::subject::SubjectArgs;
use super::{answered, render};

pub(super) const CANCEL_EXAMPLES: &str = "\
Examples:
  weir allow api/orders bob --reserve 5s --id job-17    reserve a call
  weir cancel api/orders bob --id job-17                give it back; exits 1 if it was not there, or has started";

pub(super) const DEBIT_EXAMPLES: &str = "\
Examples:
  weir debit api/orders bob --cost 250                  charge what was used, also above the limits
  weir debit api/orders bob --cost 250 --id job-17      once, however often it is repeated";

pub(super) const RESET_EXAMPLES: &str = "\
Examples:
  weir reset api/orders bob                             make the limits full that count by consumer
  weir reset api/orders bob --limit daily               only this one

The server must have `server.admin_service: true`.";

#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The id of the reservation
    #[arg(long)]
    id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DebitArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Units to charge to every limit [default: 1]; or a cost by its name, such as output=731; may be given several times
    #[arg(long = "cost", env = "WEIR_COST", value_parser = cost, value_name = "[NAME=]UNITS")]
    costs: Vec<CostArg>,
    /// Idempotency id
    #[arg(long, default_value = "", hide_default_value = true)]
    id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// A limit to reset; may be given several times [default: the limits that count by consumer]
    #[arg(long = "limit", value_name = "NAME")]
    limits: Vec<String>,
}

pub(crate) fn run_cancel(args: CancelArgs) -> ExitCode {
    answered(cancel(args))
}

pub(crate) fn run_debit(args: DebitArgs) -> ExitCode {
    answered(debit(args))
}

pub(crate) fn run_reset(args: ResetArgs) -> ExitCode {
    answered(reset(args))
}

fn cancel(args: CancelArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, ask } = args.subject;
    let (id, attributes) = (args.id, attributes.into_iter().collect());
    let request = CancelReservationRequest { resource, consumer, strategy, id, attributes, inline: None };
    let response = ask.server.answer(async |client| client.cancel(request).await)?;
    ask.output.print("weir.v1.CancelReservationResponse", &response, || {
        let first = match (response.cancelled, response.cancelled_before) {
            (true, _) => "cancelled",
            (false, true) => "cancelled before",
            (false, false) => "not cancelled: there is no reservation of this id, or its start has come",
        };
        format!("{first}\n{}", states(&response.limits))
    })?;
    Ok(response.cancelled || response.cancelled_before)
}

fn debit(args: DebitArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, ask } = args.subject;
    let (cost, costs) = (plain(&args.costs), used(&args.costs));
    let (id, attributes, inline) = (args.id, attributes.into_iter().collect(), None);
    let request = DebitRequest { resource, consumer, strategy, cost, costs, id, attributes, inline };
    let response = ask.server.answer(async |client| client.debit(request).await)?;
    ask.output.print(render::DEBIT_RESPONSE, &response, || debited(&response))?;
    Ok(true)
}

fn reset(args: ResetArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, ask } = args.subject;
    let (limits, attributes) = (args.limits, attributes.into_iter().collect());
    let request = ResetRequest { resource, consumer, strategy, limits, attributes };
    let response = ask.server.answer(async |client| client.reset(request).await)?;
    ask.output
        .print("weir.v1.ResetResponse", &response, || format!("reset\n{}", states(&response.limits)))?;
    Ok(true)
}
