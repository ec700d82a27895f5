//! `weir explain`: shows which strategy and limits apply to a request, and why. It calls no server and no store: it
//! reads the configuration and resolves the request as the limiter does.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use weir_config::{AccessRight, Config, Position, StoreConfig};
use weir_core::key::{KeySecret, Placements, Subject};
use weir_core::strategy::{Attributes, Strategy, StrategyRule};
use weir_node::access::{CallerName, Explained, Rights, rights_of};
use weir_node::limiter::{self, Question};

use super::allow_output::AllowOutput;
use super::explanation::ExplainedRequest;
use super::settings::{loaded, no_overrides};
use super::{attribute, explanation, fail, print};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir explain api/orders bob --config weir.yaml
  weir explain api/orders bob --attribute region=eu --output json
  weir explain --queue orders --config weir.yaml
  weir explain --envoy --envoy-config ratelimit/config my-domain path=/login,remote_address=10.0.0.1";

/// Exit code for a request that could not be decided.
const UNDECIDED: u8 = 1;

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Resource, for example zewtopia.com/tigerfeeding; with --envoy, the domain
    #[cfg_attr(feature = "queues", arg(required_unless_present = "queue"))]
    #[cfg_attr(not(feature = "queues"), arg(required = true))]
    resource: Option<String>,
    /// Consumer; optional where no limit counts by consumer. With --envoy, the entries of a
    /// descriptor: KEY=VALUE,KEY=VALUE
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A configured strategy [default: the one that the configuration gives the resource]
    #[arg(long, env = "WEIR_STRATEGY", default_value = "", hide_default_value = true)]
    strategy: String,
    /// A further fact about the request, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    /// Also show the rule of `authorize` that lets this caller ask, or why none does: token:shop, spiffe://prod/shop
    #[arg(long, env = "WEIR_CALLER", value_name = "NAME")]
    #[cfg_attr(feature = "queues", arg(conflicts_with = "queue"))]
    caller: Option<String>,
    /// Explain a queue, or NAME:dead for its dead letters: its numbers, its keys, and where they lie
    #[cfg(feature = "queues")]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resource", "strategy", "attributes"])]
    queue: Option<String>,
    /// A configuration file, or a directory of them; may be given several times; without one, the built-in example is
    /// explained
    #[arg(long, short, env = "WEIR_CONFIG", value_name = "PATH")]
    config: Vec<PathBuf>,
    /// The secret of the keys in Redis, which tag and slot depend on; better given as its variable
    #[arg(long, env = "WEIR_KEY_SECRET", value_name = "TEXT", hide_env_values = true)]
    key_secret: Option<String>,
    #[cfg(feature = "envoy")]
    #[command(flatten)]
    of_envoy: super::envoy::ExplainEnvoyArgs,
    /// Text for people, or JSON
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    output: AllowOutput,
}

pub(crate) fn run(args: ExplainArgs) -> ExitCode {
    match explain(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}"), UNDECIDED),
    }
}

fn explain(args: ExplainArgs) -> Result<()> {
    #[cfg(feature = "envoy")]
    if args.of_envoy.envoy {
        return explain_envoy(&args);
    }
    let config = read_config(&args)?;
    #[cfg(feature = "queues")]
    if let Some(queue) = &args.queue {
        let text = super::queues::explanation::explain(&config, queue, placements_of(&config), args.output)?;
        return print(&text).context("the explanation cannot be printed");
    }
    let attributes: HashMap<String, String> = args.attributes.into_iter().collect();
    let attributes = Attributes::new(&attributes);
    let (resource, consumer) = (args.resource.as_deref().unwrap_or_default(), args.consumer.as_str());
    let strategy = args.strategy.as_str();
    let pairs = attributes.iter().collect();
    let question =
        Question { resource, consumer, strategy, attributes: pairs, ..Question::until(None, Rights::ALL) };
    let resolved = limiter::resolve_any(&config.rules, &question)?;
    if let Some(caller) = &args.caller {
        let line = caller_line(&config, caller, (resource, consumer), resolved.strategy);
        print(&line).context("the explanation cannot be printed")?;
    }
    let subject = Subject { resource, consumer, group: resolved.group, attributes };
    let secret = config.key_secret.unwrap_or(KeySecret::BUILT_IN);
    let (explicit, namespace) = (!strategy.is_empty(), &config.namespace);
    let none = Placements::default();
    let placements = placements_of(&config).unwrap_or(&none);
    let rules = &config.rules;
    let explained = ExplainedRequest { rules, subject, explicit, resolved, secret, placements, namespace };
    let text = match args.output {
        AllowOutput::Text => explanation::text(&explained),
        AllowOutput::Json => explanation::json(&explained)?,
    };
    print(&text).context("the explanation cannot be printed")
}

