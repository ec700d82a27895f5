//! `weir allow --envoy DOMAIN KEY=VALUE,…`: a request in Envoy's protocol, and its answer.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use weir_load::client::Client;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::AllowArgs;
use crate::cli::costs::plain;
use crate::cli::envoy::entries;
use crate::cli::{attribute, render};

#[derive(Debug, clap::Args)]
pub(super) struct AskEnvoyArgs {
    /// Ask as Envoy does, with one descriptor
    #[arg(long, conflicts_with_all = ["peek", "attributes", "headers", "inline", "hold", "at_most", "reserve", "debit", "refund",
          "id", "wait"])]
    envoy: bool,
    /// With --envoy: one more entry, whose value may hold commas; may be given several times
    #[arg(long = "entry", value_parser = attribute, value_name = "KEY=VALUE", requires = "envoy")]
    entries: Vec<(String, String)>,
}

impl AskEnvoyArgs {
    /// True if the question is asked as Envoy does.
    pub(super) fn is_on(&self) -> bool {
        self.envoy
    }
}

/// Asks over Envoy's protocol, prints the answer, and returns true if the call is allowed.
pub(super) fn ask(args: AllowArgs) -> Result<bool> {
    let hits = plain(&args.costs).unwrap_or(1);
    let hits = u32::try_from(hits).with_context(|| format!("--cost {hits} is above {}", u32::MAX))?;
    let entries = entries(&args.consumer, &args.of_envoy.entries)?;
    let request = request(args.resource, entries, hits);
    let asked = async |client: &mut Client| client.should_rate_limit(request).await;
    let response = args.ask.server.answer(asked)?;
    args.ask.output.print(render::ENVOY_RESPONSE, &response, || text(&response))?;
    Ok(allows(&response))
}

/// Builds a request with one descriptor of `domain`.
fn request(domain: String, entries: Vec<(String, String)>, hits: u32) -> RateLimitRequest {
    let entries = entries.into_iter().map(|(key, value)| Entry { key, value }).collect();
    let descriptor = RateLimitDescriptor { entries, ..RateLimitDescriptor::default() };
    RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: hits }
}

/// True if Envoy would let the call pass.
fn allows(response: &RateLimitResponse) -> bool {
    response.overall_code() == Code::Ok
}

/// Formats the code and the rule's numbers.
fn text(response: &RateLimitResponse) -> String {
    let mut out = format!("{}\n", if allows(response) { "allowed: OK" } else { "denied: OVER_LIMIT" });
    for status in &response.statuses {
        let _ = writeln!(out, "  {}", numbers(status));
    }
    out
}

fn numbers(status: &DescriptorStatus) -> String {
    let Some(limit) = &status.current_limit else {
        return "no rule with a limit matches: nothing was charged".to_owned();
    };
    let unit = match limit.unit() {
        Unit::Unknown => "unit",
        Unit::Second => "second",
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Month => "month",
        Unit::Year => "year",
        Unit::Week => "week",
    };
    let reset = status.duration_until_reset.as_ref();
    let reset = reset.map(|span| format!(", full again in {}", render::duration(span)));
    format!(
        "{} of {} per {unit} remaining{}",
        status.limit_remaining,
        limit.requests_per_unit,
        reset.unwrap_or_default()
    )
}
