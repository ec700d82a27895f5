//! The arguments of `weir load`, and their conversion to a plan.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::ArgPredicate;
use weir_load::{CallMode, CallProtocol, ClientTls, Pace, Plan, PlanEnd, PlannedQuestion, Spread};
use weir_units::Micros;

use super::output::LoadOutput;
use super::server::Server;
use super::until::UntilPlan;
use crate::cli::access_args::AccessArgs;
use crate::cli::{attribute, duration, positive_span};

const EXAMPLES: &str = "\
Examples:
  weir load                                             the server on this machine, 10 s, as fast as it can
  weir load --pid $(pgrep -x weir)                      and what a decision costs it
  weir load --rate 10000                                10,000 calls a second, whatever it does
  weir load --keys 1000000 --spread zipf                a million consumers, few of them busy
  weir load --http                                      the HTTP listener, with JSON
  weir load --mode batch --batch 100                    100 decisions a call
  weir load --mode stream --batch 10                    a stream on each connection, 10 decisions a message
  weir load --resource api/orders --strategy per-user   your own strategy
  weir load --resource 'api/{key}' --consumer anyone    a resource for each key
  weir load --resource api/orders --resource api/search  two resources, in turn
  weir load --mode envoy --domain edge --descriptor remote_address={key}
  weir load --requests 100000 --warm-up 0s --output json > report.json
  weir load --until-allowed 400 --keys 10 --strategy gate --strategy both --resource zoo";

/// Keys if they are not given, and consumers of a loop that goes on until so many calls were allowed.
const KEYS: u64 = 100_000;
const CONSUMERS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeName {
    /// ShouldAllow: a decision a call
    Unary,
    /// ShouldAllowBatch: --batch decisions a call
    Batch,
    /// ShouldAllowStream: a stream on each connection, --batch decisions in a message
    Stream,
    /// Envoy's ShouldRateLimit: a descriptor a call
    Envoy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SpreadName {
    /// All keys alike
    Uniform,
    /// The k-th key as often as 1/k^exponent
    Zipf,
}

#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The server to load
    #[arg(
        long,
        env = "WEIR_SERVER",
        default_value = "127.0.0.1:8081",
        default_value_if("http", ArgPredicate::Equals("true".into()), Some("127.0.0.1:8082")),
        value_name = "HOST:PORT, https://HOST:PORT or unix:PATH"
    )]
    server: String,
    /// Yes, the server may be flooded; needed for every server that is not on this machine
    #[arg(long)]
    i_own_this_target: bool,
    /// Text for people, or JSON with names that stay
    #[arg(long, short, env = "WEIR_OUTPUT", default_value = "text")]
    pub(super) output: LoadOutput,

    /// Method to call
    #[arg(long, value_enum, default_value = "unary", help_heading = "Calls")]
    mode: ModeName,
    /// Call the HTTP listener (`http.listen`), with JSON: one call after another on each connection. The server is
    /// 127.0.0.1:8082 then, if it is not given
    #[arg(long, help_heading = "Calls")]
    http: bool,
    /// Decisions in a call of --mode batch, or in a message of --mode stream
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = "Calls")]
    batch: u32,
    /// Resource; {key} stands for the key's number. Given several times, the keys use them in turn [default: the
    /// resources of the built-in example; with --strategy only its first]
    #[arg(long = "resource", value_name = "NAME", help_heading = "Calls")]
    resources: Vec<String>,
    /// Consumer; {key} stands for the key's number
    #[arg(long, default_value = "user_{key}", value_name = "NAME", help_heading = "Calls")]
    consumer: String,
    /// A configured strategy; with --until-allowed it may be given several times [default: the one that the
    /// configuration gives the resource]
    #[arg(long = "strategy", env = "WEIR_STRATEGY", value_name = "NAME", help_heading = "Calls")]
    strategies: Vec<String>,
    /// A further fact about every call, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE", help_heading = "Calls")]
    attributes: Vec<(String, String)>,
    /// Units that every call charges; 0 checks without charging
    #[arg(long, env = "WEIR_COST", default_value_t = 1, help_heading = "Calls")]
    cost: u64,
    /// The domain of --mode envoy
    #[arg(long, default_value = "weir", value_name = "NAME", help_heading = "Calls")]
    domain: String,
    /// An entry of the descriptor of --mode envoy; may be given several times [default: user=user_{key}]
    #[arg(long = "descriptor", value_parser = attribute, value_name = "KEY=VALUE", help_heading = "Calls")]
    descriptor: Vec<(String, String)>,
    /// Keys to choose from; with --until-allowed the consumers that call, in turn [default: 100000; with
    /// --until-allowed 10]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "COUNT", help_heading = "Calls")]
    keys: Option<u64>,
    /// Distribution of the keys
    #[arg(long, value_enum, default_value = "uniform", help_heading = "Calls")]
    spread: SpreadName,
    /// The exponent of --spread zipf
    #[arg(long, default_value_t = 1.0, value_parser = exponent, value_name = "NUMBER", help_heading = "Calls")]
    zipf_exponent: f64,
    /// Where the random keys begin: the same seed, the same keys
    #[arg(long, default_value_t = 1, value_name = "NUMBER", help_heading = "Calls")]
    seed: u64,

    /// Connections
    #[arg(long, short, default_value_t = 8, value_parser = count, value_name = "COUNT", help_heading = "Load")]
    connections: usize,
    /// Calls that wait for an answer at any time, over all connections [default: 128; with --rate 1024]
    #[arg(long, value_parser = count, value_name = "COUNT", help_heading = "Load")]
    in_flight: Option<usize>,
    /// Calls a second, made when they are due whatever the server does; latency counts from when they were
    /// due [default: as many as are answered]
    #[arg(long, value_parser = rate, value_name = "PER SECOND", help_heading = "Load")]
    rate: Option<f64>,
    /// Duration of the measurement: 500ms, 10s, 5m
    #[arg(long, short, default_value = "10s", value_parser = duration, value_name = "SPAN", help_heading = "Load")]
    duration: Duration,
    /// Measure so many calls instead
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "duration", value_name = "COUNT", help_heading = "Load")]
    requests: Option<u64>,
    /// Call until so many calls were allowed, each strategy after the other: each consumer calls again when its answer says that
    /// it may, or with --rate all of them so often in all. The report is that of `weir simulate --pattern until:COUNT`
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with_all = UNTIL_CONFLICTS, value_name = "COUNT", help_heading = "Load")]
    until_allowed: Option<u64>,
    /// The duration of a column of the plot of --until-allowed [default: a sixtieth of all]
    #[arg(long, value_parser = positive_span, requires = "until_allowed", value_name = "TIME", help_heading = "Report")]
    column: Option<Micros>,
    /// The window of "most in any" in the report of --until-allowed
    #[arg(long, value_parser = positive_span, default_value = "1s", value_name = "TIME", help_heading = "Report")]
    window: Micros,
    /// Duration of the warm-up, in which nothing counts: 0s, 1s
    #[arg(long, default_value = "1s", value_parser = span, value_name = "SPAN", help_heading = "Load")]
    warm_up: Duration,
    /// When a call without an answer counts as failed
    #[arg(long, env = "WEIR_TIMEOUT", default_value = "5s", value_parser = duration, value_name = "SPAN", help_heading = "Load")]
    timeout: Duration,
    /// Threads that make the load; one makes some hundred thousand calls a second
    #[arg(long, default_value_t = 1, value_parser = count, value_name = "COUNT", help_heading = "Load")]
    threads: usize,

    /// A process whose CPU time per decision is printed: the server's, if it runs on this machine; may be given
    /// several times, for a Redis too
    #[arg(long = "pid", value_name = "PID", help_heading = "Report")]
    pids: Vec<u32>,
    /// Write every decision into this file, as CSV: when sent, when answered, key, result
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    record: Option<PathBuf>,
    /// Print no progress
    #[arg(long, short, help_heading = "Report")]
    quiet: bool,

    #[command(flatten)]
    access: AccessArgs,
}

