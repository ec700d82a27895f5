//! `weir simulate`: runs strategies against a pattern of calls, or the calls of a log, without a server.

mod chart;
mod drawn_limit;
mod numbers;
mod replay;
mod result;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::simulation::{
    CallPattern, CostByName, PatternError, SimulatedCalls, UntilCallers, UntilPattern, read_trace, simulate,
};
use anyhow::{Context as _, Result, anyhow, bail};
use clap::ValueEnum;
use weir_config::span;
use weir_core::strategy::{Field, Rules, Strategy};
use weir_units::Micros;

use self::drawn_limit::DrawnLimit;
pub(super) use self::result::{LiveRuns, Simulated};
use self::result::{ResultShape, SimulatedRow};
use super::costs::{self, CostArg};
use super::explanation::renewal;
use super::settings::{loaded, no_overrides};
use super::{attribute, done, positive_span, print, say};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir simulate --pattern constant:20/s --for 30s                       the built-in example's strategies
  weir simulate --config weir.yaml --strategy api --pattern burst:100x5s
  weir simulate --config weir.yaml --pattern poisson:50/s --seed 7 --svg limits.svg
  weir simulate --config weir.yaml --pattern until:300 --consumers 10   call again as soon as allowed, until 300 passed
  weir simulate --config weir.yaml --pattern calls.csv --output json    columns at_s,resource,consumer,cost
  weir simulate --config budgets.yaml --pattern constant:2/s --cost input=900 --cost output=4096,256 --cost usd=0
  weir simulate --config new.yaml --replay decisions.jsonl              which logged decisions would differ";

/// Maximum size of a file of calls, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// Options that conflict with `--replay`.
const PATTERN_OPTIONS: [&str; 11] = [
    "pattern",
    "time",
    "resource",
    "consumers",
    "costs",
    "attributes",
    "seed",
    "window",
    "column",
    "svg",
    "html",
];

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// A configuration file, or a directory of them; may be given several times; without one, the built-in example is
    /// simulated
    #[arg(long, short, env = "WEIR_CONFIG", value_name = "PATH")]
    config: Vec<PathBuf>,
    /// A strategy to simulate; may be given several times [default: all]
    #[arg(long = "strategy", value_name = "NAME")]
    strategies: Vec<String>,
    /// When calls are made: constant:50/s, burst:100x5s, poisson:50/s, or a CSV file. until:300 is a closed loop: each
    /// consumer calls again as soon as it may, until 300 calls have passed; until:300:constant:50/s makes the calls of a
    /// pattern until then
    #[arg(long, value_name = "PATTERN", required_unless_present = "replay")]
    pattern: Option<String>,
    /// A decision log whose calls are decided again; several files of it one after the other, the oldest first
    #[arg(long, value_name = "FILE", conflicts_with_all = PATTERN_OPTIONS)]
    replay: Vec<PathBuf>,
    /// Refuse a log with a line that was cut off
    #[arg(long, requires = "replay")]
    strict: bool,
    /// Duration of a pattern's calls; a file has its own times
    #[arg(long = "for", default_value = "1m", value_parser = span, value_name = "TIME")]
    time: Micros,
    /// The resource of a pattern's calls
    #[arg(long, default_value = "resource", value_name = "NAME")]
    resource: String,
    /// Number of consumers that make a pattern's calls, in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    consumers: u32,
    /// The cost of each of a pattern's calls [default: 1]; or a cost by its name, and the least to grant instead:
    /// output=4096,256. May be given several times
    #[arg(long = "cost", value_parser = costs::cost, value_name = "[NAME=]UNITS[,LEAST]")]
    costs: Vec<CostArg>,
    /// A further fact about all calls, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    /// Seed of `poisson`; the same seed makes the same calls
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The window of "most in any" [default: each strategy's own: the time until its first limit is full again]
    #[arg(long, value_parser = positive_span, value_name = "TIME")]
    window: Option<Micros>,
    /// The duration of a column of the plots [default: a sixtieth of all]
    #[arg(long, value_parser = positive_span, value_name = "TIME")]
    column: Option<Micros>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t = SimulationOutput::Text)]
    output: SimulationOutput,
    /// Also write a picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a page with the picture and the table to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulationOutput {
    /// A table and a plot.
    Text,
    Json,
    /// One line for each strategy and column of the plot.
    Csv,
    /// The picture.
    Svg,
}

pub(crate) fn run(args: &SimulateArgs) -> ExitCode {
    done(simulated_or_replayed(args))
}

