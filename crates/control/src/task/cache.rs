//! The cache file: the last known records of live control, from which a node starts without Redis. On the memory store
//! it is the only place of the entries.
//!
//! ```text
//!   weirctl2          8 bytes
//!   chunk             all records, when the file was written as a whole
//!   chunk …           the records of later changes, added at the end
//!
//!   chunk    length of the content, checksum of the length; content; checksum of the content
//!   content  position, number of records; of each its key and its bytes, each behind its length
//! ```
//!
//! A change adds a chunk, so its cost does not grow with the number of entries. A chunk that is cut off at the end of the
//! file is of a change that was never acknowledged.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use weir_core::checksum::Fnv1a;

use crate::model::{ControlPosition, ControlRecord, decode_record, encode_record};

/// First bytes of a file of this version.
const MAGIC: &[u8; 8] = b"weirctl2";

/// Maximum size: more than 100,000 entries that are ten times as long as usual, twice.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes of changes behind the records of all, from which on the file is written as a whole.
const LONG: u64 = 4 << 20;

/// The cache file.
#[derive(Debug)]
pub(super) struct CacheFile {
    path: PathBuf,
    /// The file, once it was read or written as a whole by this process.
    file: Option<File>,
    /// The length of the file as it was last good.
    length: u64,
    /// The length of its first part, which has all records.
    whole: u64,
}

/// Content of a cache file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CachedRecords {
    pub(super) records: Vec<ControlRecord>,
    pub(super) position: ControlPosition,
}

/// A file that was read.
struct DecodedCache {
    records: CachedRecords,
    /// The bytes of the chunks that are whole.
    length: usize,
    /// The bytes of the first one.
    whole: usize,
}

impl CacheFile {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, length: 0, whole: 0 }
    }

    /// Reads it. `None`: there is none. A damaged one is kept aside, and a line in the log says so.
    pub(super) fn read(&mut self) -> io::Result<Option<CachedRecords>> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(DecodedCache { records, length, whole }) = decoded(&bytes) else {
            let aside = beside(&self.path, ".damaged");
            fs::rename(&self.path, &aside)?;
            tracing::warn!(
                file = %self.path.display(),
                kept = %aside.display(),
                "cache file of live control is damaged; keeping it aside, and using the entries in Redis"
            );
            return Ok(None);
        };
        if length < bytes.len() {
            tracing::warn!(
                file = %self.path.display(),
                bytes = bytes.len() - length,
                "last change in the cache file of live control is incomplete; ignoring it, because it was never \
                 acknowledged"
            );
        }
        self.file = Some(OpenOptions::new().write(true).open(&self.path)?);
        (self.length, self.whole) = (length as u64, whole as u64);
        Ok(Some(records))
    }

    /// Replaces it by a rename, so that a crash leaves the old one or the new one.
    pub(super) fn write<'r>(
        &mut self,
        records: impl IntoIterator<Item = &'r ControlRecord>,
        position: ControlPosition,
    ) -> io::Result<()> {
        let next = beside(&self.path, ".next");
        let mut options = OpenOptions::new();
        // Entries name consumers and reasons.
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&next)?;
        let bytes = [MAGIC.as_slice(), &chunk(records, position)].concat();
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&next, &self.path)?;
        (self.length, self.whole, self.file) = (bytes.len() as u64, bytes.len() as u64, Some(file));
        // The rename itself is durable once the directory is.
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Adds the records of a change, down to the disk. After an error the file is as it was before.
    pub(super) fn append(&mut self, records: &[ControlRecord], position: ControlPosition) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("it was not read"));
        };
        let bytes = chunk(records, position);
        // It is longer only if the last change failed or was cut off.
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(self.length))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Otherwise a start would take the change for one that was made.
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// True if it is time to write the file as a whole.
    pub(super) fn is_long(&self) -> bool {
        self.length > self.whole + self.whole.max(LONG)
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn chunk<'r>(records: impl IntoIterator<Item = &'r ControlRecord>, position: ControlPosition) -> Vec<u8> {
    let (mut content, mut bytes, mut count) = (Vec::new(), Vec::new(), 0_u64);
    for record in records {
        bytes.clear();
        encode_record(record, &mut bytes);
        for part in [record.key.as_bytes(), &*bytes] {
            content.extend_from_slice(&(part.len() as u64).to_le_bytes());
            content.extend_from_slice(part);
        }
        count += 1;
    }
    let numbers = [position.version, position.change, count].map(u64::to_le_bytes).concat();
    let length = ((numbers.len() + content.len()) as u64).to_le_bytes();
    let mut out = Vec::with_capacity(HEAD + numbers.len() + content.len() + 8);
    for part in [&length[..], &checksum(&[&length]).to_le_bytes(), &numbers, &content] {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&checksum(&[&numbers, &content]).to_le_bytes());
    out
}

