//! The form of an answer on standard output.

use clap::ValueEnum;

/// Text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowOutput {
    Text,
    Json,
}
