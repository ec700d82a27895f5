//! Other numbers for limits of the file, in the file's own words: what live control changes.
//!
//! The file's text of a limit is patched and read again, so that bounds and messages are those of the file.

use std::collections::{BTreeMap, HashMap};

use weir_core::algorithm::Algorithm;
use weir_core::strategy::{CONCURRENCY, Strategy};

use super::algorithms::algorithm;
use super::costs::percent;
use super::errors::{ConfigErrors, MistakeReport, Position};
use super::fields::{KeyedValue, Mapping, NamedNode};
use super::short_numbers::{Patch, patch_of};
use super::strategies::{self, OtherSections};
use super::yaml_node::{Content, YamlNode};

/// Numbers by the names of limits: `50/1s`, or keys of the limit's algorithm, such as `{ rate: 50/1s, burst: 100 }`.
pub type LimitNumbers = BTreeMap<String, String>;

/// Numbers beside the algorithm's.
const OUTER_NUMBERS: [&str; 2] = ["max_debt", "near_limit"];

/// Keys of a limit that are not its algorithm's.
const OTHER_KEYS: [&str; 8] = ["name", "per", "mode", "ban", "cost", "charge", "unit", "near_limit"];

/// The strategies as the file writes them.
#[derive(Debug, Clone, Default)]
pub struct WrittenStrategies(HashMap<String, YamlNode>);

impl WrittenStrategies {
    /// Reads the strategies of a file's tree.
    pub(super) fn from_tree(tree: &YamlNode) -> Self {
        let all = tree.get("strategies").into_iter().flat_map(YamlNode::entries);
        Self(all.filter_map(|(key, node)| Some((key.text()?.to_owned(), node.clone()))).collect())
    }

    /// The strategy `name` with other numbers for some limits; or every mistake, a line each.
    pub fn strategy(&self, name: &str, numbers: &LimitNumbers) -> Result<Strategy, Vec<String>> {
        let mut node = self.node(name)?.clone();
        let mut mistakes = patched(&mut node, numbers).err().unwrap_or_default();
        let names = limit_names(&node);
        let path = format!("strategies.{name}");
        let entry = KeyedValue { name, key_at: node.at, value: NamedNode::new(&node, path.clone()) };
        let mut report = MistakeReport::default();
        let read = strategies::strategy(&entry, OtherSections::LIVE, &mut Vec::new(), &mut report);
        match report.finish("", read) {
            Ok(Ok((strategy, _))) if mistakes.is_empty() => return Ok(strategy),
            Ok(_) => {}
            Err(errors) => mistakes.extend(lines(&errors, &path, &names)),
        }
        Err(mistakes)
    }

    /// `base` with other numbers for some limits, as an override; or every mistake, a line each.
    pub fn overridden(&self, base: &Strategy, numbers: &LimitNumbers) -> Result<Strategy, Vec<String>> {
        let node = self.node(base.name())?;
        let (mut strategy, mut mistakes) = (base.clone(), Vec::new());
        if numbers.is_empty() {
            mistakes
                .push("limits: an override says which limits have other numbers; name at least one".into());
        }
        for (name, text) in numbers {
            let changed = base
                .check_override(name)
                .map_err(|error| vec![format!("limits.{name}: {error}")])
                .and_then(|()| limit_with(node, name, text));
            match changed {
                Ok((algorithm, near)) => {
                    let fits = strategy.override_limit(name, algorithm);
                    let near = near.map_or(Ok(()), |percent| strategy.override_near(name, percent));
                    let fits = fits.and(near);
                    mistakes.extend(fits.err().map(|error| format!("limits.{name}: {error}")));
                }
                Err(more) => mistakes.extend(more),
            }
        }
        if mistakes.is_empty() { Ok(strategy) } else { Err(mistakes) }
    }

