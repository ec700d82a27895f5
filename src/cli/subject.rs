//! The options of commands that name a resource, a consumer and a strategy of a running server.

use super::attribute;
use super::server_args::AskArgs;

/// The subject of a question, and the server.
#[derive(Debug, clap::Args)]
pub(super) struct SubjectArgs {
    /// Resource, for example zewtopia.com/tigerfeeding
    pub(super) resource: String,
    /// Consumer; optional where no limit counts by consumer
    #[arg(default_value = "", hide_default_value = true)]
    pub(super) consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    pub(super) strategy: String,
    /// A further fact about the calls, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    pub(super) attributes: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}