fn simulated_or_replayed(args: &SimulateArgs) -> Result<()> {
    let rules = rules(args)?;
    note_exact(args, &rules);
    match &args.pattern {
        Some(pattern) => show(args, &simulated(args, pattern, rules)?),
        None => print(&replay::run(args, rules)?).context("the result cannot be printed"),
    }
}

fn rules(args: &SimulateArgs) -> Result<Rules> {
    let config = loaded(&args.config, &no_overrides());
    let config = config.map_err(|errors| anyhow!("the configuration has mistakes:\n{errors}"))?;
    Ok(config.rules)
}

/// Says of which strategies nodes would admit more than the one exact counter of a simulation.
fn note_exact(args: &SimulateArgs, rules: &Rules) {
    let is_asked = |name: &str| args.strategies.is_empty() || args.strategies.iter().any(|one| one == name);
    let counted = rules.strategies().iter().filter(|strategy| strategy.approximate().is_some());
    for name in counted.map(|strategy| strategy.name()).filter(|name| is_asked(name)) {
        say(&format!(
            "note: strategy `{name}` has `approximate`, and is simulated as one exact counter: nodes may admit more, within the \
             bound that `weir explain` prints"
        ));
    }
}

fn show(args: &SimulateArgs, simulated: &Simulated) -> Result<()> {
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    if let Some(file) = &args.svg {
        write(file, chart::svg(simulated))?;
    }
    if let Some(file) = &args.html {
        write(file, chart::html(simulated))?;
    }
    print(&simulated.shown(args.output)?).context("the result cannot be printed")
}

impl Simulated {
    /// The result as text.
    pub(crate) fn shown(&self, output: SimulationOutput) -> Result<String> {
        Ok(match output {
            SimulationOutput::Text => text::text(self),
            SimulationOutput::Json => numbers::json(self)?,
            SimulationOutput::Csv => numbers::csv(self),
            SimulationOutput::Svg => chart::svg(self),
        })
    }
}

fn simulated(args: &SimulateArgs, pattern: &str, rules: Rules) -> Result<Simulated> {
    let rules = Arc::new(rules);
    let until = UntilPattern::parse(pattern).transpose()?;
    let shared = match until {
        Some(_) => None,
        None => Some(Arc::new(calls(args, pattern)?)),
    };
    if shared.as_ref().is_some_and(|calls| calls.calls.is_empty()) {
        bail!("there are no calls: --for is too short, or the file empty")
    }
    let named = costs::simulated(&args.costs);
    let given = given_names(&named, shared.as_deref());
    let names = names(&rules, args, &given)?;
    check_costs(&rules, &names, &given)?;
    let mut results = Vec::new();
    for name in names {
        let result = match (&until, &shared) {
            (Some(until), _) => until.simulate(&rules, &name, &args.attributes, callers(args, &named)),
            (None, Some(calls)) => simulate(&rules, &name, &args.attributes, calls)
                .map(|result| (result, SimulatedCalls::clone(calls))),
            (None, None) => continue,
        };
        results.push(result.with_context(|| format!("strategy `{name}` cannot be simulated"))?);
    }
    let open = until.is_none() && !is_file(pattern);
    let shape = ResultShape {
        config: Some(title_of(&args.config)),
        pattern: pattern.to_owned(),
        seed: args.seed,
        closed: until.is_some(),
        end: open.then_some(args.time),
        column: args.column,
    };
    shape.with_runs(results, |result, calls| {
        let window = args.window.unwrap_or_else(|| own_window(&rules, &result.strategy));
        (window, DrawnLimit::find(&rules, result, calls))
    })
}

/// Names the configuration in a title: its files without their folders.
fn title_of(config: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    match config {
        [] => "the built-in example".to_owned(),
        files => files.iter().map(name).collect::<Vec<_>>().join(" + "),
    }
}

fn callers<'a>(args: &'a SimulateArgs, costs: &'a [CostByName]) -> UntilCallers<'a> {
    let (resource, consumers) = (args.resource.as_str(), args.consumers as usize);
    UntilCallers { resource, consumers, cost: plain_cost(args), costs, seed: args.seed }
}

/// The cost of limits that take the request's.
fn plain_cost(args: &SimulateArgs) -> u64 {
    costs::plain(&args.costs).unwrap_or(1)
}

/// The names of the costs that calls have.
fn given_names(named: &[CostByName], calls: Option<&SimulatedCalls>) -> BTreeSet<String> {
    let lists = calls.map_or(&[][..], |calls| &calls.costs);
    lists.iter().flatten().chain(named).map(|cost| cost.name.clone()).collect()
}

