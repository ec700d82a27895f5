//! All domains, and finding the rule for a descriptor of one of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::level::{Level, Node};
use super::{Descriptor, Draft, Matched, Rule, RuleEntry, Step};
use crate::strategy::Owner;

/// Every domain of one set of files. The default has none.
#[derive(Debug, Default)]
pub struct Domains {
    by_name: HashMap<Box<str>, Domain>,
    rules: Vec<Arc<Rule>>,
    /// Domains that have no good version.
    missing: HashSet<Box<str>>,
    /// True if there may be more of those.
    is_blind: bool,
}

/// One domain.
#[derive(Debug)]
pub struct Domain {
    name: Box<str>,
    index: usize,
    /// Owner of its rules' keys.
    owner: Arc<Owner>,
    root: Level,
}

impl Domains {
    /// The domains of these names and descriptors. Of two with one name the first counts.
    #[must_use]
    pub fn new(domains: impl IntoIterator<Item = (String, Vec<Descriptor>)>) -> Self {
        let mut compiled = Self::default();
        for (name, descriptors) in domains {
            if compiled.by_name.contains_key(name.as_str()) {
                continue;
            }
            let owner = Arc::new(Owner::of_domain(&name));
            let place = (name.as_str(), &owner);
            let root = level(descriptors, place, &name, &mut Vec::new(), &mut compiled.rules);
            let domain = Domain { name: name.as_str().into(), index: compiled.by_name.len(), owner, root };
            compiled.by_name.insert(name.into(), domain);
        }
        compiled
    }

    /// Sets the domains that have no good version; `is_blind` if there may be more, whose names are not known.
    #[must_use]
    pub fn missing<'n>(mut self, names: impl IntoIterator<Item = &'n str>, is_blind: bool) -> Self {
        self.missing = names.into_iter().map(Into::into).collect();
        self.is_blind = is_blind;
        self
    }

    /// True if the domain of this name may be configured but has no good version.
    #[must_use]
    pub fn is_missing(&self, domain: &str) -> bool {
        (self.is_blind || self.missing.contains(domain)) && !self.by_name.contains_key(domain)
    }

    /// The domain of this name.
    #[must_use]
    pub fn find(&self, domain: &str) -> Option<&Domain> {
        self.by_name.get(domain)
    }

    /// All rules, in the order of their [`Rule::index`].
    #[must_use]
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// All domains, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Domain> {
        self.by_name.values()
    }

    /// How many domains there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True if there is no domain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl Domain {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Owner of the keys of its rules and of overrides in its requests.
    #[must_use]
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Index among all domains, from 0 without gaps.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The rule of a descriptor, given its entries as keys and values. No entries match no rule.
    pub fn find<'e>(&self, entries: impl IntoIterator<Item = (&'e str, &'e str)>) -> Option<Matched<'_>> {
        let (mut level, mut last) = (&self.root, None);
        for (key, value) in entries {
            let (_, node) = level.find(key, value)?;
            (level, last) = (&node.next, Some(node));
        }
        let rule = last?.rule.as_ref()?;
        Some(Matched { rule })
    }

    /// The choices on the level after these entries, in the order of the file; empty if one of the entries matches
    /// nothing.
    pub fn choices<'d, 'e>(
        &'d self,
        entries: impl IntoIterator<Item = (&'e str, &'e str)>,
    ) -> impl Iterator<Item = &'d str> {
        let mut level = Some(&self.root);
        for (key, value) in entries {
            level = level.and_then(|level| level.find(key, value)).map(|(_, node)| &node.next);
        }
        level.into_iter().flat_map(Level::paths)
    }

    /// The steps of [`Domain::find`]: one per entry, up to the first without a match.
    pub fn steps<'d, 'e: 'd>(
        &'d self,
        entries: impl IntoIterator<Item = (&'e str, &'e str)> + 'd,
    ) -> impl Iterator<Item = Step<'d>> {
        let mut level = Some(&self.root);
        entries.into_iter().map_while(move |(key, value)| {
            let (how, node) = level.take()?.find(key, value)?;
            level = Some(&node.next);
            Some(Step { path: &node.path, how, has_rule: node.rule.is_some() })
        })
    }
}

/// Compiles a level of `domain`, which has this name and owner, and all below it. `path` and `above` lead here.
fn level(
    mut descriptors: Vec<Descriptor>,
    domain: (&str, &Arc<Owner>),
    path: &str,
    above: &mut Vec<RuleEntry>,
    rules: &mut Vec<Arc<Rule>>,
) -> Level {
    let nodes = descriptors.iter_mut().map(|descriptor| {
        let own: Box<str> = descriptor.path().into();
        let path = format!("{path}.{own}");
        above.push(RuleEntry {
            path: own.clone(),
            key: descriptor.key.as_str().into(),
            shared: descriptor.share_threshold.then(|| descriptor.matcher.text().into()),
            value_to_metric: descriptor.value_to_metric,
        });
        let rule = descriptor.rule.take().map(|draft| {
            let rule = Arc::new(rule(draft, rules.len(), domain, &path, above));
            rules.push(rule.clone());
            rule
        });
        let next = level(std::mem::take(&mut descriptor.descriptors), domain, &path, above, rules);
        above.pop();
        Node { path: own, rule, next }
    });
    let nodes = nodes.collect();
    Level::new(&descriptors, nodes)
}

fn rule(
    draft: Draft,
    index: usize,
    (domain, owner): (&str, &Arc<Owner>),
    path: &str,
    entries: &[RuleEntry],
) -> Rule {
    Rule {
        index,
        domain: domain.into(),
        path: path.into(),
        name: draft.name.into(),
        replaces: draft.replaces.into_iter().map(Into::into).collect(),
        shadow_mode: draft.shadow_mode,
        quota_mode: draft.quota_mode,
        detailed_metric: draft.detailed_metric,
        entries: entries.into(),
        metadata: draft.metadata,
        limit: draft.limit.map(|limit| limit.owned_by(owner)),
    }
}
