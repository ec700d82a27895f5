//! Changes by live control in the audit: a line before a change is applied, and one with its result. Both are written at
//! once: a change whose first line cannot be written is refused.

use std::io;

use serde_json::{Value, json};
use weir_node::audit::{AuditLog, change_id, time_text};
use weir_node::proto_json;
use weir_proto::v1::ControlEntry;
use weir_units::Micros;

use super::request::{BanLift, ChangeAsked, ChangedEntry};
use crate::bans::{BanTotals, BannedCaller, BannedUntil};

/// The audit of live control.
pub(super) struct ControlAudit(AuditLog);

impl ControlAudit {
    pub(super) fn new(log: AuditLog) -> Self {
        Self(log)
    }

    /// Writes a change that was asked for, and its entries before and after it, down to the disk.
    pub(super) fn asked(
        &self,
        at: Micros,
        change: u64,
        asked: &ChangeAsked,
        entries: &[ChangedEntry],
    ) -> io::Result<()> {
        let ChangeAsked { method, by, reason, expires_after, .. } = asked;
        let mut line = json!({
            "audit": "asked",
            "at": time_text(at),
            "change": change_id(change),
            "method": method,
            "by": by,
            "reason": reason,
            "expires_after_seconds": expires_after.map(|span| span.0 / 1_000_000),
        });
        let both = |one: &ChangedEntry| (one.before.as_ref().map(entry), entry(&one.after));
        if let [one] = entries {
            let (before, after) = both(one);
            line["before"] = before.into();
            line["after"] = after;
        } else {
            let all = entries.iter().map(both);
            let all = all.map(|(before, after)| json!({ "before": before, "after": after }));
            line["entries"] = all.collect();
        }
        self.0.write(&line)
    }

    /// Writes how it ended.
    pub(super) fn ended(&self, at: Micros, change: u64, result: &str, version: Option<u64>) {
        let line = json!({
            "audit": "result",
            "at": time_text(at),
            "change": change_id(change),
            "result": result,
            "version": version,
        });
        if let Err(error) = self.0.write(&line) {
            tracing::error!(
                %error, change = change_id(change), result,
                "cannot write the result of a change to the audit log"
            );
        }
    }

    /// Writes that a ban is to be lifted, down to the disk.
    pub(super) fn lift(&self, at: Micros, change: u64, asked: &BanLift, ban: &BannedUntil) -> io::Result<()> {
        let BannedCaller { strategy, limit, consumer, resource, attributes } = &ban.caller;
        let attributes: serde_json::Map<String, Value> =
            attributes.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        self.0.write(&json!({
            "audit": "asked",
            "at": time_text(at),
            "change": change_id(change),
            "method": "LiftBan",
            "by": asked.by,
            "reason": asked.reason,
            "ban": {
                "strategy": strategy,
                "limit": limit,
                "consumer": consumer,
                "resource": resource,
                "attributes": attributes,
                "ends_at": time_text(Micros(ban.until)),
            },
        }))
    }

    /// Writes how many bans there were since the last totals.
    pub(super) fn bans(&self, at: Micros, totals: &BanTotals) -> io::Result<()> {
        let BanTotals { banned, lifted } = totals;
        self.0.write(&json!({ "audit": "bans", "at": time_text(at), "banned": banned, "lifted": lifted }))
    }
}

fn entry(entry: &ControlEntry) -> Value {
    let line = proto_json::line("weir.v1.ControlEntry", entry);
    line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use super::*;
    use weir_proto::v1::control_entry::Entry;
    use weir_proto::v1::{ControlAccess, EntryVersion};
    use weir_time::clock::Clock;

    fn asked(method: &'static str, expires_after: Option<Micros>) -> ChangeAsked {
        ChangeAsked {
            method,
            entries: Vec::new(),
            expires_after,
            reason: "incident\n12".to_owned(),
            id: None,
            dry_run: false,
            by: "token:ops".to_owned(),
        }
    }

    #[test]
    fn two_lines_say_what_was_asked_and_how_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = ControlAudit::new(AuditLog::open(Some(&path), Clock::System).unwrap());
        let access = ControlAccess { list: 1, consumer: "bot \"7\"".to_owned(), ..ControlAccess::default() };
        let after = ControlEntry { entry: Some(Entry::Access(access)), ..ControlEntry::default() };
        let before = ControlEntry {
            version: Some(EntryVersion { version: 3, change: "4".to_owned() }),
            ..after.clone()
        };
        let asked = asked("PutAccess", Some(Micros::from_secs(60)));
        let entry = ChangedEntry { after, before: Some(before), files: HashMap::new() };
        audit.asked(Micros(1_700_000_000_000_000), 0xab, &asked, std::slice::from_ref(&entry)).unwrap();
        audit.ended(Micros(1_700_000_000_500_000), 0xab, "applied", Some(9));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["at"], &lines[0]["by"]), (&json!("2023-11-14T22:13:20Z"), &json!("token:ops")));
        assert_eq!(lines[0]["reason"], "incident\n12");
        assert_eq!(lines[0]["after"]["access"]["consumer"], "bot \"7\"");
        assert_eq!(lines[0]["before"]["version"]["version"], "3");
        audit.asked(Micros(0), 1, &asked, &[entry.clone(), entry]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["entries"][1]["after"]["access"]["consumer"], "bot \"7\"");
        assert_eq!(
            lines[1],
            json!({
                "audit": "result", "at": "2023-11-14T22:13:20.500Z", "change": "00000000000000ab", "result": "applied",
                "version": 9,
            })
        );
    }

    /// A full disk refuses the change.
    #[test]
    fn what_cannot_be_written_is_an_error() {
        let log = AuditLog::open(Some(Path::new("/dev/full")), Clock::System).unwrap();
        let audit = ControlAudit::new(log);
        let failed = audit.asked(Micros(0), 1, &asked("PutAccess", None), &[]).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    }
}
