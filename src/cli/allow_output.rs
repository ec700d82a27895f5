//! The form of an answer on standard output.

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use prost::Message;

use super::render;
use super::terminal::print;

/// Text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowOutput {
    Text,
    Json,
}

impl AllowOutput {
    /// Prints an answer: this text, or the proto-JSON of the message `name`.
    pub(super) fn print(
        self,
        name: &str,
        answer: &impl Message,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        let text = match self {
            Self::Text => text(),
            Self::Json => render::json(name, answer)?,
        };
        print(&text).context("the answer cannot be printed")
    }
}
