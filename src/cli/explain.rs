//! `weir explain`: what would decide a request, and why. Asks no server and no store: it reads the
//! configuration and makes the same choice that the limiter makes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use weir::config::{Config, Overrides};
use weir::key::Subject;
use weir::limiter::{self, Ask};
use weir::strategy::{Attributes, Resolved, Rules};

use super::allow::Output;
use super::{attribute, explanation, fail, print};

/// The request could not be decided.
const UNDECIDED: u8 = 1;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is used, for example zewtopia.com/tigerfeeding
    resource: String,
    /// Who uses it; may be left out where no limit counts by consumer
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
    /// A further fact about the request, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    /// The configuration file; without one, the built-in example is explained
    #[arg(long, short, env = "WEIR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Text for people, or JSON
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: Output,
}

/// A request, and everything that was chosen for it.
pub(super) struct Explained<'a> {
    pub(super) rules: &'a Rules,
    pub(super) subject: Subject<'a>,
    /// Whether the request names the strategy itself.
    pub(super) explicit: bool,
    pub(super) resolved: Resolved<'a>,
}

pub(crate) fn run(args: Args) -> ExitCode {
    match explain(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}"), UNDECIDED),
    }
}

fn explain(args: Args) -> Result<()> {
    let settings = Overrides::default();
    let config = match &args.config {
        Some(file) => Config::load(file, &settings),
        None => Config::built_in_with(&settings),
    };
    let config = config.map_err(|errors| anyhow!("the configuration has mistakes:\n{errors}"))?;
    let attributes: HashMap<String, String> = args.attributes.into_iter().collect();
    let attributes = Attributes::of(&attributes);
    let (resource, consumer) = (args.resource.as_str(), args.consumer.as_str());
    let strategy = args.strategy.as_str();
    let ask = Ask { resource, consumer, strategy, cost: 1, peek: false, attributes, deadline: None };
    let resolved = limiter::resolve(&config.rules, &ask)?;
    let subject = Subject { resource, consumer, group: resolved.group, attributes };
    let explicit = !strategy.is_empty();
    let explained = Explained { rules: &config.rules, subject, explicit, resolved };
    let text = match args.output {
        Output::Text => explanation::text(&explained),
        Output::Json => explanation::json(&explained)?,
    };
    print(&text).context("the explanation cannot be printed")
}
