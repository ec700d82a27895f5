//! The command line. Only here are arguments and environment read.

mod access_args;
mod allow;
mod allow_output;
mod approximate;
mod check;
mod completions;
#[cfg(feature = "control")]
mod control;
mod costs;
mod count;
mod environment;
#[cfg(feature = "envoy")]
mod envoy;
mod explain;
mod explanation;
mod feature_texts;
mod health;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "envoy")]
mod import_envoy;
mod init;
#[cfg(feature = "leases")]
mod leases;
mod load;
mod notify;
#[cfg(feature = "queues")]
mod queues;
mod quoted;
#[cfg(feature = "envoy")]
mod ratelimit;
#[cfg(feature = "envoy")]
mod ratelimit_ports;
mod release_files;
// What commands of features share: a build without some of them has no use for all of it.
#[cfg_attr(
    not(all(feature = "control", feature = "envoy", feature = "queues", feature = "usage")),
    allow(dead_code)
)]
mod render;
mod sample;
mod schema;
mod serve;
#[cfg_attr(
    not(all(feature = "control", feature = "envoy", feature = "queues", feature = "usage")),
    allow(dead_code)
)]
mod server_args;
mod settings;
mod settle;
mod signals;
mod simulate;
mod subject;
#[cfg_attr(
    not(all(feature = "control", feature = "envoy", feature = "queues", feature = "usage")),
    allow(dead_code)
)]
mod terminal;
mod token;
mod undo;
#[cfg(feature = "usage")]
mod usage;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use weir_node::telemetry::{Format, LineWriter, check_filter, init_logs, log_panics};
use weir_units::Micros;

use self::environment::Unread;
use self::terminal::{print, say};

/// The longest wait at the end of `weir serve` for its last lines to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The consumer in commands that are printed as examples.
const EXAMPLE_CONSUMER: &str = "bob";

const EXAMPLES: &str = "\
Examples:
  weir                                                 serve the built-in example
  weir allow zewtopia.com/tigerfeeding bob             ask it (from another terminal)
  weir serve --config weir.yaml                        serve your own strategies
  weir lease acquire exports/acme acme --id job-17     take a permit of a strategy with `concurrency`
  weir queue put jobs 'resize cat.png'                 put work into a queue; `weir queue take` takes it out
  weir control put-override api/orders bob --limit each=50/1s --for 1h --reason 'they asked'
  weir serve --store redis://127.0.0.1:6379            share exact limits between nodes
  weir init                                            write a first weir.yaml
  weir check weir.yaml                                 find every mistake in a configuration
  weir explain api/orders bob --config weir.yaml       explain which limits apply, and why
  weir schema > weir.schema.json                       let an editor find mistakes while you type
  weir serve --envoy-config ratelimit/config           serve envoyproxy/ratelimit's files to Envoy
  weir check ratelimit/config                          find every mistake in them
  weir import-envoy ratelimit/config > weir.yaml       the same limits as strategies of Weir
  weir simulate --pattern burst:100x5s                 try out limits, without a server
  weir top                                             watch decisions, live
  weir load                                            measure the capacity of a server";

const ENVIRONMENT: &str = "\
An option with [env: NAME] in its help can be given as that variable too. A flag goes before its variable, a
variable before the configuration file.";

