//! The cache file: the last known records of live control, from which a node starts without Redis. On the memory store
//! it is the only place of the entries.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use weir_core::checksum::Fnv1a;
use weir_core::control::{ControlPosition, ControlRecord, decode_record, encode_record};

/// What a file of this version begins with.
const MAGIC: &[u8; 8] = b"weirctl1";

/// Maximum size: 10,000 entries and as many generations of the longest kind.
const MAX_BYTES: u64 = 512 << 20;

/// The cache file.
#[derive(Debug, Clone)]
pub(super) struct CacheFile {
    path: PathBuf,
}

/// What a cache file has.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CachedRecords {
    pub(super) records: Vec<ControlRecord>,
    pub(super) position: ControlPosition,
}

impl CacheFile {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Reads it. `None`: there is none. A damaged one is kept aside, and a line in the log says so.
    pub(super) fn read(&self) -> io::Result<Option<CachedRecords>> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = decoded(&bytes);
        if read.is_none() {
            let aside = beside(&self.path, ".damaged");
            fs::rename(&self.path, &aside)?;
            tracing::warn!(
                file = %self.path.display(),
                kept = %aside.display(),
                "the cache file of live control is damaged: its entries are lost unless Redis has them; it is kept aside"
            );
        }
        Ok(read)
    }

    /// Replaces it by a rename, so that a crash leaves the old one or the new one.
    pub(super) fn write(&self, records: &[ControlRecord], position: ControlPosition) -> io::Result<()> {
        let next = beside(&self.path, ".next");
        let mut options = OpenOptions::new();
        // Entries name consumers and reasons.
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(&encoded(records, position))?;
        file.sync_all()?;
        fs::rename(&next, &self.path)?;
        // The rename itself is durable once the directory is.
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn encoded(records: &[ControlRecord], position: ControlPosition) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for number in [position.version, position.change, records.len() as u64] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let mut bytes = Vec::new();
    for record in records {
        bytes.clear();
        encode_record(record, &mut bytes);
        for part in [record.key.as_bytes(), &*bytes] {
            out.extend_from_slice(&(part.len() as u64).to_le_bytes());
            out.extend_from_slice(part);
        }
    }
    let sum = checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn decoded(bytes: &[u8]) -> Option<CachedRecords> {
    let (content, sum) = bytes.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != checksum(content) {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    let position = ControlPosition { version: number(&mut rest)?, change: number(&mut rest)? };
    let count = number(&mut rest)?;
    let mut records = Vec::new();
    for _ in 0..count {
        let key = std::str::from_utf8(part(&mut rest)?).ok()?;
        records.push(decode_record(key, part(&mut rest)?).ok()?);
    }
    rest.is_empty().then_some(CachedRecords { records, position })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = Fnv1a::default();
    sum.bytes(bytes);
    sum.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<ControlRecord> {
        let record = |key: &str, deleted| ControlRecord {
            key: key.into(),
            version: 7,
            change: 8,
            expires_at: 9,
            deleted,
            body: if deleted { [].into() } else { (*b"body").into() },
        };
        vec![record("sone", false), record("stwo", true)]
    }

    #[test]
    fn what_was_written_is_read_and_a_damaged_file_is_kept_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let file = CacheFile::new(&path);
        assert_eq!(file.read().unwrap(), None);
        let position = ControlPosition { version: 10, change: 11 };
        file.write(&records(), position).unwrap();
        assert_eq!(file.read().unwrap(), Some(CachedRecords { records: records(), position }));
        let good = fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert_eq!(file.read().unwrap(), None, "byte {place}");
            assert_eq!(fs::read(folder.path().join("control.damaged")).unwrap(), bad);
            assert!(!path.exists());
        }
        for length in 0..good.len() {
            assert_eq!(decoded(&good[..length]), None, "the first {length} bytes");
        }
    }
}