/// Refuses a cost that no strategy takes. One that some of them do not take is left out there.
fn check_costs(rules: &Rules, strategies: &[String], given: &BTreeSet<String>) -> Result<()> {
    let is_simulated = |strategy: &&Strategy| strategies.iter().any(|name| *name == *strategy.name());
    let simulated = rules.strategies().iter().map(|strategy| &**strategy).filter(is_simulated);
    let known: BTreeSet<&str> = simulated
        .filter_map(|strategy| strategy.costed())
        .flat_map(|costed| costed.names.iter().map(|name| &**name))
        .collect();
    match given.iter().find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(name) if known.is_empty() => {
            bail!("--cost {name}: no strategy that is simulated has named costs")
        }
        Some(name) => {
            let known = known.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            bail!("--cost {name}: no strategy that is simulated has this cost; they have {known}")
        }
    }
}

fn calls(args: &SimulateArgs, pattern: &str) -> Result<SimulatedCalls> {
    if !is_file(pattern) {
        let read = CallPattern::parse(pattern)?;
        let who = (args.resource.as_str(), args.consumers as usize);
        let calls = read.calls(args.time, who, plain_cost(args), args.seed);
        let calls = calls.map_err(|error| PatternError { pattern: pattern.to_owned(), ..error })?;
        return Ok(SimulatedCalls { costs: vec![costs::simulated(&args.costs)], ..calls });
    }
    let file = pattern;
    let text = text_of(Path::new(file))?;
    read_trace(&text).with_context(|| format!("{file} cannot be read"))
}

/// Reads a text file; the error for invalid UTF-8 has the position.
fn text_of(file: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", file.display());
    let bytes = std::fs::metadata(file).with_context(cannot)?.len();
    if bytes > MAX_FILE {
        bail!("{} has {bytes} bytes; at most {MAX_FILE} are read", file.display());
    }
    let read = String::from_utf8(std::fs::read(file).with_context(cannot)?);
    read.map_err(|error| {
        let (before, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        anyhow!("{}, line {line}, column {column}: the byte {byte:#04x} is not UTF-8", file.display())
    })
}

/// True for a CSV file, by its extension.
fn is_file(pattern: &str) -> bool {
    Path::new(pattern).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Returns the names of the strategies to simulate: those that are named, or all that can be. The others are said.
fn names(rules: &Rules, args: &SimulateArgs, given: &BTreeSet<String>) -> Result<Vec<String>> {
    for name in &args.strategies {
        rules.resolve("", name)?;
    }
    if !args.strategies.is_empty() {
        return Ok(args.strategies.clone());
    }
    let mut names = Vec::new();
    for strategy in rules.strategies() {
        match obstacle(strategy, &args.attributes, given) {
            None => names.push(strategy.name().to_owned()),
            Some(why) => say(&format!("note: strategy `{}` is left out: {why}", strategy.name())),
        }
    }
    if names.is_empty() {
        bail!("the configuration has no strategy that can be simulated");
    }
    Ok(names)
}

/// Requirements of a strategy that a simulation, or this one, lacks.
fn obstacle(
    strategy: &Strategy,
    attributes: &[(String, String)],
    costs: &BTreeSet<String>,
) -> Option<String> {
    if strategy.permits().is_some() {
        return Some("permits are held while work is done, and a pattern of calls has no work".to_owned());
    }
    let mut needed = strategy.costed().into_iter().flat_map(|costed| &costed.names);
    if let Some(name) = needed.find(|name| !costs.contains(&***name)) {
        return Some(format!(
            "it needs the cost `{name}`; give it with --cost {name}=UNITS, or in the file of calls"
        ));
    }
    let mut fields = strategy.limits().iter().flat_map(|limit| limit.scope.fields());
    fields.find_map(|field| match field {
        Field::Attribute(name) if attributes.iter().all(|(given, _)| *given != **name) => {
            Some(format!("it counts by the attribute `{name}`; give it with --attribute {name}=VALUE"))
        }
        _ => None,
    })
}

/// Returns the time until the strategy's first limit is full again.
fn own_window(rules: &Rules, name: &str) -> Micros {
    let strategy = rules.strategies().iter().find(|strategy| strategy.name() == name);
    let first = strategy.and_then(|strategy| strategy.algorithms().first());
    first.map_or(Micros::from_secs(1), renewal)
}
