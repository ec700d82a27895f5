//! The entries of live control that are in force, for the `/ui` page.

use std::collections::HashMap;

use serde_json::{Value, json};
use weir_config::AccessRight;
use weir_node::access::Rights;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{AccessList, ControlEntry};

use crate::task::ControlHandle;

/// Entries shown; there may be 10,000.
const SHOWN: usize = 50;

/// Returns the entries; null for callers who may not change anything.
pub(crate) fn entries(control: &ControlHandle, rights: Rights<'_>) -> Value {
    if !rights.is_all() && !rights.has_any(AccessRight::Control) {
        return Value::Null;
    }
    let view = control.view();
    let shown = |(key, entry): (&str, &ControlEntry)| row(&control.shown(key, entry));
    let entries: Vec<Value> = view.living().take(SHOWN).map(shown).collect();
    let more = view.living().count().saturating_sub(SHOWN);
    json!({ "entries": entries, "more": more, "incomplete": view.incomplete })
}

fn row(entry: &ControlEntry) -> Value {
    let (what, change) = match &entry.entry {
        Some(Entry::Override(one)) => {
            let what = format!("override of {} for {} on {}", one.strategy, one.consumer, one.resource);
            (what, numbers(&one.limits))
        }
        Some(Entry::Access(one)) => {
            let verb = if one.list() == AccessList::Allow { "allow" } else { "deny" };
            let scope = if one.strategy.is_empty() { "all strategies" } else { &one.strategy };
            (format!("{verb} {}", one.consumer), format!("under {scope}"))
        }
        Some(Entry::Strategy(one)) => (format!("strategy {}", one.strategy), numbers(&one.limits)),
        None => ("an entry of a later version of Weir".to_owned(), String::new()),
    };
    json!({
        "what": what,
        "change": change,
        "reason": entry.reason,
        "by": entry.by,
        "waiting": entry.waiting,
        "expires": entry.expires_at.as_ref().map(|at| at.seconds),
    })
}

fn numbers(limits: &HashMap<String, String>) -> String {
    let mut all: Vec<String> = limits.iter().map(|(name, number)| format!("{name}: {number}")).collect();
    all.sort_unstable();
    all.join(", ")
}
