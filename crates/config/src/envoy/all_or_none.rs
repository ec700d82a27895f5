//! Reads `envoy.all_or_none`.

use crate::all_or_none::AllOrNone;
use crate::errors::MistakeReport;
use crate::fields::{Mapping, NamedNode};
use crate::overlay::{MAX_BY, MAX_DOMAINS, MAX_ENVOY_TEXT};
use crate::values::{quote, text_within};

/// Reads the setting. `beside` are settings of the section that contradict it, if they are on.
pub(super) fn all_or_none(
    fields: &mut Mapping<'_>,
    beside: [(&'static str, bool); 3],
    report: &mut MistakeReport,
) -> AllOrNone {
    let Some(value) = fields.take("all_or_none") else { return AllOrNone::default() };
    let items = value.items(report).unwrap_or_default();
    if items.len() > MAX_DOMAINS {
        value.report(report, format!("has {} entries: at most {MAX_DOMAINS}", items.len()));
        return AllOrNone::default();
    }
    let mut domains: Vec<(String, Vec<String>)> = Vec::new();
    for item in &items {
        let Some((domain, by)) = one(item, report) else { continue };
        if domains.iter().any(|(other, _)| *other == domain) {
            item.report(report, format!("names the domain {} again", quote(&domain)));
        }
        domains.push((domain, by));
    }
    for (name, _) in beside.into_iter().filter(|(_, is_on)| *is_on && !domains.is_empty()) {
        let why = match name {
            "count_rejected" => "it charges denied hits, and a denied request charges nothing there",
            "stop_when_over" => "it looks before it charges, and both at once is what `all_or_none` does",
            _ => "a request is then denied only if all its descriptors are over",
        };
        value.report(report, format!("cannot stand beside `{name}: true`: {why}"));
    }
    AllOrNone::new(domains)
}

fn one(item: &NamedNode<'_>, report: &mut MistakeReport) -> Option<(String, Vec<String>)> {
    let mut fields = Mapping::of(item, report);
    let text = |value: NamedNode<'_>, report: &mut MistakeReport| {
        value.read(report, |text| text_within(text, MAX_ENVOY_TEXT))
    };
    let domain = fields.require("domain", "it is the domain of the descriptors", report);
    let domain = domain.and_then(|value| text(value, report));
    let by = fields.require("by", "give it the keys of entries, or [] for the whole request", report);
    let by = by.and_then(|value| {
        let items = value.items(report)?;
        if items.len() > MAX_BY {
            value.report(report, format!("has {} keys: at most {MAX_BY}", items.len()));
        }
        let mut keys: Vec<String> = Vec::new();
        for item in items {
            let key = text(item.clone(), report)?;
            if keys.contains(&key) {
                item.report(report, format!("names the key {} again", quote(&key)));
            }
            keys.push(key);
        }
        Some(keys)
    });
    fields.finish(report);
    Some((domain?, by?))
}
