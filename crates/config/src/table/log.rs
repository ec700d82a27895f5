//! The table's sections `log` and `log.decisions`.

use super::super::key_share::KeyShare;
use super::kinds::{Boolean, FilePath, Optional, PartOfKeys};
use super::numbers::{ByteSize, Count};
use super::value_kind::ValueKind;
use super::{Applies, Entry, Outside, Setting};

pub(crate) const KEYS: Entry<PartOfKeys> = Entry {
    key: "keys",
    about: "The part of all keys that is logged.",
    default: KeyShare::NONE,
    kind: PartOfKeys,
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "A key is a resource and a consumer. It is logged completely or not at all.",
};

pub(crate) const FILE: Entry<Optional<FilePath>> = Entry {
    key: "file",
    about: "The file to which lines are appended.",
    default: None,
    kind: Optional(FilePath, "none"),
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "Without it, lines go to standard output. A FIFO must have a reader at the start, and is not rotated.",
};

pub(crate) const DENIED: Entry<Boolean> = Entry {
    key: "denied",
    about: "Writes all denials, of all keys, to a log of their own too.",
    default: false,
    kind: Boolean,
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "",
};

pub(crate) const DENIED_FILE: Entry<Optional<FilePath>> = Entry {
    key: "denied_file",
    about: "The file of the log of denials.",
    default: None,
    kind: Optional(FilePath, "none"),
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "Without it, it is beside `file` (`decisions.denied.jsonl` beside `decisions.jsonl`), or lines go to \
           standard output.",
};

pub(crate) const MAX_BYTES: Entry<ByteSize<u64>> = Entry {
    key: "max_bytes",
    about: "The largest size of a file.",
    default: 100 << 20,
    kind: ByteSize(1 << 20, 1 << 40),
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "Then it is renamed to `decisions.jsonl.1`, that one to `.2` and so on, and a new file begins.",
};

pub(crate) const MAX_FILES: Entry<Count<usize>> = Entry {
    key: "max_files",
    about: "Number of files of a log, including the current one.",
    default: 5,
    kind: Count(1, 1000),
    outside: Outside::No,
    applies: Applies::AtRestart,
    more: "The oldest is deleted.",
};

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
