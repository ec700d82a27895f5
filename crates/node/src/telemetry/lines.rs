//! A bounded queue of text lines, and a thread that writes them.
//!
//! A writer of lines never blocks and never fails: lines that do not fit into the queue or cannot be written are
//! dropped and counted. `tracing-appender` has such a queue too, but it does not count failed writes, bounds lines
//! and not bytes, and prints to stdout when it shuts down while its reader is stalled.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Capacity of the queue in bytes: some thousand log lines. The writing thread may hold as many again.
const CAPACITY: usize = 1 << 20;
/// Pause before a retry on a descriptor that another process made non-blocking.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// Queues lines for a thread that writes them. Clones share the queue.
#[derive(Clone)]
pub struct LineWriter(Arc<LineQueue>);

struct LineQueue {
    capacity: usize,
    pending: Mutex<Pending>,
    /// Signals that there is something to write.
    filled: Condvar,
    /// Signals that everything has been written.
    idle: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Pending {
    text: Vec<u8>,
    numbered: u64,
    /// True while the thread writes text that it took.
    writing: bool,
}

impl LineWriter {
    /// Starts a thread of this name that writes to `sink`.
    pub fn spawn(thread: &str, sink: impl Write + Send + 'static) -> io::Result<Self> {
        Self::spawn_with(thread, CAPACITY, sink)
    }

    /// Starts a thread with a queue of `capacity` bytes.
    pub fn spawn_with(thread: &str, capacity: usize, sink: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Arc::new(LineQueue {
            capacity,
            pending: Mutex::default(),
            filled: Condvar::new(),
            idle: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let written = Arc::clone(&queue);
        let sink = Sink { writer: sink, mid_line: false };
        std::thread::Builder::new().name(thread.to_owned()).spawn(move || written.drain(sink))?;
        Ok(Self(queue))
    }

    /// Queues `text`, one line or several, or drops all of it. Returns at once.
    pub fn push(&self, text: &[u8]) {
        let mut pending = self.0.pending.lock();
        if pending.text.len().saturating_add(text.len()) > self.0.capacity {
            drop(pending);
            self.0.dropped.fetch_add(lines(text), Relaxed);
            return;
        }
        pending.text.extend_from_slice(text);
        self.0.filled.notify_one();
    }

    /// Queues a line with its number between `head` and `tail`, or drops it. Numbers begin at 1 and follow the order
    /// of the lines; a dropped line uses up its number. Returns at once.
    pub fn push_numbered(&self, head: &[u8], tail: &[u8]) {
        const NUMBER: usize = 20;
        let mut pending = self.0.pending.lock();
        pending.numbered += 1;
        if pending.text.len().saturating_add(head.len() + NUMBER + tail.len()) > self.0.capacity {
            drop(pending);
            self.0.dropped.fetch_add(1, Relaxed);
            return;
        }
        let Pending { text, numbered, .. } = &mut *pending;
        text.extend_from_slice(head);
        // Writing to a Vec cannot fail.
        let _ = write!(text, "{numbered}");
        text.extend_from_slice(tail);
        self.0.filled.notify_one();
    }

    /// Number of dropped lines.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// Waits until everything has been written or dropped, for at most `wait`.
    pub fn flush(&self, wait: Duration) {
        let busy = |pending: &mut Pending| pending.writing || !pending.text.is_empty();
        self.0.idle.wait_while_for(&mut self.0.pending.lock(), busy, wait);
    }
}

/// Writer for `tracing-subscriber`: one line per call.
impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LineQueue {
    /// Writes queued text. Never returns.
    fn drain(&self, mut sink: Sink<impl Write>) {
        let mut text = Vec::new();
        loop {
            self.take(&mut text);
            self.dropped.fetch_add(sink.write(&text), Relaxed);
            text.clear();
        }
    }

    /// Waits for text, and swaps it with `empty`.
    fn take(&self, empty: &mut Vec<u8>) {
        let mut pending = self.pending.lock();
        pending.writing = false;
        while pending.text.is_empty() {
            self.idle.notify_all();
            self.filled.wait(&mut pending);
        }
        pending.writing = true;
        std::mem::swap(&mut pending.text, empty);
    }
}

struct Sink<W> {
    writer: W,
    /// True if an error cut the last line short.
    mid_line: bool,
}

impl<W: Write> Sink<W> {
    fn write(&mut self, text: &[u8]) -> u64 {
        if self.mid_line {
            // Ends the cut line first. If this fails, the next lines fail as well.
            self.attempt(b"\n");
        }
        lines(self.attempt(text))
    }

    /// Writes as much as possible. Returns the rest.
    fn attempt<'t>(&mut self, mut text: &'t [u8]) -> &'t [u8] {
        while !text.is_empty() {
            match self.writer.write(text) {
                Ok(0) => break,
                Ok(count) => {
                    let (written, rest) = text.split_at(count.min(text.len()));
                    self.mid_line = !written.ends_with(b"\n");
                    text = rest;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_AFTER),
                Err(_) => break,
            }
        }
        // Standard output buffers an unfinished line; here text always ends with a newline.
        let _ = self.writer.flush();
        text
    }
}

/// The lines of `text`, its unfinished last one included.
fn lines(text: &[u8]) -> u64 {
    text.split_inclusive(|&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Writes at most `space` bytes; every call first waits for a message.
    struct Disk {
        written: Arc<Mutex<Vec<u8>>>,
        space: Arc<Mutex<usize>>,
        gate: Option<mpsc::Receiver<()>>,
    }

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            if let Some(gate) = &self.gate {
                gate.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            }
            let mut space = self.space.lock();
            let count = text.len().min(*space);
            *space -= count;
            self.written.lock().extend_from_slice(&text[..count]);
            if count == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_later_ones_begin_a_line() {
        let (written, space) = (Arc::default(), Arc::new(Mutex::new(8)));
        let disk = Disk { written: Arc::clone(&written), space: Arc::clone(&space), gate: None };
        let lines = LineWriter::spawn("lines", disk).unwrap();
        for line in ["first\n", "second\n", "third\n"] {
            lines.push(line.as_bytes());
            lines.flush(LONG);
        }
        assert_eq!(lines.dropped(), 2);
        assert_eq!(&*written.lock(), b"first\nse");
        *space.lock() = 1_000;
        lines.push(b"fourth\nfifth\n");
        lines.flush(LONG);
        assert_eq!(lines.dropped(), 2);
        assert_eq!(&*written.lock(), b"first\nse\nfourth\nfifth\n");
    }

    #[test]
    fn a_stalled_reader_costs_lines_and_no_time() {
        let (written, space) = (Arc::default(), Arc::new(Mutex::new(usize::MAX)));
        let (open, gate) = mpsc::channel();
        let disk = Disk { written: Arc::clone(&written), space, gate: Some(gate) };
        let lines = LineWriter::spawn("lines", disk).unwrap();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        // The thread has at most one full queue in its hand, and another one waits.
        let most = 2 * CAPACITY as u64 / 1024;
        for _ in 0..most + 100 {
            lines.push(&line);
        }
        assert!(lines.dropped() >= 100, "{}", lines.dropped());
        lines.flush(Duration::from_millis(1));
        let dropped = lines.dropped();
        for _ in 0..most {
            let _ = open.send(());
        }
        lines.flush(LONG);
        assert_eq!(lines.dropped(), dropped);
        assert_eq!(written.lock().len() as u64, (most + 100 - dropped) * 1024);
    }
}