    /// The numbers of a limit as the file writes them.
    #[must_use]
    pub fn written(&self, strategy: &str, limit: &str) -> Option<String> {
        let item = limit_node(self.0.get(strategy)?, limit)?;
        let (key, value) = algorithm_entry(item)?;
        let pairs = value.entries().iter().filter_map(|(key, value)| Some((key.text()?, value.text()?)));
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}: {value}")).collect();
        Some(format!("{}: {{ {} }}", key.text()?, pairs.join(", ")))
    }

    fn node(&self, name: &str) -> Result<&YamlNode, Vec<String>> {
        self.0.get(name).ok_or_else(|| vec![format!("strategy: the files have no strategy `{name}`")])
    }
}

/// Writes numbers into the node of a strategy.
fn patched(strategy: &mut YamlNode, numbers: &LimitNumbers) -> Result<(), Vec<String>> {
    let mut mistakes = Vec::new();
    if numbers.is_empty() {
        mistakes.push("limits: name at least one limit with its numbers".to_owned());
    }
    let known = limit_names(strategy);
    for (name, text) in numbers {
        let Some(item) = limit_node_mut(strategy, name) else {
            mistakes
                .push(format!("limits.{name}: there is no limit of this name; it has {}", quoted(&known)));
            continue;
        };
        match patch_of(algorithm_name(item), text) {
            Ok(patch) => apply(item, patch),
            Err(reason) => mistakes.push(format!("limits.{name}: {reason}")),
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// The algorithm of one limit with other numbers, and its `near_limit` if they have one.
fn limit_with(strategy: &YamlNode, name: &str, text: &str) -> Result<(Algorithm, Option<u8>), Vec<String>> {
    let named = |reason: String| vec![format!("limits.{name}: {reason}")];
    let Some(item) = limit_node(strategy, name) else {
        return Err(named("the files have no limit of this name".to_owned()));
    };
    let mut item = item.clone();
    let patch = patch_of(algorithm_name(&item), text).map_err(named)?;
    if let Content::Map(entries) = &mut item.content {
        entries.retain(|(key, _)| key.text().is_none_or(|key| !OTHER_KEYS.contains(&key)));
    }
    apply(&mut item, patch);
    let mut report = MistakeReport::default();
    let mut fields = Mapping::new(&NamedNode::new(&item, "limits[0]".to_owned()), &mut report);
    let made = algorithm(&mut fields, &mut report);
    let near = fields.read("near_limit", &mut report, percent);
    fields.finish(&mut report);
    match report.finish("", made) {
        Ok(Some(made)) => Ok((made, near)),
        Ok(None) => Err(named("has no numbers".to_owned())),
        Err(errors) => Err(lines(&errors, "", &[name.to_owned()])),
    }
}

/// Writes a patch into a limit, or into the permits of a strategy.
fn apply(item: &mut YamlNode, patch: Patch) {
    let at = item.at;
    let (outer, inner): (Vec<_>, Vec<_>) =
        patch.set.into_iter().partition(|(key, _)| OUTER_NUMBERS.contains(&key.as_str()));
    if let Content::Map(entries) = &mut item.content {
        outer.into_iter().for_each(|(key, text)| set(entries, at, &key, text));
        let algorithm = entries.iter_mut().find(|(key, _)| is_algorithm(key));
        if let Some((_, YamlNode { content: Content::Map(entries), .. })) = algorithm {
            entries.retain(|(key, _)| key.text().is_none_or(|key| !patch.unset.contains(&key)));
            inner.into_iter().for_each(|(key, text)| set(entries, at, &key, text));
        }
    }
}

fn set(entries: &mut Vec<(YamlNode, YamlNode)>, at: Position, key: &str, text: String) {
    let node = |text| YamlNode { at, content: Content::Scalar { text, quoted: false }, cut: false };
    match entries.iter_mut().find(|(known, _)| known.text() == Some(key)) {
        Some((_, value)) => *value = node(text),
        None => entries.push((node(key.to_owned()), node(text))),
    }
}

/// The mistakes without positions: `limits.NAME: KEY: REASON`.
fn lines(errors: &ConfigErrors, path: &str, names: &[String]) -> Vec<String> {
    let line = |error: &super::ConfigError| {
        let path = error.path.strip_prefix(path).unwrap_or(&error.path).trim_start_matches('.');
        let limit = path.strip_prefix("limits[").and_then(|rest| rest.split_once(']'));
        let limit = limit.and_then(|(place, rest)| Some((names.get(place.parse::<usize>().ok()?)?, rest)));
        match limit {
            Some((name, rest)) => {
                format!("limits.{name}: {}: {}", rest.trim_start_matches('.'), error.reason)
            }
            None => format!("limits.{path}: {}", error.reason),
        }
    };
    errors.errors().iter().map(line).collect()
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The limits' names; that of permits is `concurrency`.
fn limit_names(strategy: &YamlNode) -> Vec<String> {
    if strategy.get(CONCURRENCY).is_some() {
        return vec![CONCURRENCY.to_owned()];
    }
    let items = strategy.get("limits").into_iter().flat_map(YamlNode::items);
    items.map(|item| item.get("name").and_then(YamlNode::text).unwrap_or_default().to_owned()).collect()
}

/// The node that has the algorithm: a limit, or the strategy itself if it has permits.
fn limit_node<'t>(strategy: &'t YamlNode, name: &str) -> Option<&'t YamlNode> {
    if strategy.get(CONCURRENCY).is_some() {
        return (name == CONCURRENCY).then_some(strategy);
    }
    strategy
        .get("limits")?
        .items()
        .iter()
        .find(|item| item.get("name").and_then(YamlNode::text) == Some(name))
}

fn limit_node_mut<'t>(strategy: &'t mut YamlNode, name: &str) -> Option<&'t mut YamlNode> {
    if strategy.get(CONCURRENCY).is_some() {
        return (name == CONCURRENCY).then_some(strategy);
    }
    let Content::Map(entries) = &mut strategy.content else { return None };
    let (_, limits) = entries.iter_mut().find(|(key, _)| key.text() == Some("limits"))?;
    let Content::List(items) = &mut limits.content else { return None };
    items.iter_mut().find(|item| item.get("name").and_then(YamlNode::text) == Some(name))
}

