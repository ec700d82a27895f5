//! Files whose newest version was refused, because it has mistakes: the version that was read before is in force.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_store::backend::{Problem, Since};

/// The longest mistake that is shown, in characters.
const MAX_SHOWN: usize = 300;

/// Remedy for refused files.
const REMEDY: &str = "correct them; until then the version that was read before is in force";

/// A kind of files that are read again while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    label: &'static str,
    refused: &'static str,
}

/// The files that are refused now. Clones share them.
#[derive(Debug, Clone)]
pub struct RefusedFiles {
    kinds: Arc<[FileKind]>,
    refused: Arc<Mutex<Vec<RefusedSource>>>,
}

#[derive(Debug)]
struct RefusedSource {
    source: usize,
    kind: FileKind,
    since: Since,
    mistakes: Vec<String>,
}

impl FileKind {
    /// The files of the configuration.
    pub const CONFIG: Self = Self::new("config", "the files of the configuration are refused");
    /// Tokens and keys.
    pub const CREDENTIALS: Self = Self::new("credentials", "the files of tokens and keys are refused");
    /// Certificates, keys and revocation lists of a port.
    pub const TLS: Self = Self::new("tls", "the TLS files of a port are refused");

    /// Creates a kind by the label of its metric, and the sentence about refused files.
    pub const fn new(label: &'static str, refused: &'static str) -> Self {
        Self { label, refused }
    }
}

impl Default for RefusedFiles {
    fn default() -> Self {
        Self::knowing([])
    }
}

impl RefusedFiles {
    /// Creates the record of refused files, of which features have these kinds.
    pub fn knowing(of_features: impl IntoIterator<Item = FileKind>) -> Self {
        let own = [FileKind::CONFIG, FileKind::CREDENTIALS, FileKind::TLS];
        Self { kinds: own.into_iter().chain(of_features).collect(), refused: Arc::default() }
    }

    /// Records how the files of a source were read. They are refused since the first reading with a mistake.
    pub fn read(&self, source: usize, kind: FileKind, report: &Result<(), Vec<String>>) {
        let mut all = self.refused.lock();
        let known = all.iter().position(|one| one.source == source);
        match (report, known.and_then(|place| all.get_mut(place).map(|one| (place, one)))) {
            (Ok(()), Some((place, _))) => drop(all.swap_remove(place)),
            (Ok(()), None) => {}
            (Err(mistakes), Some((_, one))) => one.mistakes.clone_from(mistakes),
            (Err(mistakes), None) => {
                all.push(RefusedSource { source, kind, since: Since::now(), mistakes: mistakes.clone() });
            }
        }
    }

    /// Each kind, and whether files of it are refused: 1 or 0.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let all = self.refused.lock();
        let is_refused = |kind| all.iter().any(|one| one.kind == kind);
        self.kinds.iter().map(|kind| (kind.label, u64::from(is_refused(*kind)))).collect()
    }

    /// The refused files as problems, with the first mistake of each.
    pub fn notes(&self) -> Vec<Problem> {
        let all = self.refused.lock();
        let note = |one: &RefusedSource| Problem {
            what: one.kind.refused.to_owned(),
            since: one.since,
            reason: first(&one.mistakes),
            remedy: REMEDY.to_owned(),
        };
        all.iter().map(note).collect()
    }
}

/// The first mistake, on one line, and how many there are besides.
fn first(mistakes: &[String]) -> String {
    let text = mistakes.first().map_or("they cannot be read", String::as_str);
    let mut shown: String =
        text.chars().take(MAX_SHOWN).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    match mistakes.len().saturating_sub(1) {
        0 => shown,
        1 => format!("{shown} (and 1 more mistake)"),
        more => format!("{shown} (and {more} more mistakes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refused_until_they_are_read_without_a_mistake() {
        let other = FileKind::new("other", "other files are refused");
        let files = RefusedFiles::knowing([other]);
        let mistakes = |texts: &[&str]| Err(texts.iter().map(|text| (*text).to_owned()).collect());
        files.read(0, FileKind::CONFIG, &Ok(()));
        assert!(files.notes().is_empty());
        files.read(0, FileKind::CONFIG, &mistakes(&["weir.yaml:1: one", "two", "three"]));
        let since = files.notes()[0].since;
        files.read(1, FileKind::TLS, &mistakes(&["grpc: no certificate"]));
        files.read(0, FileKind::CONFIG, &mistakes(&["weir.yaml:2: other", "line\nbreak"]));
        let notes = files.notes();
        assert_eq!(notes.len(), 2);
        assert_eq!((notes[0].since, &*notes[0].reason), (since, "weir.yaml:2: other (and 1 more mistake)"));
        assert_eq!(files.counts(), [("config", 1), ("credentials", 0), ("tls", 1), ("other", 0)]);
        files.read(0, FileKind::CONFIG, &Ok(()));
        assert_eq!(files.counts(), [("config", 0), ("credentials", 0), ("tls", 1), ("other", 0)]);
    }

    #[test]
    fn a_mistake_is_one_line_of_bounded_length() {
        let long = "x\n".repeat(1_000);
        let shown = first(&[long]);
        assert!(shown.chars().count() == MAX_SHOWN + 1 && !shown.contains('\n'), "{shown}");
    }
}
