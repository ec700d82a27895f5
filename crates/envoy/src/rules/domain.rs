//! All domains, and finding the rule for a descriptor of one of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::level::{Level, Node};
use super::{Descriptor, Draft, Rule, RuleEntry, SharedParts, Step};
use weir_core::strategy::Owner;

/// Every domain of one set of files. The default has none.
#[derive(Debug, Default)]
pub struct Domains {
    /// Callers only look names up, and files alone add them, so no caller can make them collide.
    by_name: HashMap<Box<str>, Domain, RandomState>,
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
    pub fn new(domains: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<[Descriptor]>)>) -> Self {
        let (mut compiled, mut parts) = (Self::default(), SharedParts::default());
        for (name, descriptors) in domains {
            compiled.add(name.as_ref(), descriptors.as_ref(), &mut parts);
        }
        compiled
    }

    fn add(&mut self, name: &str, descriptors: &[Descriptor], parts: &mut SharedParts) {
        if self.by_name.contains_key(name) {
            return;
        }
        let owner = Arc::new(Owner::of_domain(name));
        let (domain, rules) = (Arc::from(name), &mut self.rules);
        let mut compiler = Compiler { domain, owner: &owner, rules, parts, above: Vec::new() };
        let root = compiler.level(descriptors);
        let domain = Domain { name: name.into(), index: self.by_name.len(), owner, root };
        self.by_name.insert(name.into(), domain);
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
    #[inline]
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

    /// Number of domains.
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
    /// Name of the domain.
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
    pub fn find<'e>(&self, entries: impl IntoIterator<Item = (&'e str, &'e str)>) -> Option<&Arc<Rule>> {
        let (mut level, mut last) = (&self.root, None);
        for (key, value) in entries {
            let (_, node) = level.find(key, value)?;
            (level, last) = (&node.next, Some(node));
        }
        last?.rule.as_ref()
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
            Some(Step { path: &node.entry.path, how, has_rule: node.rule.is_some() })
        })
    }
}

/// Compiles the levels of one domain.
struct Compiler<'c> {
    domain: Arc<str>,
    owner: &'c Arc<Owner>,
    /// The rules of all domains.
    rules: &'c mut Vec<Arc<Rule>>,
    parts: &'c mut SharedParts,
    /// The entries that lead here.
    above: Vec<Arc<RuleEntry>>,
}

impl Compiler<'_> {
    /// Compiles a level, and all below it.
    fn level(&mut self, descriptors: &[Descriptor]) -> Level {
        let mut nodes = Vec::with_capacity(descriptors.len());
        for descriptor in descriptors {
            let entry = self.parts.entry(descriptor);
            self.above.push(Arc::clone(&entry));
            let rule = descriptor.rule.as_deref().map(|draft| self.rule(draft));
            let next = self.level(&descriptor.descriptors);
            self.above.pop();
            nodes.push(Node { entry, rule, next });
        }
        Level::new(descriptors, nodes)
    }

    fn rule(&mut self, draft: &Draft) -> Arc<Rule> {
        let limit = draft.limit.clone().map(|limit| self.parts.owned(limit, self.owner));
        let rule = Arc::new(Rule {
            index: self.rules.len(),
            domain: Arc::clone(&self.domain),
            name: draft.name.as_str().into(),
            replaces: draft.replaces.iter().map(|name| name.as_str().into()).collect(),
            shadow_mode: draft.shadow_mode,
            quota_mode: draft.quota_mode,
            detailed_metric: draft.detailed_metric,
            entries: self.above.as_slice().into(),
            metadata: draft.metadata.clone(),
            limit,
        });
        self.rules.push(Arc::clone(&rule));
        rule
    }
}
