//! `weir explain --envoy DOMAIN KEY=VALUE,…`: shows the matching of a descriptor against Envoy's files, level by
//! level.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use weir_config::Config;
use weir_core::strategy::FailurePolicy;
use weir_envoy::files::{EnvoyFiles, EnvoyFolder};
use weir_envoy::rules::{Domain, Domains, How, Kind, RateLimit, Rule, Step};
use weir_envoy::settings::EnvoyConfig;

mod sample;

pub(super) use self::sample::{changes, example, summary};
use super::allow_output::AllowOutput;
use super::approximate::numbers;
use super::{attribute, say};

/// Maximum number of alternatives shown per level.
const SHOWN: usize = 8;

/// A descriptor, and the result of its matching.
struct ExplainedDescriptor<'a> {
    name: &'a str,
    entries: &'a [(String, String)],
    domain: Option<&'a Domain>,
    steps: Vec<Step<'a>>,
    rule: Option<&'a Rule>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainEnvoyArgs {
    /// Explain a descriptor that Envoy sends, by the files of envoyproxy/ratelimit
    #[arg(long, conflicts_with = "caller")]
    #[cfg_attr(feature = "queues", arg(conflicts_with = "queue"))]
    pub(super) envoy: bool,
    /// With --envoy: their directory [default: the one that the configuration names]
    #[arg(long, env = "WEIR_ENVOY_CONFIG", value_name = "DIR")]
    pub(super) envoy_config: Option<PathBuf>,
    /// With --envoy: several files may have one domain in common
    #[arg(long, requires = "envoy")]
    pub(super) merge_domains: bool,
    /// With --envoy: one more entry, whose value may hold commas; may be given several times
    #[arg(long = "entry", value_parser = attribute, value_name = "KEY=VALUE", requires = "envoy")]
    pub(super) entries: Vec<(String, String)>,
}

/// Explains a descriptor by the files of a directory.
pub(super) fn explain(
    folder: EnvoyFolder,
    merge_domains: bool,
    domain: &str,
    entries: &[(String, String)],
    output: AllowOutput,
) -> Result<String> {
    let files = EnvoyFiles::load(folder, merge_domains);
    let files = files.map_err(|errors| anyhow!("the files of Envoy have mistakes:\n{errors}"))?;
    warn(&files);
    let domains = files.compile();
    let explained = ExplainedDescriptor::new(&domains, domain, entries);
    Ok(match output {
        AllowOutput::Text => explained.text(&domains),
        AllowOutput::Json => explained.json()?,
    })
}

/// Returns where the rules come from, for the first lines of a node.
pub(super) fn source(config: &Config) -> Option<String> {
    let EnvoyConfig { config, xds, .. } = EnvoyConfig::from_config(config);
    let files = config.map(|folder| format!("  envoy   {}\n", folder.display()));
    files.or_else(|| Some(format!("  envoy   xDS of {}\n", xds?.server)))
}

/// Prints warnings about valid keys without effect.
pub(super) fn warn(files: &EnvoyFiles) {
    for warning in &files.warnings {
        say(&format!("warning: {warning}"));
    }
}

/// Parses `KEY=VALUE,KEY=VALUE`, and appends further entries, whose values may contain commas.
pub(super) fn entries(text: &str, further: &[(String, String)]) -> Result<Vec<(String, String)>> {
    let entry = |text: &str| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    let mut entries = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let help =
            "expected KEY=VALUE, such as remote_address=10.0.0.1; a value with a comma goes into --entry";
        entries.push(entry(part).with_context(|| format!("{part:?}: {help}"))?);
    }
    entries.extend_from_slice(further);
    Ok(entries)
}