fn algorithm_name(item: &YamlNode) -> &str {
    algorithm_entry(item).and_then(|(key, _)| key.text()).unwrap_or_default()
}

fn algorithm_entry(item: &YamlNode) -> Option<(&YamlNode, &YamlNode)> {
    item.entries().iter().find(|(key, _)| is_algorithm(key)).map(|(key, value)| (key, value))
}

fn is_algorithm(key: &YamlNode) -> bool {
    key.text().is_some_and(|key| key == CONCURRENCY || super::algorithms::is_algorithm(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, ConfigOverrides};

    const FILE: &str = "
server: { control: true }
strategies:
  api:
    limits:
      - { name: burst, per: [consumer], token_bucket: { rate: 10/s, burst: 20 }, max_debt: 5 }
      - { name: minute, per: [consumer], fixed_window: { limit: 100, window: 1m, spread: true } }
      - { name: all, per: [], sliding_log: { limit: 50, window: 1s } }
    single_slot: true
  jobs: { concurrency: { limit: 4, per: [consumer], ttl: 30s } }
";

    fn numbers(all: &[(&str, &str)]) -> LimitNumbers {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn config() -> Config {
        Config::parse(FILE, "weir.yaml", &ConfigOverrides::default()).unwrap()
    }

    #[test]
    fn numbers_change_and_the_rest_stays_as_the_file_has_it() {
        let config = config();
        let base = &config.rules.strategies()[0];
        let changed = numbers(&[("burst", "5/s"), ("minute", "{ limit: 7 }")]);
        let read = config.written.strategy("api", &changed).unwrap();
        let same = FILE.replace("rate: 10/s", "rate: 5/s").replace("limit: 100", "limit: 7");
        let same = Config::parse(&same, "weir.yaml", &ConfigOverrides::default()).unwrap();
        assert!(read.means_the_same(&same.rules.strategies()[0]), "{read:?}");
        let overridden = config.written.overridden(base, &numbers(&[("minute", "9/2m")])).unwrap();
        let limits: Vec<u64> = overridden.algorithms().iter().map(Algorithm::limit).collect();
        assert_eq!(limits, [20, 9, 50]);
        let jobs = config.written.strategy("jobs", &numbers(&[("concurrency", "2")])).unwrap();
        let same = FILE.replace("limit: 4", "limit: 2");
        let same = Config::parse(&same, "weir.yaml", &ConfigOverrides::default()).unwrap();
        assert!(jobs.means_the_same(&same.rules.strategies()[1]));
        let written = config.written.written("api", "burst");
        assert_eq!(written.as_deref(), Some("token_bucket: { rate: 10/s, burst: 20 }"));
    }

    #[test]
    fn near_limit_is_a_number_of_any_limit() {
        let file = FILE.replace("burst: 20 }", "burst: 20 }, near_limit: 80%");
        let config = Config::parse(&file, "weir.yaml", &ConfigOverrides::default()).unwrap();
        let near = |strategy: &Strategy| {
            (0..3).map(|place| strategy.marks().unwrap().near_percent(place)).collect::<Vec<_>>()
        };
        let changed =
            numbers(&[("burst", "{ near_limit: 60% }"), ("minute", "{ limit: 7, near_limit: 50% }")]);
        let read = config.written.strategy("api", &changed).unwrap();
        assert_eq!(near(&read), [Some(60), Some(50), None]);
        let base = &config.rules.strategies()[0];
        let overridden =
            config.written.overridden(base, &numbers(&[("minute", "{ near_limit: 70% }")])).unwrap();
        assert_eq!(near(&overridden), [Some(80), Some(70), None]);
        assert_eq!(overridden.algorithms()[1].limit(), 100, "as the files have it");
        let kept = config.written.overridden(base, &numbers(&[("burst", "5/s")])).unwrap();
        assert_eq!(near(&kept), [Some(80), None, None]);
        for text in ["{ near_limit: 0% }", "{ near_limit: 101% }", "{ near_limit: 80 }"] {
            for mistakes in [
                config.written.strategy("api", &numbers(&[("minute", text)])).unwrap_err(),
                config.written.overridden(base, &numbers(&[("minute", text)])).unwrap_err(),
            ] {
                assert!(mistakes[0].starts_with("limits.minute: near_limit: "), "{mistakes:?}");
                assert!(mistakes[0].contains("write 1% to 100%"), "{mistakes:?}");
            }
        }
        let permits = config.written.strategy("jobs", &numbers(&[("concurrency", "{ near_limit: 80% }")]));
        assert!(permits.is_err(), "permits have none");
    }

    #[test]
    fn every_mistake_names_the_limit_the_value_and_the_bound() {
        let config = config();
        let base = &config.rules.strategies()[0];
        let given = numbers(&[
            ("burst", "0/s"),
            ("minute", "{ limit: x, windw: 1s, spread: false }"),
            ("hour", "1/h"),
            ("all", "many"),
        ]);
        let expected = [
            "limits.all: \"many\" is neither a number nor a rate such as 50/1s nor keys such as { limit: 50, window: 1s }",
            "limits.hour: there is no limit of this name; it has `burst`, `minute`, `all`",
            "limits.minute: `windw` is no key of numbers; did you mean `window`?; `spread` is no number: live control changes numbers only, and files the rest",
            "limits.burst: token_bucket.rate: 0 is out of bounds: a rate of 0 never refills; it must be at least 1 per period",
        ];
        assert_eq!(config.written.strategy("api", &given).unwrap_err(), expected);
        let given = numbers(&[("minute", "{ limit: x, window: 0s }"), ("all", "5/s")]);
        let mistakes = config.written.overridden(base, &given).unwrap_err();
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert!(mistakes[0].contains("limits.all: limit `all` of strategy `api`"), "{mistakes:?}");
        assert!(mistakes[1].starts_with("limits.minute: fixed_window.limit: \"x\""), "{mistakes:?}");
        let jobs = config.written.strategy("jobs", &numbers(&[("concurrency", "{ ttl: 0s }")])).unwrap_err();
        assert!(jobs[0].starts_with("limits.concurrency.ttl: "), "{jobs:?}");
        assert!(config.written.strategy("none", &numbers(&[("a", "1")])).is_err());
    }
}
