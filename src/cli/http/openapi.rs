//! `weir openapi`: prints the OpenAPI description of the HTTP listener.

use std::process::ExitCode;

use crate::cli::{fail, print, printed};

#[derive(Debug, clap::Args)]
pub(crate) struct OpenapiArgs {}

pub(crate) fn run() -> ExitCode {
    // `{:#}` of a JSON value is its text, indented.
    match weir_http::openapi() {
        Ok(description) => printed(print(&format!("{description:#}\n"))),
        Err(error) => fail(&error, 1),
    }
}
