//! The form of a report on standard output.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LoadOutput {
    Text,
    Json,
    /// A picture; with --until-allowed
    Svg,
}
