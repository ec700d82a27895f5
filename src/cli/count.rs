//! `weir count`: how much a limit was charged recently.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weir_proto::v1::CountRequest;

use super::subject::SubjectArgs;
use super::{done, duration, render};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir count api/orders bob --over 5m                 usage of bob in the last five minutes
  weir count api/orders bob --over 1h --limit hourly  of one of several limits";

#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Time span to count: 30s, 5m, 1h; at most the window of the limit
    #[arg(long, value_parser = duration, value_name = "SPAN")]
    over: Duration,
    /// The name of a `bucketed_window` limit [default: the only limit of the strategy]
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    limit: String,
}

pub(crate) fn run(args: CountArgs) -> ExitCode {
    done(count(args))
}

fn count(args: CountArgs) -> Result<()> {
    let SubjectArgs { resource, consumer, strategy, attributes, ask } = args.subject;
    let interval = Some(prost_types::Duration::try_from(args.over).context("--over is too long")?);
    let attributes = attributes.into_iter().collect();
    let request =
        CountRequest { resource, consumer, strategy, limit: args.limit, interval, attributes, inline: None };
    let response = ask.server.answer(async |client| client.count(request).await)?;
    ask.output.print("weir.v1.CountResponse", &response, || {
        let span = response.span.as_ref().map(render::duration).unwrap_or_default();
        format!("{} used in the last {span}\n", response.used)
    })
}
