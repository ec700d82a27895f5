//! `/ui/control`: what live control has changed, and who is banned.

use serde_json::{Value, json};
use weir_node::access::Rights;
use weir_node::proto_json;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{ConsumerBan, ControlEntry};

use crate::bans::{BannedCaller, BannedUntil};
use crate::task::ControlHandle;

/// Bans that are shown.
const BANS: usize = 100;

/// Entries that are shown.
const ENTRIES: usize = 1_000;

/// Returns the data of the page that a caller with these rights may see.
pub(crate) fn collected(control: &ControlHandle, rights: Rights<'_>) -> Value {
    let (view, bans) = (control.view(), control.bans(""));
    let entries = || view.living().filter(|(_, entry)| may_see(rights, entry));
    let entry = |(key, entry): (&str, &ControlEntry)| {
        message("weir.v1.ControlEntry", &control.with_waiting(key, entry))
    };
    let seen =
        |ban: &BannedCaller| rights.may_inspect(&ban.strategy, named(&ban.resource), Some(&ban.consumer));
    let living = || bans.iter().filter(|(_, ban)| seen(&ban.caller));
    let ban = |(_, ban): (&str, BannedUntil)| message("weir.v1.ConsumerBan", &ConsumerBan::from(ban));
    json!({
        "entries": entries().take(ENTRIES).map(entry).collect::<Vec<_>>(),
        "total": entries().count(),
        "bans": living().take(BANS).map(ban).collect::<Vec<_>>(),
        "total_bans": if rights.is_all() { bans.total() } else { living().count() },
        "incomplete": view.incomplete,
    })
}

/// True if the lists of the caller's rules have what an entry is about. A pattern is in a list if the list has all that
/// begins as it does.
fn may_see(rights: Rights<'_>, entry: &ControlEntry) -> bool {
    match &entry.entry {
        Some(Entry::Override(one)) => {
            rights.may_inspect(&one.strategy, named(&one.resource), Some(&one.consumer))
        }
        Some(Entry::Access(one)) => rights.may_inspect(&one.strategy, None, Some(&one.consumer)),
        Some(Entry::Strategy(one)) => rights.may_inspect(&one.strategy, None, None),
        None => rights.is_all(),
    }
}

/// A field that may be empty, which means all.
fn named(field: &str) -> Option<&str> {
    (!field.is_empty()).then_some(field)
}

fn message(name: &str, message: &impl prost::Message) -> Value {
    let line = proto_json::line(name, message);
    line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or(Value::Null)
}