/// Exact rate-limit decisions over gRPC.
#[derive(Debug, Parser)]
#[command(name = "weir", version, before_help = EXAMPLES, after_help = ENVIRONMENT)]
#[command(disable_help_subcommand = true)]
struct Cli {
    /// Log filter, for example `info`, `debug` or `weir_store=debug`; logs go to stderr
    #[arg(long, global = true, env = "WEIR_LOG", default_value = "info", value_name = "FILTER")]
    #[arg(value_parser = log_filter)]
    log: String,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // a process has one of these
enum Command {
    /// Answer decisions until a signal ends it (what `weir` alone does)
    Serve(Box<serve::ServeArgs>),
    /// Serve in the place of envoyproxy/ratelimit, as its variables say; all arguments but --explain are ignored
    #[cfg(feature = "envoy")]
    #[command(before_help = ratelimit::EXAMPLES)]
    Ratelimit(ratelimit::RatelimitArgs),
    /// Ask a running server one question; exits 0 if allowed, 1 if denied, 2 on an error
    Allow(allow::AllowArgs),
    /// Take permits of a strategy with `concurrency`, renew a lease, release it, or list those that are held
    #[cfg(feature = "leases")]
    #[command(before_help = leases::EXAMPLES)]
    Lease(leases::LeaseArgs),
    /// Show the recent usage of a limit
    #[command(before_help = count::EXAMPLES)]
    Count(count::CountArgs),
    /// Charge a cost that was used already, even above the limits
    #[command(before_help = undo::DEBIT_EXAMPLES)]
    Debit(undo::DebitArgs),
    /// Settle a held call with the units that it used, and return the rest
    #[command(before_help = settle::EXAMPLES)]
    Settle(settle::SettleArgs),
    /// Cancel a reservation; exits 0 if it is cancelled, 1 if it was not there, 2 on an error
    #[command(before_help = undo::CANCEL_EXAMPLES)]
    Cancel(undo::CancelArgs),
    /// Reset limits to their full quota
    #[command(before_help = undo::RESET_EXAMPLES)]
    Reset(undo::ResetArgs),
    /// Put work into a queue, take, ack or nack it, and show the state of the queue
    #[cfg(feature = "queues")]
    #[command(before_help = queues::EXAMPLES)]
    Queue(queues::QueueArgs),
    /// Show who is banned, and lift bans (`server.control: true`)
    #[cfg(feature = "control")]
    #[command(before_help = control::bans::EXAMPLES)]
    Bans(control::bans::BansArgs),
    /// Change limits, lists and overrides of a running server, on all its nodes (`server.control: true`)
    #[cfg(feature = "control")]
    #[command(before_help = control::EXAMPLES)]
    Control(control::ControlArgs),
    /// Reload the files of a running server, and print their mistakes; exits 0, 1 with mistakes, 2 on an error
    #[cfg(feature = "control")]
    Reload(server_args::AskArgs),
    /// Check a configuration file, or a directory of Envoy's, and report every mistake
    #[command(before_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Write a first configuration with comments; an existing file stays as it is
    #[command(before_help = init::EXAMPLES)]
    Init(init::InitArgs),
    /// Create tokens for `server.identity.tokens_file`
    #[command(before_help = token::EXAMPLES)]
    Token(token::TokenArgs),
    /// Print the JSON Schema (2020-12) of the configuration file
    Schema(schema::SchemaArgs),
    /// Print the OpenAPI description of the HTTP listener
    #[cfg(feature = "http")]
    Openapi(http::openapi::OpenapiArgs),
    /// Explain what decides a request, and why, from the configuration alone
    #[command(before_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Print the limits of Envoy's rate limit files as a configuration of Weir
    #[cfg(feature = "envoy")]
    #[command(before_help = import_envoy::EXAMPLES)]
    ImportEnvoy(import_envoy::ImportEnvoyArgs),
    /// Simulate the decisions of strategies about a pattern of calls, without a server
    #[command(before_help = simulate::EXAMPLES)]
    Simulate(Box<simulate::SimulateArgs>),
    /// Show what a server and its nodes decide, and the consumers that call most
    #[cfg(feature = "usage")]
    #[command(before_help = usage::top::EXAMPLES)]
    Top(usage::top::TopArgs),
    /// Show the nodes of the deployment, their state, and the files that each has in force
    #[cfg(feature = "usage")]
    #[command(before_help = usage::nodes::EXAMPLES)]
    Nodes(server_args::AskArgs),
    /// Print the totals of decisions by time, as a table, CSV or JSON
    #[cfg(feature = "usage")]
    #[command(before_help = usage::EXAMPLES)]
    Usage(usage::UsageArgs),
    /// Check that a server is ready; exits 0 if it is, 1 if not, 2 on an error
    #[command(before_help = health::EXAMPLES)]
    Health(health::HealthArgs),
    /// Put load on a server, and report its answers and latencies; exits 0, 1 if calls failed, 2 on an error
    Load(Box<load::LoadArgs>),
    /// Print the completions of commands and options for a shell
    #[command(before_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Write the shell completions and man pages that packages have
    #[command(hide = true)]
    ReleaseFiles(release_files::ReleaseFilesArgs),
}

/// `weir` alone: `serve` with what the environment says.
#[derive(Debug, Parser)]
struct Bare {
    #[command(flatten)]
    serve: serve::ServeArgs,
}

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    #[cfg(feature = "envoy")]
    let called = ratelimit::called_as(std::env::args_os());
    #[cfg(not(feature = "envoy"))]
    let called: Option<std::convert::Infallible> = None;
    // Other programs' arguments are not ours to judge.
    let cli = if called.is_some() { Cli::parse_from(["weir"]) } else { Cli::parse() };
    let unread = environment::unread();
    for variable in &unread {
        if let Unread::Misspelled { name, meant } = variable {
            return fail(&format!("nothing reads the variable {name}; did you mean {meant}?"), 2);
        }
    }
    #[cfg(feature = "envoy")]
    if let Some(args) = called {
        return ratelimit::run(args, &unread);
    }
    let command = cli.command.unwrap_or_else(|| Command::Serve(Box::new(Bare::parse_from(["weir"]).serve)));
    match command {
        Command::Serve(args) => serve(*args, &cli.log, &unread),
        #[cfg(feature = "envoy")]
        Command::Ratelimit(args) => ratelimit::run(args, &unread),
        Command::Allow(args) => allow::run(args),
        #[cfg(feature = "leases")]
        Command::Lease(args) => leases::run(args),
        Command::Count(args) => count::run(args),
        Command::Debit(args) => undo::run_debit(args),
        Command::Settle(args) => settle::run(args),
        Command::Cancel(args) => undo::run_cancel(args),
        Command::Reset(args) => undo::run_reset(args),
        #[cfg(feature = "usage")]
        Command::Nodes(args) => usage::nodes::run(args),
        #[cfg(feature = "usage")]
        Command::Usage(args) => usage::run(args),
        Command::Health(args) => health::run(args),
        #[cfg(feature = "queues")]
        Command::Queue(args) => queues::run(args),
        #[cfg(feature = "control")]
        Command::Bans(args) => control::bans::run(args),
        #[cfg(feature = "control")]
        Command::Control(args) => control::run(args),
        #[cfg(feature = "control")]
        Command::Reload(args) => control::reload::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Schema(schema::SchemaArgs {}) => schema::run(),
        #[cfg(feature = "http")]
        Command::Openapi(http::openapi::OpenapiArgs {}) => http::openapi::run(),
        Command::Explain(args) => explain::run(args),
        #[cfg(feature = "envoy")]
        Command::ImportEnvoy(args) => import_envoy::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        #[cfg(feature = "usage")]
        Command::Top(args) => usage::top::run(args),
        Command::Load(args) => load::run(*args),
        Command::ReleaseFiles(args) => release_files::run(&args),
    }
}

