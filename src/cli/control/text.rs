//! Entries of live control as text.

use std::collections::{BTreeMap, HashMap};

use prost_types::Timestamp;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{
    AccessList, ChangeResult, ControlEntry, EntryChange, EntryVersion, FindChangeResponse,
    ListChangesResponse, ListEntriesResponse, PutManyResponse,
};

use super::super::terminal::clean_cell;

/// Describes a change, or the change of a dry run.
pub(super) fn change(response: &EntryChange, dry_run: bool) -> String {
    let EntryChange { entry, before, files, .. } = response;
    let Some(after) = entry else { return "nothing was changed\n".to_owned() };
    let verb = match (dry_run, after.deleted) {
        (false, false) => "in force on this node, and within a second on all",
        (false, true) => "deleted: the files apply again",
        (true, false) => "dry run: it would be in force",
        (true, true) => "dry run: it would be deleted",
    };
    let mut text = format!("{verb}\n  {}\n", described(after));
    if let Some(before) = before {
        text += &format!("  before: {}\n", numbers(before));
    }
    for (name, written) in files.iter().collect::<BTreeMap<_, _>>() {
        text += &format!("  the files have {}\n", clean_cell(&format!("{name}: {written}")));
    }
    // A deletion is an entry that has ended.
    if let Some(end) = after.expires_at.filter(|_| !after.deleted) {
        text += &format!("  until {end}\n");
    }
    text + &shown_version(after.version.as_ref())
}

/// Describes several changes, or those of a dry run.
pub(super) fn many(response: &PutManyResponse) -> String {
    let PutManyResponse { applied, created, replaced, deleted, .. } = response;
    let verb = if *applied { "in force on this node, and within a second on all" } else { "dry run" };
    let text = format!("{verb}: {created} new, {replaced} replaced, {deleted} deleted\n");
    text + &shown_version(response.version.as_ref())
}

/// Describes the result of a change that was looked up.
pub(super) fn found(response: &FindChangeResponse) -> String {
    let verb = match response.result() {
        ChangeResult::Applied => "applied",
        ChangeResult::NotApplied => "not applied: the store is at another change",
        ChangeResult::Unknown | ChangeResult::Unspecified => "unknown: the store does not answer",
    };
    let mut text = format!("{verb}\n");
    if !response.reason.is_empty() {
        text += &format!("  {}\n", clean_cell(&response.reason));
    }
    text + &shown_version(response.version.as_ref())
}

/// All entries.
pub(super) fn list(response: &ListEntriesResponse) -> String {
    let mut text = String::new();
    for one in &response.entries {
        text += &entry(one);
    }
    if response.entries.is_empty() {
        text += "no entries: the files alone are in force\n";
    }
    if !response.incomplete.is_empty() {
        text += &format!("entries of other nodes may be missing: {}\n", clean_cell(&response.incomplete));
    }
    for one in &response.refused {
        text += &format!("{}\n", clean_cell(one));
    }
    text + &format!("configuration {}\n", response.files)
}

/// One entry, with who made it and why.
pub(super) fn entry(entry: &ControlEntry) -> String {
    let mut text = format!("{}{}\n", if entry.deleted { "deleted: " } else { "" }, described(entry));
    text += &provenance(entry);
    if !entry.waiting.is_empty() {
        text += &format!("  waits: {}\n", entry.waiting);
    }
    if let Some(end) = entry.expires_at.filter(|_| !entry.deleted) {
        text += &format!("  until {end}\n");
    }
    text + &shown_version(entry.version.as_ref())
}

/// Changes, the last first.
pub(super) fn history(response: &ListChangesResponse) -> String {
    let mut text = String::new();
    for one in &response.changes {
        let Some(after) = &one.after else { continue };
        let verb = if after.deleted { "deleted" } else { "put" };
        text += &format!("{verb} {}\n", described(after));
        if let Some(before) = &one.before {
            text += &format!("  before: {}\n", numbers(before));
        }
        text += &provenance(after);
        text += &shown_version(after.version.as_ref());
    }
    if text.is_empty() { "no changes since this node started\n".to_owned() } else { text }
}

fn provenance(entry: &ControlEntry) -> String {
    let mut parts: Vec<String> = entry.changed_at.iter().map(Timestamp::to_string).collect();
    if !entry.by.is_empty() {
        parts.push(format!("by {}", entry.by));
    }
    if !entry.node.is_empty() {
        parts.push(format!("on {}", entry.node));
    }
    if !entry.reason.is_empty() {
        parts.push(format!("because: {}", entry.reason));
    }
    // A reason may have several lines; one that looks like an entry of its own is none.
    if parts.is_empty() { String::new() } else { format!("  {}\n", clean_cell(&parts.join(", "))) }
}

fn described(entry: &ControlEntry) -> String {
    let text = match &entry.entry {
        Some(Entry::Override(one)) => {
            format!(
                "override of {} for {} on {}: {}",
                one.strategy,
                one.consumer,
                one.resource,
                limits(&one.limits)
            )
        }
        Some(Entry::Access(one)) => {
            let verb = if one.list() == AccessList::Allow { "allow" } else { "deny" };
            let scope = if one.strategy.is_empty() { "all strategies" } else { &one.strategy };
            format!("{verb} {} under {scope}", one.consumer)
        }
        Some(Entry::Strategy(one)) => format!("strategy {}: {}", one.strategy, limits(&one.limits)),
        None => "an entry of a later version of Weir".to_owned(),
    };
    clean_cell(&text)
}

fn numbers(entry: &ControlEntry) -> String {
    match &entry.entry {
        Some(Entry::Override(one)) => limits(&one.limits),
        Some(Entry::Strategy(one)) => limits(&one.limits),
        Some(Entry::Access(_)) | None => described(entry),
    }
}

fn limits(limits: &HashMap<String, String>) -> String {
    let sorted: BTreeMap<_, _> = limits.iter().collect();
    let each: Vec<String> = sorted.iter().map(|(name, text)| format!("{name} {text}")).collect();
    if each.is_empty() { "no numbers".to_owned() } else { clean_cell(&each.join(", ")) }
}

fn shown_version(version: Option<&EntryVersion>) -> String {
    let shown = version.filter(|version| version.version > 0);
    shown.map(|it| format!("  version {}:{}\n", it.version, clean_cell(&it.change))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use weir_proto::v1::ControlAccess;

    use super::*;

    #[test]
    fn only_what_is_in_force_has_an_end() {
        let access = ControlAccess { list: 1, consumer: "bot-7".to_owned(), ..ControlAccess::default() };
        let shown = |deleted| {
            let expires_at = Some(Timestamp { seconds: 1_700_000_000, nanos: 0 });
            let after = ControlEntry {
                entry: Some(Entry::Access(access.clone())),
                deleted,
                expires_at,
                ..ControlEntry::default()
            };
            let text = change(&EntryChange { entry: Some(after.clone()), ..EntryChange::default() }, false);
            [text, entry(&after)]
        };
        assert!(shown(false).iter().all(|text| text.contains("  until 2023-11-14T22:13:20Z\n")));
        let deleted = "deleted: the files apply again\n  deny bot-7 under all strategies\n";
        assert_eq!(shown(true), [deleted, "deleted: deny bot-7 under all strategies\n"]);
    }
}
