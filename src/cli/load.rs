//! `weir load`: a load generator, which measures throughput and latency.

mod args;
mod output;
mod progress;
mod server;
mod text;
mod until;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use weir_load::{LoadError, LoadReport, RunWatch};

pub(crate) use self::args::LoadArgs;
use self::output::LoadOutput;
use super::{done, fail, print};

const SOME_FAILED: u8 = 1;
const NO_REPORT: u8 = 2;

pub(crate) fn run(args: LoadArgs) -> ExitCode {
    let output = args.output;
    match args.until() {
        Ok(None) => {}
        Ok(Some(plan)) => return until_allowed(&plan, output),
        Err(error) => return fail(&format!("{error:#}"), NO_REPORT),
    }
    match load(args) {
        Ok(report) => {
            let text = match output {
                LoadOutput::Text | LoadOutput::Svg => text::report(&report),
                LoadOutput::Json => format!("{:#}\n", report.json()),
            };
            match print(&text) {
                Ok(()) if succeeded(&report) => ExitCode::SUCCESS,
                Ok(()) => ExitCode::from(SOME_FAILED),
                Err(error) => fail(&format!("the report cannot be printed: {error}"), NO_REPORT),
            }
        }
        Err(error) => fail(&format!("{error:#}"), NO_REPORT),
    }
}

fn until_allowed(plan: &until::UntilPlan, output: LoadOutput) -> ExitCode {
    done(until::run(plan, output).and_then(|text| Ok(print(&text)?)))
}

fn succeeded(report: &LoadReport) -> bool {
    report.counts.failed == 0 && report.ended_early.is_none()
}

fn load(args: LoadArgs) -> Result<LoadReport> {
    let (plan, is_quiet) = args.plan()?;
    let watch = Arc::new(RunWatch::default());
    let shown = progress::show(&plan, &watch, is_quiet);
    let report = weir_load::run(&plan, &watch);
    shown.end();
    report.map_err(|error| match &error {
        LoadError::Unreachable { .. } => anyhow::Error::new(error)
            .context("no server answers; start one with `weir serve`, or name one with --server"),
        LoadError::Refused { code, .. } if code == "UNIMPLEMENTED" => {
            anyhow::Error::new(error).context("is that the right --mode, and the port for gRPC?")
        }
        LoadError::Refused { code, .. } if code == "NOT_FOUND" => {
            anyhow::Error::new(error).context("name what it knows with --resource or --strategy")
        }
        _ => error.into(),
    })
}
