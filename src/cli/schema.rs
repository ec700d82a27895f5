//! `weir schema`: prints the JSON Schema of the configuration file.

use std::process::ExitCode;

use super::{print, printed};
use crate::features::schema;

const EXAMPLES: &str = "\
Examples:
  weir schema > weir.schema.json                           write it beside weir.yaml
  weir schema | jq .properties.server.properties.limits    what a section may say

Editors that speak to yaml-language-server use it when weir.yaml begins with
  # yaml-language-server: $schema=./weir.schema.json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {}

pub(crate) fn run() -> ExitCode {
    // `{:#}` of a JSON value is its text, indented; writing it cannot fail.
    printed(print(&format!("{:#}\n", schema())))
}
