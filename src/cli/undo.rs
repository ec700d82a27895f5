//! `weir cancel`, `weir debit` and `weir reset`: changes of limits by hand.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use weir_proto::v1::{CancelReservationRequest, DebitRequest, LimitState, ResetRequest};

use super::allow::shaping::debited;
use super::allow_output::AllowOutput;
use super::costs::{CostArg, cost, plain, used};
use super::subject::SubjectArgs;
use super::{fail, print, render};

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

/// Exit code if there was nothing to cancel.
const NOTHING: u8 = 1;
const FAILED: u8 = 2;

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
    ended(cancel(args))
}

pub(crate) fn run_debit(args: DebitArgs) -> ExitCode {
    ended(debit(args))
}

pub(crate) fn run_reset(args: ResetArgs) -> ExitCode {
    ended(reset(args))
}

fn ended(done: Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOTHING),
        Err(error) => fail(&format!("{error:#}"), FAILED),
    }
}

fn cancel(args: CancelArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, server, output } = args.subject;
    let (id, attributes) = (args.id, attributes.into_iter().collect());
    let request = CancelReservationRequest { resource, consumer, strategy, id, attributes, inline: None };
    let response = server.answer(async |client| client.cancel(request).await)?;
    let text = match output {
        AllowOutput::Text => {
            let first = match (response.cancelled, response.cancelled_before) {
                (true, _) => "cancelled",
                (false, true) => "cancelled before",
                (false, false) => "not cancelled: there is no reservation of this id, or its start has come",
            };
            format!("{first}\n{}", states(&response.limits))
        }
        AllowOutput::Json => render::json("weir.v1.CancelReservationResponse", &response)?,
    };
    print(&text).context("the answer cannot be printed")?;
    Ok(response.cancelled || response.cancelled_before)
}

fn debit(args: DebitArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, server, output } = args.subject;
    let (cost, costs) = (plain(&args.costs), used(&args.costs));
    let (id, attributes, inline) = (args.id, attributes.into_iter().collect(), None);
    let request = DebitRequest { resource, consumer, strategy, cost, costs, id, attributes, inline };
    let response = server.answer(async |client| client.debit(request).await)?;
    let text = match output {
        AllowOutput::Text => debited(&response),
        AllowOutput::Json => render::json(render::DEBIT_RESPONSE, &response)?,
    };
    print(&text).context("the answer cannot be printed")?;
    Ok(true)
}

fn reset(args: ResetArgs) -> Result<bool> {
    let SubjectArgs { resource, consumer, strategy, attributes, server, output } = args.subject;
    let (limits, attributes) = (args.limits, attributes.into_iter().collect());
    let request = ResetRequest { resource, consumer, strategy, limits, attributes };
    let response = server.answer(async |client| client.reset(request).await)?;
    let text = match output {
        AllowOutput::Text => format!("reset\n{}", states(&response.limits)),
        AllowOutput::Json => render::json("weir.v1.ResetResponse", &response)?,
    };
    print(&text).context("the answer cannot be printed")?;
    Ok(true)
}

fn states(limits: &[LimitState]) -> String {
    let line = |limit: &LimitState| {
        let full = limit.reset_after.as_ref().map(render::duration).unwrap_or_default();
        format!(
            "    {}  {} of {} remaining, full again in {full}\n",
            limit.name, limit.remaining, limit.limit
        )
    };
    limits.iter().map(line).collect()
}