/// Options of a load that a loop does not have.
const UNTIL_CONFLICTS: [&str; 14] = [
    "mode",
    "http",
    "batch",
    "domain",
    "descriptor",
    "spread",
    "requests",
    "duration",
    "warm_up",
    "connections",
    "in_flight",
    "threads",
    "pids",
    "record",
];

impl LoadArgs {
    /// The plan of a loop that goes on until so many calls were allowed, if that is asked for.
    pub(super) fn until(&self) -> Result<Option<UntilPlan>> {
        let Some(allowed) = self.until_allowed else { return Ok(None) };
        Server::parse(&self.server, self.i_own_this_target)?;
        let strategies =
            if self.strategies.is_empty() { vec![String::new()] } else { self.strategies.clone() };
        let resources = resources(self.resources.clone(), "one");
        let [resource] = &*resources else { bail!("--until-allowed takes one --resource") };
        Ok(Some(UntilPlan {
            allowed,
            rate: self.rate,
            server: self.server.clone(),
            access: self.access.access(&self.server)?,
            timeout: self.timeout,
            strategies,
            resource: resource.clone(),
            consumer: self.consumer.clone(),
            consumers: self.keys.unwrap_or(CONSUMERS),
            attributes: self.attributes.clone(),
            cost: self.cost,
            column: self.column,
            window: self.window,
            is_quiet: self.quiet,
        }))
    }

