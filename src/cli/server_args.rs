//! The options of commands that call a server: its address and the timeout.

use std::time::Duration;

use anyhow::{Context as _, Error, Result};
use weir_config::unix_path;
use weir_load::ServerAccess;
use weir_load::client::{Client, ClientError};

use super::access_args::AccessArgs;
use super::allow_output::AllowOutput;
use super::duration;

/// The options that all commands have which ask a running server.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// The server to ask
    #[arg(
        long,
        env = "WEIR_SERVER",
        default_value = "127.0.0.1:8081",
        value_name = "HOST:PORT, https://HOST:PORT or unix:PATH"
    )]
    server: String,
    /// Timeout of an answer: 500ms, 2s, 1m
    #[arg(long, env = "WEIR_TIMEOUT", default_value = "2s", value_parser = duration, value_name = "SPAN")]
    pub(super) timeout: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// The options that all commands have which print the answer of a server.
#[derive(Debug, clap::Args)]
pub(super) struct AskArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Text for people, or the proto-JSON of the response
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    pub(super) output: AllowOutput,
}

/// Converts an optional duration for a request.
pub(super) fn span(span: Option<Duration>) -> Result<Option<prost_types::Duration>> {
    span.map(prost_types::Duration::try_from).transpose().context("the span is too long")
}

impl ServerArgs {
    /// Calls the server, and returns its answer.
    pub(super) fn answer<T>(
        &self,
        ask: impl AsyncFnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T> {
        self.answer_within(self.timeout, ask)
    }

    /// Like [`ServerArgs::answer`], with another timeout.
    pub(super) fn answer_within<T>(
        &self,
        timeout: Duration,
        ask: impl AsyncFnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T> {
        let access = self.checked()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answer = runtime.block_on(async {
            let mut client = Client::connect_with(&self.server, &access, timeout).await?;
            ask(&mut client).await
        });
        answer.map_err(explained)
    }

    /// Connects to the server.
    pub(super) async fn connect(&self) -> Result<Client> {
        Client::connect_with(&self.server, &self.checked()?, self.timeout).await.map_err(explained)
    }

    /// Validates the path of a Unix socket, and reads the files of TLS and of the token.
    fn checked(&self) -> Result<ServerAccess> {
        unix_path(&self.server).transpose()?;
        self.access.access(&self.server)
    }
}

/// The error of a call, with what its caller may have missed.
pub(super) fn explained(error: ClientError) -> Error {
    let advice = match &error {
        ClientError::Unreachable { .. } => {
            Some("no server answers; start one with `weir serve`, or name one with --server")
        }
        error if is_no_grpc(error) => Some("this server does not speak gRPC; is that the admin port?"),
        _ => None,
    };
    let error = Error::from(error);
    match advice {
        Some(advice) => error.context(advice),
        None => error,
    }
}

/// True if the answer came from a server for HTTP, such as the admin port: it has no status of gRPC.
fn is_no_grpc(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { message, .. } if message.starts_with("grpc-status header missing"))
}