fn pairs(entries: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

impl<'a> ExplainedDescriptor<'a> {
    fn new(domains: &'a Domains, name: &'a str, entries: &'a [(String, String)]) -> Self {
        let domain = domains.find(name);
        let steps = domain.map(|domain| domain.steps(pairs(entries)).collect()).unwrap_or_default();
        let rule = domain.and_then(|domain| domain.find(pairs(entries))).map(|rule| &**rule);
        Self { name, entries, domain, steps, rule }
    }

    fn text(&self, domains: &Domains) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let mut line = |name: &str, what: String| {
            let _ = writeln!(out, "{name:10}{what}");
        };
        let Some(domain) = self.domain else {
            let known = shown(domains.iter().map(Domain::name));
            line("domain", format!("{:?} is not configured (configured: {known})", self.name));
            line("rule", "none: the answer is OK, and nothing is charged".to_owned());
            return out;
        };
        line("domain", format!("{:?}", self.name));
        for (index, (key, value)) in self.entries.iter().enumerate() {
            let what = match self.steps.get(index) {
                Some(step) => format!("is `{}`: {}", step.path, because(step.how)),
                None if index == self.steps.len() => {
                    let above = self.entries.get(..index).unwrap_or_default();
                    format!(
                        "matches nothing of this level (configured: {})",
                        shown(domain.choices(pairs(above)))
                    )
                }
                None => "is not looked at".to_owned(),
            };
            line("entry", format!("{key:?}={value:?} {what}"));
        }
        match self.rule {
            None => line(
                "rule",
                format!("none, because {}: the answer is OK, and nothing is charged", self.reason()),
            ),
            Some(rule) => {
                line("rule", format!("`{}`{}", rule.path(), modes(rule)));
                line("limit", limit(rule));
                if let Some(counted) = rule.limit.as_ref().and_then(|limit| limit.strategy().approximate()) {
                    let (nodes, max_over) = (counted.bound.nodes(), counted.bound.max_over());
                    let bound = format!("a window admits at most {max_over} above the limit");
                    line("nodes", format!("{nodes} count on their own: {bound}"));
                }
                if rule.limit.is_some() {
                    line("counter", counter(rule));
                }
                if !rule.replaces.is_empty() {
                    let names = rule.replaces.iter().map(|name| &**name);
                    line("replaces", format!("limits of the same request that are named {}", shown(names)));
                }
            }
        }
        out
    }

    /// Returns the reason that no rule matches.
    fn reason(&self) -> &'static str {
        match self.steps.len() {
            0 if self.entries.is_empty() => "the descriptor has no entries",
            matched if matched < self.entries.len() => "an entry matches nothing, and a choice is final",
            _ => "the last entry ends on a descriptor without rate_limit",
        }
    }

    fn json(&self) -> Result<String> {
        let entries = self.entries.iter().enumerate().map(|(index, (key, value))| {
            let step = self.steps.get(index);
            let how = step.map(|step| match step.how {
                How::Exact => "exact",
                How::Pattern => "pattern",
                How::Default => "default",
            });
            json!({ "key": key, "value": value, "matches": step.map(|step| step.path), "how": how })
        });
        let value = json!({
            "domain": self.name,
            "domain_found": self.domain.is_some(),
            "entries": entries.collect::<Vec<_>>(),
            "rule": self.rule.map(|rule| json!({
                "path": rule.path(),
                "name": &*rule.name,
                "unlimited": rule.limit.is_none(),
                "requests_per_unit": rule.limit.as_ref().map(RateLimit::requests_per_unit),
                "unit": rule.limit.as_ref().map(|limit| limit.unit().name()),
                "unit_multiplier": rule.limit.as_ref().map(RateLimit::unit_multiplier),
                "algorithm": rule.limit.as_ref().map(|limit| algorithm(limit.kind())),
                "approximate": rule.limit.as_ref().and_then(|limit| limit.strategy().approximate()).map(numbers),
                "shadow_mode": rule.shadow_mode,
                "quota_mode": rule.quota_mode,
                "replaces": rule.replaces.iter().map(|name| &**name).collect::<Vec<_>>(),
                "shared": rule.entries.iter().map(|entry| entry.shared.is_some()).collect::<Vec<_>>(),
            })),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

const fn because(how: How) -> &'static str {
    match how {
        How::Exact => "this very value",
        How::Pattern => "no value is exactly this, and it is the first pattern in the file that matches",
        How::Default => "no value or pattern of the key matches, and this is for any other",
    }
}

fn shown<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(SHOWN + 1).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") + more }
}

fn modes(rule: &Rule) -> String {
    let named = if rule.name.is_empty() { String::new() } else { format!(", named `{}`", rule.name) };
    let shadow = if rule.shadow_mode { ", in shadow mode: what is over the limit passes" } else { "" };
    let quota = if rule.quota_mode { ", in quota mode: over only together with all such" } else { "" };
    format!("{named}{shadow}{quota}")
}

fn limit(rule: &Rule) -> String {
    let Some(limit) = &rule.limit else { return "unlimited: nothing is charged".to_owned() };
    let unit = match limit.unit_multiplier() {
        1 => limit.unit().name().to_owned(),
        count => format!("{count} {}s", limit.unit().name()),
    };
    let failure = match limit.strategy().on_store_failure() {
        FailurePolicy::Allow => "allowed",
        FailurePolicy::Deny => "denied",
        // Envoy's rules have no `local`.
        FailurePolicy::Error | FailurePolicy::Local(_) => "an error",
    };
    let requests = limit.requests_per_unit();
    format!("{requests} per {unit}, by {}; if the store fails, {failure}", algorithm(limit.kind()))
}

fn algorithm(kind: Kind) -> String {
    match kind {
        Kind::FixedWindow { count_rejected: false } => "fixed_window".to_owned(),
        Kind::FixedWindow { count_rejected: true } => "fixed_window, counting rejected requests".to_owned(),
        Kind::SlidingWindow => "sliding_window".to_owned(),
        Kind::SlidingLog { count_rejected: false } => "sliding_log".to_owned(),
        Kind::SlidingLog { count_rejected: true } => "sliding_log, counting rejected requests".to_owned(),
        Kind::Bucket { burst } => format!("token_bucket of {burst}"),
        Kind::IntervalRefill { burst } => format!("interval_refill of {burst}"),
    }
}

fn counter(rule: &Rule) -> String {
    let shared: Vec<&str> =
        rule.entries.iter().filter(|entry| entry.shared.is_some()).map(|entry| &*entry.path).collect();
    match shared.as_slice() {
        [] => "one for these very entries".to_owned(),
        shared => format!("one for all that match {}", self::shown(shared.iter().copied())),
    }
}
