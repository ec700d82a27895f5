//! `weir allow`: one question to a running server.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use weir::client::{Client, ClientError};
use weir::proto::v1::{ShouldAllowRequest, ShouldAllowResponse};

use super::{attribute, duration, fail, print, render};

const DENIED: u8 = 1;
const FAILED: u8 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is used, for example zewtopia.com/tigerfeeding
    resource: String,
    /// Who uses it; may be left out where no limit counts by consumer
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
    /// A further fact about the call, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    /// How much the call takes; 0 looks without taking
    #[arg(long, env = "WEIR_COST")]
    cost: Option<u64>,
    /// Ask whether it would pass, and take nothing
    #[arg(long)]
    peek: bool,
    /// The server to ask
    #[arg(long, env = "WEIR_SERVER", default_value = "http://127.0.0.1:8081", value_name = "URL")]
    server: String,
    /// How long to wait for an answer: 500ms, 2s, 1m
    #[arg(long, env = "WEIR_TIMEOUT", default_value = "2s", value_parser = duration, value_name = "SPAN")]
    timeout: Duration,
    /// Text for people, or the proto-JSON of the response
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: Args) -> ExitCode {
    match ask(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DENIED),
        Err(error) => fail(&format!("{error:#}"), FAILED),
    }
}

/// Whether it is allowed, after saying so.
fn ask(args: Args) -> Result<bool> {
    let request = ShouldAllowRequest {
        resource: args.resource,
        consumer: args.consumer,
        strategy: args.strategy,
        cost: args.cost,
        peek: args.peek,
        attributes: args.attributes.into_iter().collect(),
    };
    let response = answer(&args.server, args.timeout, request)?;
    let text = match args.output {
        Output::Text => render::text(&response),
        Output::Json => render::json(&response)?,
    };
    print(&text).context("the answer cannot be printed")?;
    Ok(response.allowed)
}

fn answer(server: &str, timeout: Duration, request: ShouldAllowRequest) -> Result<ShouldAllowResponse> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let mut client = Client::connect(server, timeout).await?;
        client.should_allow(request).await
    });
    match answer {
        Err(error @ ClientError::Unreachable { .. }) => {
            Err(error).context("nobody answers; start a server with `weir serve`, or name one with --server")
        }
        answer => Ok(answer?),
    }
}
