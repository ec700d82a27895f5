//! The table's sections `log` and `log.decisions`.

use super::super::key_share::KeyShare;
use super::kinds::{Boolean, FilePath, Optional, PartOfKeys};
use super::numbers::{ByteSize, Count};
use super::value_kind::ValueKind;
use super::{Entry, Setting};

pub(crate) const KEYS: Entry<PartOfKeys> = Entry::new("keys", KeyShare::NONE, PartOfKeys)
    .about("The part of all keys that is logged.")
    .more("A key is a resource and a consumer. It is logged completely or not at all.");

pub(crate) const FILE: Entry<Optional<FilePath>> =
    Entry::new("file", None, Optional(FilePath, "none")).about("The file to which lines are appended.").more(
        "Without it, lines go to standard output. A FIFO must have a reader at the start, and is not \
         rotated.",
    );

pub(crate) const DENIED: Entry<Boolean> =
    Entry::new("denied", false, Boolean).about("Writes all denials, of all keys, to a log of their own too.");

pub(crate) const DENIED_FILE: Entry<Optional<FilePath>> =
    Entry::new("denied_file", None, Optional(FilePath, "none"))
        .about("The file of the log of denials.")
        .more(
            "Without it, it is beside `file` (`decisions.denied.jsonl` beside `decisions.jsonl`), or \
             lines go to standard output.",
        );

pub(crate) const MAX_BYTES: Entry<ByteSize<u64>> =
    Entry::new("max_bytes", 100 << 20, ByteSize(1 << 20, 1 << 40)).about("The largest size of a file.").more(
        "Then it is renamed to `decisions.jsonl.1`, that one to `.2` and so on, and a new file \
         begins.",
    );

pub(crate) const MAX_FILES: Entry<Count<usize>> = Entry::new("max_files", 5, Count(1, 1000))
    .about("Number of files of a log, including the current one.")
    .more("The oldest is deleted.");

/// Returns the keys of `log`.
pub(crate) fn rows() -> Vec<Setting> {
    let about = "The decision log. Without it, no decision is logged.";
    vec![Setting {
        unset: "none",
        more: "It has nothing to do with the log of the service on stderr (`--log`).",
        ..Setting::other("decisions", about, ValueKind::Section(decision_rows))
    }]
}

/// Returns the keys of `log.decisions`.
pub(crate) fn decision_rows() -> Vec<Setting> {
    vec![KEYS.row(), FILE.row(), DENIED.row(), DENIED_FILE.row(), MAX_BYTES.row(), MAX_FILES.row()]
}