fn serve(args: serve::ServeArgs, log: &str, unread: &[Unread]) -> ExitCode {
    let log = match init_logs(log, Format::fitting()) {
        Ok(log) => log,
        Err(reason) => return fail(&reason, 2),
    };
    log_panics();
    environment::warn(unread);
    ended(serve::run(args), &log)
}

/// The end of a server: its last lines, and its exit code.
fn ended(served: anyhow::Result<()>, log: &LineWriter) -> ExitCode {
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Several lines are queued one by one, so that a page of them fits as far as possible.
            format!("error: {error:#}\n").split_inclusive('\n').for_each(|line| log.push(line.as_bytes()));
            ExitCode::FAILURE
        }
    };
    log.flush(LAST_WORDS);
    code
}

/// Exits 0 if the answer is positive, 1 if it is negative, and 2 on an error.
fn answered(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => fail(&format!("{error:#}"), 2),
    }
}

/// Exits 0, or 2 on an error.
fn done(done: anyhow::Result<()>) -> ExitCode {
    answered(done.map(|()| true))
}

/// Exits 0, or 1 if nothing could be printed.
fn printed(printed: std::io::Result<()>) -> ExitCode {
    printed.map_or_else(|error| fail(&error.to_string(), 1), |()| ExitCode::SUCCESS)
}

/// Says why on stderr and gives the exit code back.
fn fail(reason: &str, code: u8) -> ExitCode {
    say(&format!("error: {reason}"));
    ExitCode::from(code)
}

/// A log filter, as `--log` is written.
fn log_filter(text: &str) -> Result<String, String> {
    check_filter(text).map(|()| text.to_owned())
}

/// `NAME=VALUE`, as `--attribute` is written.
fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as region=eu".to_owned()),
    }
}

/// A span of time as options are given one: `500ms`, `2s`, `1m`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        "d" => Duration::from_secs(86_400),
        _ => return Err("expected a number and a unit: 500ms, 2s, 1m".to_owned()),
    };
    let count: u32 = digits.parse().map_err(|_| "expected a whole number and a unit: 500ms, 2s, 1m")?;
    match unit.checked_mul(count) {
        Some(span) if span > Duration::ZERO => Ok(span),
        _ => Err("it must be more than 0".to_owned()),
    }
}

/// A duration above 0, as the configuration writes it.
fn positive_span(text: &str) -> Result<Micros, String> {
    match weir_config::span(text)? {
        Micros::ZERO => Err("it must be at least 1us".to_owned()),
        span => Ok(span),
    }
}
