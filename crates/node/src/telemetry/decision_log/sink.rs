//! Target of a log: standard output, or a rotated file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use weir_config::LogTarget;

const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Writer of a log. It gets many whole lines per call.
pub(crate) enum DecisionSink {
    Stdout,
    File(RotatingFile),
}

/// `log`, and the older `log.1`, `log.2`, ….
pub(crate) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    max_files: usize,
    file: File,
    size: u64,
    /// True if the last byte written ended a line.
    ended: bool,
    /// The mode of files that it makes.
    mode: u32,
}

/// Modes of new files: what the umask leaves, and for the user of the process alone.
const BY_UMASK: u32 = 0o666;
const PRIVATE: u32 = 0o600;

impl DecisionSink {
    pub(crate) fn open(target: &LogTarget, max_bytes: u64, max_files: usize) -> io::Result<Self> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => RotatingFile::open(path, max_bytes, max_files).map(Self::File),
        }
    }

    /// Opens a log that only the user of the process may read.
    pub(crate) fn open_private(target: &LogTarget, max_bytes: u64, max_files: usize) -> io::Result<Self> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => {
                RotatingFile::open_as(path, max_bytes, max_files, PRIVATE).map(Self::File)
            }
        }
    }

    /// Waits until everything written is on the disk, or with the reader of standard output.
    pub(crate) fn persist(&mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Self::File(file) if file.max_bytes < u64::MAX => file.file.sync_data(),
            Self::File(_) | Self::Stdout => Ok(()),
        }
    }
}

impl Write for DecisionSink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout => io::stdout().write(text),
            Self::File(file) => file.write(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().flush(),
            Self::File(file) => file.file.flush(),
        }
    }
}

impl RotatingFile {
    fn open(path: &Path, max_bytes: u64, max_files: usize) -> io::Result<Self> {
        Self::open_as(path, max_bytes, max_files, BY_UMASK)
    }

    fn open_as(path: &Path, max_bytes: u64, max_files: usize, mode: u32) -> io::Result<Self> {
        // Without O_NONBLOCK, the open of a FIFO that nobody reads would wait for a reader for ever.
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).custom_flags(NONBLOCK).mode(mode).open(path);
        let mut file = opened.map_err(without_reader)?;
        let kind = file.metadata()?;
        let is_file = kind.is_file();
        let mut size = if is_file { kind.len() } else { 0 };
        // What is no file cannot be rotated.
        let max_bytes = if is_file { max_bytes } else { u64::MAX };
        if size > 0 && !ends_with_a_line(path)? {
            // A process that was killed has cut its last line. The next line begins a new one.
            file.write_all(b"\n")?;
            size += 1;
        }
        Ok(Self { path: path.to_owned(), max_bytes, max_files, file, size, ended: true, mode })
    }

    /// Writes as many whole lines as fit into the file, at least one. Rotates first if none fits.
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut fits = self.fitting(text);
        if fits == 0 && self.ended && self.size > 0 {
            self.rotate()?;
            fits = self.fitting(text);
        }
        let line = text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| end + 1);
        let (part, _) = text.split_at(fits.max(line));
        let written = self.file.write(part)?;
        self.size += written as u64;
        self.ended = part.get(..written).is_some_and(|written| written.ends_with(b"\n"));
        Ok(written)
    }

    /// Length of the whole lines that fit.
    fn fitting(&self, text: &[u8]) -> usize {
        let space = usize::try_from(self.max_bytes.saturating_sub(self.size)).unwrap_or(usize::MAX);
        let (within, _) = text.split_at(space.min(text.len()));
        within.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
    }

    /// Renames every file to the next older name. The oldest is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        // The next file is created before any is renamed: if that fails, all stay as they are.
        let next = if self.max_files > 1 { self.next_path() } else { self.path.clone() };
        // With one file there is no older one, so the file is emptied.
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(self.mode).open(&next)?;
        for number in (1..self.max_files).rev() {
            let newer = if number == 1 { self.path.clone() } else { self.numbered(number - 1) };
            match fs::rename(newer, self.numbered(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.max_files > 1 {
            fs::rename(&next, &self.path)?;
        }
        (self.file, self.size) = (file, 0);
        Ok(())
    }

    fn next_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".next");
        name.into()
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// An open of a FIFO that nobody reads fails with ENXIO, which says nothing of readers.
fn without_reader(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(Errno::NXIO.raw_os_error()) {
        return error;
    }
    io::Error::new(error.kind(), "it is a FIFO that nobody reads; start its reader first")
}

/// True if a file that is not empty ends with a newline.
fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    let (mut file, mut last) = (File::open(path)?, [0]);
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The open of a FIFO waits for a reader, and the start of the server waited with it.
    #[test]
    fn a_fifo_without_a_reader_is_an_error_and_with_one_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        let error = RotatingFile::open(&path, 100, 3).err().unwrap();
        assert_eq!(error.to_string(), "it is a FIFO that nobody reads; start its reader first");
        let mut reader = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path).unwrap();
        let mut file = RotatingFile::open(&path, 8, 3).unwrap();
        // It is never rotated.
        for line in ["first\n", "second\n"] {
            assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
        }
        let mut read = [0; 13];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"first\nsecond\n");
        assert!(!folder.path().join("fifo.1").exists());
    }

    #[test]
    fn a_line_that_was_cut_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "whole\ncu").unwrap();
        let mut file = RotatingFile::open(&path, 100, 3).unwrap();
        file.write(b"next\n").unwrap();
        drop(RotatingFile::open(&path, 100, 3).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\ncu\nnext\n");
        assert_eq!(file.size, 14);
    }

    #[test]
    fn a_file_that_cannot_be_made_moves_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = RotatingFile::open(&path, 8, 3).unwrap();
        for line in ["first\n", "second\n"] {
            assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
        }
        // A folder stands where the next file would be made.
        fs::create_dir(folder.path().join("log.next")).unwrap();
        for _ in 0..3 {
            assert!(file.write(b"third\n").is_err());
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("log").as_str(), read("log.1").as_str()), ("second\n", "first\n"));
        fs::remove_dir(folder.path().join("log.next")).unwrap();
        assert_eq!(file.write(b"third\n").unwrap(), 6);
        assert_eq!([read("log"), read("log.1"), read("log.2")], ["third\n", "second\n", "first\n"]);
    }

    #[test]
    fn a_full_file_is_followed_by_the_next_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let mut file = RotatingFile::open(&path, 16, 3).unwrap();
        for line in
            ["one\n", "two\nthree\n", "four\nfive\nsix\nseven\n", "a line longer than a file\n", "end\n"]
        {
            let mut text = line.as_bytes();
            while !text.is_empty() {
                let count = file.write(text).unwrap();
                assert!(count > 0);
                text = &text[count..];
            }
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("log"), "end\n");
        assert_eq!(read("log.1"), "a line longer than a file\n");
        assert_eq!(read("log.2"), "six\nseven\n");
        assert!(!folder.path().join("log.3").exists());
    }
}
