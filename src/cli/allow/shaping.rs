//! `weir allow --reserve`, `--debit`, `--refund` and `--wait`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weir_proto::v1::{
    DebitRequest, DebitResponse, LimitState, RefundRequest, RefundResponse, ReserveRequest,
};

use super::AllowArgs;
use crate::cli::allow_output::AllowOutput;
use crate::cli::costs::{plain, used};
use crate::cli::{print, render};

/// Reserves a call. Returns true if it is admitted.
pub(super) fn reserve(args: AllowArgs, max_wait: Duration) -> Result<bool> {
    // A new hasher has random keys.
    let random = || format!("{:016x}", RandomState::new().build_hasher().finish());
    let id = if args.id.is_empty() { random() } else { args.id };
    let request = ReserveRequest {
        resource: args.resource,
        consumer: args.consumer,
        strategy: args.strategy,
        cost: plain(&args.costs),
        max_wait: Some(max_wait.try_into().context("--reserve is too long")?),
        id,
        attributes: args.attributes.into_iter().collect(),
        inline: args.inline,
    };
    let name = request.id.clone();
    let response = args.ask.server.answer(async |client| client.reserve(request).await)?;
    let decision = response.decision.clone().unwrap_or_default();
    args.ask.output.print(render::RESERVE_RESPONSE, &response, || match decision.allowed {
        true => {
            let wait = response.wait.as_ref().map(render::duration).unwrap_or_default();
            let known = if response.applied { "" } else { ", as it was answered before" };
            format!("{}  starts in {wait}, reserved as {name}{known}\n", render::text(&decision))
        }
        false => render::text(&decision),
    })?;
    if args.wait && decision.allowed {
        wait(response.wait.as_ref(), args.ask.output)?;
    }
    Ok(decision.allowed)
}

/// Charges past usage, which is never denied.
pub(super) fn debit(args: AllowArgs) -> Result<bool> {
    let request = DebitRequest {
        resource: args.resource,
        consumer: args.consumer,
        strategy: args.strategy,
        cost: plain(&args.costs),
        id: args.id,
        attributes: args.attributes.into_iter().collect(),
        inline: args.inline,
        costs: used(&args.costs),
    };
    let response = args.ask.server.answer(async |client| client.debit(request).await)?;
    args.ask.output.print(render::DEBIT_RESPONSE, &response, || debited(&response))?;
    Ok(true)
}

pub(in crate::cli) fn debited(response: &DebitResponse) -> String {
    let first = match (response.applied, response.fitted) {
        (false, _) => "known: a debit with this id was made before, and nothing is charged again",
        (true, true) => "charged",
        (true, false) => "charged: the cost did not fit, and nothing passes until the debt has drained",
    };
    let limits = response.limits.iter().map(|limit| {
        let rest = render::remaining(limit.remaining, limit.limit, limit.reset_after.as_ref());
        format!("    {}  charged {}, {rest}", limit.name, limit.charged)
    });
    format!("{first}\n{}", limits.collect::<String>())
}

/// Refunds a cost, which is never denied.
pub(super) fn refund(args: AllowArgs) -> Result<bool> {
    let request = RefundRequest {
        resource: args.resource,
        consumer: args.consumer,
        strategy: args.strategy,
        cost: plain(&args.costs),
        limits: Vec::new(),
        id: args.id,
        attributes: args.attributes.into_iter().collect(),
        inline: args.inline,
    };
    let response = args.ask.server.answer(async |client| client.refund(request).await)?;
    args.ask.output.print(render::REFUND_RESPONSE, &response, || refunded(&response))?;
    Ok(true)
}

fn refunded(response: &RefundResponse) -> String {
    let known = "known: a refund with this id was made before, and nothing was given back";
    let first = if response.applied { "given back" } else { known };
    format!("{first}\n{}", states(&response.limits))
}

/// Formats limits after a change by hand, a line each.
pub(in crate::cli) fn states(limits: &[LimitState]) -> String {
    let line = |limit: &LimitState| {
        let rest = render::remaining(limit.remaining, limit.limit, limit.reset_after.as_ref());
        format!("    {}  {rest}", limit.name)
    };
    limits.iter().map(line).collect()
}

/// Announces the wait and sleeps until the call may start. With JSON output the announcement goes to stderr, so that
/// stdout is one document.
pub(super) fn wait(span: Option<&prost_types::Duration>, output: AllowOutput) -> Result<()> {
    let Some(span) = span.filter(|span| span.seconds > 0 || span.nanos > 0) else { return Ok(()) };
    let length = Duration::try_from(*span).unwrap_or_default();
    let announce = |text: &str| match output {
        AllowOutput::Text => print(text),
        AllowOutput::Json => std::io::stderr().write_all(text.as_bytes()),
    };
    announce(&format!("  waiting {} until the call starts\n", render::duration(span)))
        .context("the wait cannot be announced")?;
    std::thread::sleep(length);
    announce("  the call starts\n").context("the start cannot be announced")
}
