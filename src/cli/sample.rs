//! The example commands that `weir serve` prints, adapted to its configuration.

use weir_config::Config;
use weir_core::strategy::{Field, Strategy};

use super::EXAMPLE_CONSUMER as CONSUMER;
use super::feature_texts::{examples, last_examples};
use super::quoted::quoted;

/// The names that the documentation and the built-in example use.
const RESOURCE: &str = "zewtopia.com/tigerfeeding";

/// Returns the arguments of `weir`, one command each: for strategies, and of features; if there is none of them, what features
/// say then.
pub(super) fn commands(config: &Config) -> Vec<String> {
    let question = native(config).map(|question| format!("allow {question}"));
    let all: Vec<String> = question.into_iter().chain(examples(config)).collect();
    if all.is_empty() { last_examples(config).collect() } else { all }
}

/// A question that a configuration answers by its rate limits.
pub(super) struct SampleQuestion<'c> {
    pub(super) resource: String,
    pub(super) consumer: &'static str,
    /// The strategy, unless the resource has one.
    pub(super) strategy: Option<&'c str>,
    /// The names of its attributes; each has the value `example`.
    pub(super) attributes: Vec<&'c str>,
}

/// Returns a question for a resource that has rate limits, or for any with the first strategy that has.
pub(super) fn question(config: &Config) -> Option<SampleQuestion<'_>> {
    let (resource, strategy, named) = match configured_resource(config) {
        Some((resource, strategy)) => (resource, strategy, None),
        None => {
            let first = config.rules.strategies().iter().find(|strategy| strategy.permits().is_none())?;
            (RESOURCE.to_owned(), &**first, Some(first.name()))
        }
    };
    Some(SampleQuestion { resource, consumer: CONSUMER, strategy: named, attributes: attributes(strategy) })
}

/// Returns a command for a strategy with rate limits.
fn native(config: &Config) -> Option<String> {
    let SampleQuestion { resource, consumer, strategy, attributes } = question(config)?;
    let mut command = format!("{} {consumer}", quoted(&resource));
    if let Some(name) = strategy {
        command.push_str(&format!(" --strategy {name}"));
    }
    for name in attributes {
        command.push_str(&format!(" --attribute {name}=example"));
    }
    Some(command)
}

/// A resource that the configuration gives rate limits: that of the documentation, or one of the first pattern.
fn configured_resource(config: &Config) -> Option<(String, &Strategy)> {
    let mut patterns: Vec<_> = config.rules.resources().iter().map(|(pattern, _)| pattern).collect();
    patterns.sort_by_key(|pattern| pattern.place());
    let names = patterns.iter().map(|pattern| pattern.to_string().replace('*', "example"));
    std::iter::once(RESOURCE.to_owned()).chain(names).find_map(|name| {
        let strategy = &**config.rules.resolve(&name, "").ok()?.strategy;
        strategy.permits().is_none().then_some((name, strategy))
    })
}

/// Returns the attributes in the scopes of the limits, without duplicates.
fn attributes(strategy: &Strategy) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for field in strategy.limits().iter().flat_map(|limit| limit.scope.fields()) {
        if let Field::Attribute(name) = field
            && !names.contains(&&**name)
        {
            names.push(name);
        }
    }
    names
}
