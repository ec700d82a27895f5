//! `weir reload`: makes a running server read its files again.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use weir_load::client::ClientError;
use weir_proto::v1::ReloadResponse;

use super::super::allow_output::AllowOutput;
use super::super::server_args::ServerArgs;
use super::super::{fail, print, render};

const MISTAKES: u8 = 1;
const FAILED: u8 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Text for people, or the proto-JSON of the response
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: AllowOutput,
}

pub(crate) fn run(args: &ReloadArgs) -> ExitCode {
    match reload(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(MISTAKES),
        Err(error) => fail(&format!("{error:#}"), FAILED),
    }
}

/// Prints the mistakes, and returns true if there is none.
fn reload(args: &ReloadArgs) -> Result<bool> {
    let answer = args.server.answer(async |client| client.reload().await);
    let response = answer.map_err(|error| match error.downcast_ref() {
        Some(ClientError::Refused { code: "UNIMPLEMENTED", .. }) => error.context(
            "the server does not serve ControlService: set `server.control: true`, or send the process SIGHUP, which \
             reads the files too and logs their mistakes",
        ),
        _ => error,
    })?;
    let text = match args.output {
        AllowOutput::Text => text(&response),
        AllowOutput::Json => render::json("weir.v1.ReloadResponse", &response)?,
    };
    print(&text).context("the answer cannot be printed")?;
    Ok(response.mistakes.is_empty())
}

fn text(response: &ReloadResponse) -> String {
    let ReloadResponse { mistakes, files } = response;
    if mistakes.is_empty() {
        return format!("all files are read; configuration {files} is in force\n");
    }
    let mut text = String::from("files with mistakes changed nothing:\n");
    for mistake in mistakes {
        text += &format!("  {mistake}\n");
    }
    text + &format!("configuration {files} is in force\n")
}
