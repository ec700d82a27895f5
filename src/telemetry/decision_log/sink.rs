//! Where the lines of a log end up: standard output, or a file that is followed by the next when it is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::LogTarget;

/// What the thread of a log writes to. It gets whole lines, many at a time.
pub(super) enum DecisionSink {
    Stdout,
    File(RotatingFile),
}

/// `log`, and the older `log.1`, `log.2`, ….
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    max_files: usize,
    file: File,
    size: u64,
    /// Whether the last byte that was written ended a line.
    ended: bool,
}

impl DecisionSink {
    pub(super) fn open(target: &LogTarget, max_bytes: u64, max_files: usize) -> io::Result<Self> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => RotatingFile::open(path, max_bytes, max_files).map(Self::File),
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
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), max_bytes, max_files, file, size, ended: true })
    }

    /// Writes as many whole lines as fit into the file, or at least one; first the next file begins where none fits.
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

    /// How many bytes of whole lines fit.
    fn fitting(&self, text: &[u8]) -> usize {
        let space = usize::try_from(self.max_bytes.saturating_sub(self.size)).unwrap_or(usize::MAX);
        let (within, _) = text.split_at(space.min(text.len()));
        within.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
    }

    /// Gives every file the name of the next older one. The oldest is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.max_files).rev() {
            let newer = if number == 1 { self.path.clone() } else { self.numbered(number - 1) };
            match fs::rename(newer, self.numbered(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        // With one file there is no older one, so the file is emptied.
        self.file = options.create(true).write(true).truncate(true).open(&self.path)?;
        self.size = 0;
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
