//! Converts each rule of Envoy's files to a strategy of Weir, and lists lost features.
//!
//! A descriptor `[a=1, b=2]` of domain `d` becomes the resource `d/a=1/b=2`. If only the last value may vary, a
//! pattern of resources selects the strategy, and the scope is the resource. If another one varies, no pattern can:
//! the caller names the strategy, and the values are attributes.

use std::collections::HashSet;

use weir_core::key::MAX_PART;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Descriptor, Draft, Matcher, RateLimit};

use super::names::GivenNames;

/// A converted rule.
#[derive(Debug)]
pub(super) struct Imported {
    /// Its path in the files.
    pub(super) path: String,
    /// The name of the strategy.
    pub(super) strategy: String,
    /// The pattern of resources that selects it, if one can.
    pub(super) pattern: Option<String>,
    /// Its scope.
    pub(super) scope: Vec<String>,
    /// The required attributes, each with the key of its entry.
    pub(super) attributes: Vec<(String, String)>,
    /// The limit; `None` is unlimited.
    pub(super) limit: Option<RateLimit>,
    /// Features that cannot be expressed.
    pub(super) lost: Vec<String>,
}

/// Converts all rules of the files, in order.
pub(super) fn all(files: &EnvoyFiles) -> Vec<Imported> {
    let mut import = Import::default();
    for (domain, descriptors) in &files.domains {
        import.level(domain, descriptors, &mut Vec::new());
    }
    import.rules
}

#[derive(Default)]
struct Import {
    rules: Vec<Imported>,
    names: GivenNames,
    patterns: HashSet<String>,
}

impl Import {
    fn level<'d>(&mut self, domain: &str, descriptors: &'d [Descriptor], above: &mut Vec<&'d Descriptor>) {
        for descriptor in descriptors {
            above.push(descriptor);
            if let Some(draft) = &descriptor.rule {
                self.rule(domain, above, draft);
            }
            self.level(domain, &descriptor.descriptors, above);
            above.pop();
        }
    }

    fn rule(&mut self, domain: &str, entries: &[&Descriptor], draft: &Draft) {
        let paths: Vec<String> = entries.iter().map(|entry| entry.path()).collect();
        let mut lost = lost(entries, draft);
        let pattern = match &draft.limit {
            Some(_) => self.pattern(domain, entries).map_err(|reason| lost.push(reason)).ok(),
            None => None,
        };
        let varying = |entry: &&&Descriptor| varies(entry) && !entry.share_threshold;
        let mut taken = GivenNames::default();
        let (mut scope, mut attributes) = (Vec::new(), Vec::new());
        match &pattern {
            Some(_) if entries.iter().any(|entry| varying(&entry)) => scope.push("resource".to_owned()),
            Some(_) => {}
            None => {
                for entry in entries.iter().filter(varying) {
                    let attribute = taken.attribute(&entry.key);
                    scope.push(attribute.clone());
                    attributes.push((attribute, entry.key.to_string()));
                }
            }
        }
        self.rules.push(Imported {
            path: format!("{domain}.{}", paths.join(".")),
            strategy: self.names.strategy(&format!("{domain}/{}", paths.join("/"))),
            pattern,
            scope,
            attributes,
            limit: draft.limit.clone(),
            lost,
        });
    }

    /// Returns the pattern of the resources with this rule, or the reason that none exists.
    fn pattern(&mut self, domain: &str, entries: &[&Descriptor]) -> Result<String, String> {
        let none = |reason: &str| {
            Err(format!("no pattern of resources finds it, {reason}: callers name the strategy"))
        };
        let mut pattern = domain.to_owned();
        for (index, entry) in entries.iter().enumerate() {
            let last = index + 1 == entries.len();
            let value = entry.matcher.text();
            pattern.push_str(&format!("/{}=", entry.key));
            match &entry.matcher {
                Matcher::Exact(_) => pattern.push_str(&value),
                _ if !last => return none("because a value before the last may vary"),
                Matcher::Any => pattern.push('*'),
                Matcher::Glob(_) if value.find('*') == Some(value.len() - 1) => pattern.push_str(&value),
                Matcher::Glob(_) => return none("because its * is not at the end"),
                Matcher::Cidr(_) => return none("because it is for networks"),
                Matcher::Regex(_) => return none("because it is a regular expression"),
            }
        }
        let fixed = pattern.strip_suffix('*').unwrap_or(&pattern);
        if fixed.contains('*') {
            return none("because a key or the domain has a *");
        }
        if pattern.len() > MAX_PART {
            return none("because it would be too long");
        }
        if !self.patterns.insert(pattern.clone()) {
            return none("because another rule looks the same");
        }
        Ok(pattern)
    }
}

fn varies(entry: &Descriptor) -> bool {
    entry.key.contains('*') || !matches!(entry.matcher, Matcher::Exact(_))
}

/// Returns the features that no configuration of Weir can express.
fn lost(entries: &[&Descriptor], draft: &Draft) -> Vec<String> {
    let mut lost = Vec::new();
    let mut note = |is: bool, what: &str| {
        if is {
            lost.push(what.to_owned());
        }
    };
    note(draft.limit.is_none(), "unlimited; do not ask for it");
    note(draft.shadow_mode, "shadow_mode; it denies here");
    note(draft.quota_mode, "quota_mode; it denies by itself here");
    note(!draft.replaces.is_empty(), "replaces; decide in the caller which one to ask for");
    note(draft.metadata.is_some(), "metadata");
    let metrics = draft.detailed_metric || entries.iter().any(|entry| entry.value_to_metric);
    note(metrics, "detailed_metric and value_to_metric; metrics are by strategy");
    lost
}