/// Bytes of a chunk in front of its content.
const HEAD: usize = 16;

/// Reads a file. `None`: it is damaged.
fn decoded(bytes: &[u8]) -> Option<DecodedCache> {
    let (mut records, mut position) = (BTreeMap::new(), ControlPosition::NONE);
    let (mut rest, mut whole) = (bytes.strip_prefix(MAGIC)?, 0);
    while rest.len() >= HEAD {
        let mut after = rest;
        let (length, sum) = (number(&mut after)?, number(&mut after)?);
        if sum != checksum(&[&length.to_le_bytes()]) {
            return None;
        }
        let Some((content, after)) = usize::try_from(length).ok().and_then(|at| after.split_at_checked(at))
        else {
            break;
        };
        let Some((sum, after)) = after.split_first_chunk::<8>() else { break };
        if u64::from_le_bytes(*sum) != checksum(&[content]) {
            return None;
        }
        position = read_content(content, &mut records)?;
        rest = after;
        if whole == 0 {
            whole = bytes.len() - rest.len();
        }
    }
    // The first chunk is never cut off: the file gets its name once it is whole.
    if whole == 0 {
        return None;
    }
    let records = CachedRecords { records: records.into_values().collect(), position };
    Some(DecodedCache { records, length: bytes.len() - rest.len(), whole })
}

fn read_content(mut rest: &[u8], records: &mut BTreeMap<Box<str>, ControlRecord>) -> Option<ControlPosition> {
    let position = ControlPosition { version: number(&mut rest)?, change: number(&mut rest)? };
    for _ in 0..number(&mut rest)? {
        let key = std::str::from_utf8(part(&mut rest)?).ok()?;
        records.insert(key.into(), decode_record(key, part(&mut rest)?).ok()?);
    }
    rest.is_empty().then_some(position)
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

fn checksum(parts: &[&[u8]]) -> u64 {
    let mut sum = Fnv1a::default();
    parts.iter().for_each(|part| sum.bytes(part));
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
        let mut file = CacheFile::new(&path);
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
            assert!(decoded(&good[..length]).is_none(), "the first {length} bytes");
        }
    }

    /// A change adds to the file. One that is cut off was never acknowledged; what is damaged is no change.
    #[test]
    fn changes_are_added_and_a_cut_off_one_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let mut file = CacheFile::new(&path);
        file.write(&records(), ControlPosition { version: 10, change: 11 }).unwrap();
        let whole = fs::metadata(&path).unwrap().len();
        let changed = ControlRecord { version: 20, ..records().remove(0) };
        let position = ControlPosition { version: 20, change: 1 };
        file.append(std::slice::from_ref(&changed), position).unwrap();
        let both = CachedRecords { records: vec![changed.clone(), records().remove(1)], position };
        assert_eq!(file.read().unwrap(), Some(both.clone()));
        let good = fs::read(&path).unwrap();
        for length in whole as usize..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            let read = file.read().unwrap().unwrap();
            assert_eq!(read.records, records(), "the first {length} bytes");
            file.append(std::slice::from_ref(&changed), position).unwrap();
            assert_eq!(fs::read(&path).unwrap(), good);
        }
        for place in whole as usize..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert!(decoded(&bad).is_none(), "byte {place}");
        }
    }

    #[test]
    fn a_file_of_many_changes_is_written_as_a_whole_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let mut file = CacheFile::new(&path);
        file.write(&[], ControlPosition::NONE).unwrap();
        let large = ControlRecord { body: vec![7; 16 << 10].into(), ..records().remove(0) };
        let position = ControlPosition { version: 7, change: 8 };
        let mut added = 0;
        while !file.is_long() {
            file.append(std::slice::from_ref(&large), position).unwrap();
            added += 1;
        }
        assert!((200..300).contains(&added), "{added}");
        file.write(std::slice::from_ref(&large), position).unwrap();
        assert!(!file.is_long() && fs::metadata(&path).unwrap().len() < 20 << 10);
        assert_eq!(file.read().unwrap().unwrap().records, [large]);
    }
}
