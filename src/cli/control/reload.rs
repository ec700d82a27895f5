//! `weir reload`: makes a running server read its files again.

use std::process::ExitCode;

use anyhow::Result;
use weir_load::client::ClientError;
use weir_proto::v1::ReloadResponse;

use super::super::server_args::AskArgs;

pub(crate) fn run(args: &AskArgs) -> ExitCode {
    super::super::answered(reload(args))
}

/// Prints the mistakes, and returns true if there is none.
fn reload(args: &AskArgs) -> Result<bool> {
    let answer = args.server.answer(async |client| client.reload().await);
    let response = answer.map_err(|error| match error.downcast_ref() {
        Some(ClientError::Refused { code: "UNIMPLEMENTED", .. }) => error.context(
            "the server does not serve ControlService: set `server.control: true`, or send the process SIGHUP, which \
             reads the files too and logs their mistakes",
        ),
        _ => error,
    })?;
    args.output.print("weir.v1.ReloadResponse", &response, || text(&response))?;
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