/// Says which rule lets a caller ask for a decision, or for a lease. A line of JSON is no part of `--output json`.
fn caller_line(
    config: &Config,
    caller: &str,
    (resource, consumer): (&str, &str),
    strategy: &Strategy,
) -> String {
    let right = match strategy.rule() {
        StrategyRule::Rates(_) => AccessRight::Decide,
        StrategyRule::Permits(_) => AccessRight::Lease,
    };
    let name = right.row().name;
    if !config.has_identity() {
        return format!("caller    {caller}: everybody may `{name}`, because the server has no identity\n");
    }
    let rights = rights_of(config.authorize.as_deref(), &CallerName::one(caller));
    let why = match rights.explain(right, resource, consumer, strategy.name()) {
        Explained::AllowedBy(place) if place == Position::default() => {
            format!("may `{name}`: there is no `authorize`, so every known caller may")
        }
        Explained::AllowedBy(place) => {
            format!("may `{name}`, by the rule in line {}", line_of(config, place))
        }
        Explained::NoRule => "may nothing: no rule of `authorize` names it".to_owned(),
        Explained::NoRight => format!("may not `{name}`: no rule that names it has this right"),
        Explained::NotListed(lines) => {
            let lines: Vec<String> = lines.iter().map(|place| line_of(config, *place)).collect();
            format!("may not `{name}`: the lists of the rules in lines {} leave it out", lines.join(", "))
        }
    };
    format!("caller    {caller} {why}\n")
}

/// Formats the line of a rule, with its file if there are several.
fn line_of(config: &Config, place: Position) -> String {
    let file = config.origin.as_ref().and_then(|origin| origin.file(place.file));
    let file = file.map_or_else(String::new, |file| format!(" of {}", file.display()));
    format!("{}{file}", place.line)
}

fn read_config(args: &ExplainArgs) -> Result<Config> {
    let overrides = match &args.key_secret {
        Some(text) => no_overrides().with("key_secret", text),
        None => no_overrides(),
    };
    loaded(&args.config, &overrides).map_err(|errors| anyhow!("the configuration has mistakes:\n{errors}"))
}

/// Returns the placement of routing groups, if the store is Redis.
fn placements_of(config: &Config) -> Option<&Placements> {
    match &config.store {
        StoreConfig::Redis(redis) => Some(&redis.placements),
        StoreConfig::Memory(_) => None,
    }
}

#[cfg(feature = "envoy")]
fn explain_envoy(args: &ExplainArgs) -> Result<()> {
    let of_envoy = &args.of_envoy;
    let mut merge_domains = of_envoy.merge_domains;
    let folder = match (&of_envoy.envoy_config, &args.config[..]) {
        (Some(folder), _) => folder.clone().into(),
        (None, []) => return Err(anyhow!("name the directory of Envoy's files with --envoy-config DIR")),
        (None, [file, ..]) => {
            let config = read_config(args)?;
            let envoy = weir_envoy::settings::EnvoyConfig::from_config(&config);
            merge_domains |= envoy.merge_domains;
            let folder = envoy.config.clone();
            let folder = folder.with_context(|| format!("{} has no envoy.config", file.display()))?;
            weir_envoy::files::EnvoyFolder::from(folder).with_config(&envoy)
        }
    };
    let domain = args.resource.as_deref().unwrap_or_default();
    let entries = super::envoy::entries(&args.consumer, &of_envoy.entries)?;
    let text = super::envoy::explain(folder, merge_domains, domain, &entries, args.output)?;
    print(&text).context("the explanation cannot be printed")
}
