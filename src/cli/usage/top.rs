//! `weir top`: current decision rates and top consumers; live in a terminal, once for a pipe.

mod columns;
mod costs;
mod drawn_table;
mod plain;
mod screen;
mod view;

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use weir_load::client::Client;
use weir_proto::v1::{ConsumerOutcome, GetUsageRequest, TopConsumersRequest, TopConsumersResponse};

use self::view::{SPAN, UsageView};
use super::super::server_args::{ServerArgs, explained};
use super::super::{done, duration, print};

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  weir top                               what is decided now, until q is pressed
  weir top --once                        the same once, as text
  weir top --strategy api --consumers 1h";

/// Number of requested consumers; a screen shows as many as fit.
const CONSUMERS: u32 = 50;

#[derive(Debug, clap::Args)]
// A page needs several answers, and each is collected from all nodes.
#[command(mut_arg("timeout", |timeout| timeout.default_value("5s")))]
pub(crate) struct TopArgs {
    /// Only decisions under this strategy
    #[arg(long, env = "WEIR_STRATEGY")]
    strategy: Option<String>,
    /// Since when consumers are counted
    #[arg(long, value_enum, default_value = "1m", value_name = "1m or 1h")]
    consumers: WindowArg,
    /// Print one page of text and end. Without a terminal this is what happens anyway
    #[arg(long)]
    once: bool,
    /// Refresh interval of the screen
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "SPAN")]
    every: Duration,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WindowArg {
    /// The last minute
    #[value(name = "1m")]
    Minute,
    /// The last hour
    #[value(name = "1h")]
    Hour,
}

pub(crate) fn run(args: TopArgs) -> ExitCode {
    done(show(args))
}

fn show(args: TopArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(args.server.connect())?;
    let live = !args.once && stdout().is_terminal();
    let every = args.every;
    let mut source = UsageSource { client, strategy: args.strategy, window: args.consumers };
    let view = runtime.block_on(source.poll())?;
    if live {
        return screen::run(view, args.consumers, every, |window| {
            source.window = window;
            runtime.block_on(source.poll())
        });
    }
    print(&plain::page(&view)).context("the answer cannot be printed")
}

/// The client that fetches pages.
struct UsageSource {
    client: Client,
    strategy: Option<String>,
    window: WindowArg,
}

impl UsageSource {
    async fn poll(&mut self) -> Result<UsageView> {
        // Times are by the server's clock, so its time is requested first.
        let now = GetUsageRequest { strategy: self.strategy.clone(), ..GetUsageRequest::default() };
        let end = self
            .client
            .get_usage(now.clone())
            .await
            .map_err(explained)?
            .to
            .context("the answer has no time")?;
        let from = prost_types::Timestamp { seconds: end.seconds.saturating_sub(SPAN + 1), nanos: 0 };
        let step = Some(prost_types::Duration { seconds: 1, nanos: 0 });
        let minute = GetUsageRequest { from: Some(from), to: Some(end), step, ..now };
        let usage = self.client.get_usage(minute).await?;
        let allowed = self.consumers(ConsumerOutcome::Allowed).await?;
        let denied = self.consumers(ConsumerOutcome::Denied).await?;
        let nodes = self.client.list_nodes().await?;
        Ok(UsageView::new(usage, nodes, (allowed, denied), self.window))
    }

    async fn consumers(&mut self, outcome: ConsumerOutcome) -> Result<TopConsumersResponse> {
        let seconds = match self.window {
            WindowArg::Minute => 60,
            WindowArg::Hour => 3_600,
        };
        let request = TopConsumersRequest {
            strategy: self.strategy.clone().unwrap_or_default(),
            outcome: outcome.into(),
            window: Some(prost_types::Duration { seconds, nanos: 0 }),
            n: Some(CONSUMERS),
        };
        Ok(self.client.top_consumers(request).await?)
    }
}