    pub(super) fn plan(self) -> Result<(Plan, bool)> {
        if self.output == LoadOutput::Svg {
            bail!("--output svg: only --until-allowed makes a picture");
        }
        let strategy = match &*self.strategies {
            [] => String::new(),
            [one] => one.clone(),
            _ => bail!("--strategy: several of them need --until-allowed"),
        };
        let server = Server::parse(&self.server, self.i_own_this_target)?;
        let mut access = self.access.access(&self.server)?;
        if self.http {
            access.tls = access.tls.map(ClientTls::with_http_1);
        }
        if self.rate.is_none() && self.in_flight.is_some_and(|in_flight| in_flight < self.connections) {
            bail!("--in-flight is below --connections: every connection needs a call");
        }
        let descriptor = match self.descriptor {
            none if none.is_empty() => vec![("user".to_owned(), "user_{key}".to_owned())],
            some => some,
        };
        if self.http && self.in_flight.is_some_and(|in_flight| in_flight > self.connections) {
            bail!("--in-flight is above --connections: by HTTP, each connection has one call");
        }
        let in_flight = self.in_flight.unwrap_or(match self.rate {
            _ if self.http => self.connections,
            None => 128.max(self.connections),
            Some(_) => 1_024.max(self.connections),
        });
        let ask = PlannedQuestion {
            resources: resources(self.resources, &strategy),
            consumer: self.consumer,
            strategy,
            attributes: self.attributes,
            cost: self.cost,
            domain: self.domain,
            descriptor,
            keys: self.keys.unwrap_or(KEYS),
            spread: match self.spread {
                SpreadName::Uniform => Spread::Uniform,
                SpreadName::Zipf => Spread::Zipf(self.zipf_exponent),
            },
        };
        let plan = Plan {
            address: server.address,
            authority: server.authority,
            access,
            protocol: if self.http { CallProtocol::Http } else { CallProtocol::Grpc },
            mode: match self.mode {
                ModeName::Unary => CallMode::Unary,
                ModeName::Batch => CallMode::Batch(self.batch as usize),
                ModeName::Stream => CallMode::Stream(self.batch as usize),
                ModeName::Envoy => CallMode::Envoy,
            },
            ask,
            connections: self.connections,
            in_flight,
            threads: self.threads,
            pace: self.rate.map_or(Pace::Closed, Pace::Open),
            warm_up: self.warm_up,
            end: self.requests.map_or(PlanEnd::After(self.duration), PlanEnd::Calls),
            timeout: self.timeout,
            seed: self.seed,
            record: self.record,
            pids: self.pids,
        };
        Ok((plan, self.quiet))
    }
}

/// The resources of the calls, or those of the built-in example: each of its strategies has one.
fn resources(named: Vec<String>, strategy: &str) -> Vec<String> {
    const EXAMPLES: [&str; 3] = ["zewtopia.com/tigerfeeding", "api/orders", "api/search"];
    match (named.is_empty(), strategy) {
        (false, _) => named,
        (true, "") => EXAMPLES.map(str::to_owned).into(),
        (true, _) => EXAMPLES.iter().take(1).map(|&name| name.to_owned()).collect(),
    }
}

fn count(text: &str) -> Result<usize, String> {
    const MOST: usize = 100_000;
    match text.parse() {
        Ok(count) if (1..=MOST).contains(&count) => Ok(count),
        _ => Err(format!("expected a whole number from 1 to {MOST}")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    const MOST: f64 = 1e8;
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= MOST => Ok(rate),
        _ => Err(format!("expected a number above 0, at most {MOST}")),
    }
}

fn exponent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(exponent) if (0.0..=10.0).contains(&exponent) => Ok(exponent),
        _ => Err("expected a number from 0 to 10".to_owned()),
    }
}

/// Parses a duration that may be 0.
fn span(text: &str) -> Result<Duration, String> {
    if text == "0" || text == "0s" { Ok(Duration::ZERO) } else { duration(text) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{EXAMPLES, LoadArgs};

    #[derive(clap::Parser)]
    struct Load {
        #[command(flatten)]
        args: LoadArgs,
    }

    #[test]
    fn the_examples_are_plans() {
        for line in EXAMPLES.lines().skip(1) {
            let line = line.trim().strip_prefix("weir load").unwrap();
            let command = line.split("  ").next().unwrap().split(" >").next().unwrap();
            let command = command.replace("$(pgrep -x weir)", "1").replace('\'', "");
            let args = Load::try_parse_from(["load"].into_iter().chain(command.split_whitespace()));
            let args = args.unwrap_or_else(|error| panic!("{line}: {error}")).args;
            let is_loop = args.until().unwrap().is_some();
            assert_eq!(is_loop, line.contains("--until-allowed"));
            if !is_loop {
                args.plan().unwrap();
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for arguments in [
            "--batch 0",
            "--batch 1001",
            "--keys 0",
            "--connections 0",
            "--rate 0",
            "--rate nan",
            "--zipf-exponent -1",
            "--duration 0s",
            "--requests 5 --duration 1s",
            "--connections 9 --in-flight 8",
            "--strategy a --strategy b",
            "--output svg",
            "--column 1s",
            "--until-allowed 0",
            "--until-allowed 5 --requests 5",
            "--until-allowed 5 --mode batch",
            "--until-allowed 5 --http",
            "--http --in-flight 9",
        ] {
            let parsed = Load::try_parse_from(["load"].into_iter().chain(arguments.split(' ')));
            assert!(parsed.ok().and_then(|load| load.args.plan().ok()).is_none(), "{arguments}");
        }
    }
}
