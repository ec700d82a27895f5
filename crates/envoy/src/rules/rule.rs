//! A rule: the end of one path through a domain, and everything that is said about it.

use std::sync::Arc;

use super::{Metadata, RateLimit};

/// A rule. Whatever leads to it is fixed when it is compiled, so nothing need be gathered on the way.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Place among all rules of its [`super::Domains`], counted from 0 without gaps.
    pub index: usize,
    /// The name of its domain.
    pub domain: Arc<str>,
    /// The name that statuses show, and that others may replace; empty if it has none.
    pub name: Box<str>,
    /// Names of rules that do not count where this one is in the same request.
    pub replaces: Box<[Box<str>]>,
    /// True if requests over the limit pass all the same.
    pub shadow_mode: bool,
    /// True if it denies only together with all other such rules of a request.
    pub quota_mode: bool,
    /// True if the reference would count it by the values of requests.
    pub detailed_metric: bool,
    /// One per entry of a matching descriptor.
    pub entries: Box<[Arc<RuleEntry>]>,
    /// Returned to Envoy beside the answer.
    pub metadata: Option<Metadata>,
    /// The limit; `None` is unlimited.
    pub limit: Option<RateLimit>,
}

impl Rule {
    /// `domain.key_value.key2`, as it is configured. It is for people: two rules may look alike.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = self.domain.to_string();
        for entry in &self.entries {
            path.push('.');
            path.push_str(&entry.path);
        }
        path
    }

    /// Label in metrics: the rule's path within its domain, as in `key=value,key2`. Labels are unique within a
    /// domain, and none equals a single word of `reserved`.
    #[must_use]
    pub fn label(&self, reserved: &[&str]) -> String {
        let mut label = String::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if index > 0 {
                label.push(',');
            }
            // After the key and `_` comes the value, or the pattern.
            let value = entry.path.strip_prefix(&*entry.key).and_then(|rest| rest.strip_prefix('_'));
            push_element(&mut label, &entry.key, value);
        }
        if reserved.contains(&label.as_str()) { format!("{label:?}") } else { label }
    }

    /// The key and the text that stand for entry `index` in the counter's key, where all that matches
    /// shares one.
    #[must_use]
    pub fn shared(&self, index: usize) -> Option<(&str, &str)> {
        let entry = self.entries.get(index)?;
        Some((&entry.key, entry.shared.as_deref()?))
    }
}

/// One element of a label: the key and, unless it is for any value, the value or the pattern.
#[must_use]
pub fn rule_element(key: &str, value: Option<&str>) -> String {
    let mut element = String::new();
    push_element(&mut element, key, value);
    element
}

fn push_element(label: &mut String, key: &str, value: Option<&str>) {
    push_word(label, key);
    if let Some(value) = value {
        label.push('=');
        push_word(label, value);
    }
}

/// Appends a text, in quotes where it would be taken for more than one.
fn push_word(label: &mut String, text: &str) {
    if !text.contains([',', '=', '"']) {
        label.push_str(text);
    } else {
        label.push_str(&format!("{text:?}"));
    }
}

/// One entry of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry {
    /// `key` or `key_value`, as it is configured.
    pub path: Box<str>,
    /// The key as it is configured, which may be a pattern.
    pub key: Arc<str>,
    /// The text that stands for every value of the entry, where all of them share one counter; then
    /// [`RuleEntry::key`] stands for every key too. It is no value of a request: a counter's key must tell the
    /// two apart even where they read alike.
    pub shared: Option<Box<str>>,
    /// True if the reference would show the value of the entry in its metrics.
    pub value_to_metric: bool,
}
