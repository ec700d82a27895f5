//! The `groups` section: anti-affinity of routing groups, which must lie on different shards of a cluster.

use std::collections::BTreeSet;

use weir_core::key::{Apart, KeySecret, MAX_PART, Placements};
use weir_core::strategy::Resources;

use super::errors::MistakeReport;
use super::fields::{KeyedValue, Mapping, NamedNode};
use super::values::{Scalar, nearest, quote, text_within};

/// The groups of the resources.
pub(super) struct KnownGroups {
    names: BTreeSet<String>,
    /// True if the list is complete: no resource is mistaken.
    whole: bool,
}

impl KnownGroups {
    pub(super) fn new(resources: &Resources, whole: bool) -> Self {
        let names = resources.values().filter_map(|resource| resource.group.as_deref()).map(str::to_owned);
        Self { names: names.collect(), whole }
    }

    fn check(&self, scalar: Scalar<'_>) -> Result<String, String> {
        let name = text_within(scalar, MAX_PART)?;
        if !self.whole || self.names.contains(&name) {
            return Ok(name);
        }
        let shown = quote(&name);
        Err(match nearest(&name, self.names.iter().map(String::as_str)) {
            Some(near) => format!("no resource has the group {shown}; did you mean {}?", quote(near)),
            None => format!("no resource has the group {shown}"),
        })
    }
}

/// Reads the section, and computes the placement of each group.
pub(super) fn groups(
    root: &mut Mapping<'_>,
    known: &KnownGroups,
    shards: Option<u16>,
    secret: &KeySecret,
    report: &mut MistakeReport,
) -> Placements {
    let section = root.take("groups");
    let before = report.len();
    let mut apart = Apart::new();
    let entries = section.as_ref().and_then(|section| section.entries(report)).unwrap_or_default();
    for entry in entries {
        apart.extend(group(&entry, known, report));
    }
    if report.len() > before {
        return Placements::default();
    }
    match (section, shards) {
        (Some(section), None) if !apart.is_empty() && !section.is_cut() => {
            let reason =
                "the number of shards is not known; give `store.redis.shards`, with `topology: cluster`";
            section.report(report, reason);
            Placements::default()
        }
        (section, Some(shards)) => Placements::new(secret, shards, &apart).unwrap_or_else(|error| {
            match section {
                Some(section) => section.report(report, error.to_string()),
                None => report.file(error.to_string()),
            }
            Placements::default()
        }),
        _ => Placements::default(),
    }
}

fn group(
    entry: &KeyedValue<'_>,
    known: &KnownGroups,
    report: &mut MistakeReport,
) -> Option<(String, BTreeSet<String>)> {
    let name = known.check(Scalar { text: entry.name, quoted: true });
    if let Err(reason) = &name {
        entry.report(report, reason.as_str());
    }
    let mut fields = Mapping::new(&entry.value, report);
    let others = fields.require("apart_from", "list the groups that it must lie apart from", report);
    let others = others.and_then(|others| apart_from(&others, entry.name, known, report));
    fields.finish(report);
    Some((name.ok()?, others?))
}

fn apart_from(
    value: &NamedNode<'_>,
    own: &str,
    known: &KnownGroups,
    report: &mut MistakeReport,
) -> Option<BTreeSet<String>> {
    let items = value.items(report)?;
    if items.is_empty() && !value.is_cut() {
        value.report(report, "must name at least one group");
    }
    let mut others = BTreeSet::new();
    for item in &items {
        let other = item.read(report, |scalar| match known.check(scalar)? {
            other if other == own => Err("a group cannot lie apart from itself".to_owned()),
            other if others.contains(&other) => Err(format!("{} is listed twice", quote(&other))),
            other => Ok(other),
        });
        others.extend(other);
    }
    Some(others)
}
