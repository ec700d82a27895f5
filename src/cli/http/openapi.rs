//! `weir openapi`: prints the OpenAPI description of the HTTP listener.

use std::process::ExitCode;

use crate::cli::{fail, print};

#[derive(Debug, clap::Args)]
pub(crate) struct OpenapiArgs {}

pub(crate) fn run() -> ExitCode {
    // `{:#}` of a JSON value is its text, indented.
    let printed = weir_http::openapi().map(|description| print(&format!("{description:#}\n")));
    match printed {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&error.to_string(), 1),
        Err(error) => fail(&error, 1),
    }
}
