//! One connection from its preface to its end, as a script of bytes has it: a client that keeps to the rules, or one
//! whose frames are changed on their way, reads and writes of any size, and what must hold whatever happens.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{oneshot, watch};
use weir_grpc::{BufferBudget, ConnectionContext, ConnectionLimits, Http2Connection, Unobserved};

use crate::caller::Caller;
use crate::echo::Echo;
use crate::monitor::Monitor;
use crate::script::Script;
use crate::wire::{ACK, PING, PREFACE, frame, settings, unary};

/// No conversation does more.
const MOST_ACTS: usize = 400;

/// Time in which everything comes that comes by itself. It passes only while both sides wait.
const IDLE: Duration = Duration::from_secs(1);

/// Summary of a conversation, for people.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) frames_sent: usize,
    pub(crate) frames_received: usize,
    pub(crate) answers: usize,
    pub(crate) errors: usize,
}

/// Has the conversation that `bytes` describe. Panics if the server does what it must not do.
pub(crate) fn fuzz(bytes: &[u8]) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(converse(Script::new(bytes)))
}

struct Conversation {
    stream: DuplexStream,
    monitor: Monitor,
    caller: Caller,
    /// Bytes to send.
    output: Vec<u8>,
    /// True if a frame was changed, so that the server may end the connection.
    changed: bool,
    closed: bool,
}

async fn converse(mut script: Script<'_>) -> Tally {
    let pipe = script.pick(&[64, 1_000, 9_000, 70_000, 1 << 20]);
    let limits = ConnectionLimits {
        max_streams: script.pick(&[1, 3, 100, 1024]),
        keepalive_interval: Duration::from_secs(10_000_000),
        ..ConnectionLimits::default()
    };
    let mangles = script.once_in(2);
    let (stream, theirs) = tokio::io::duplex(pipe);
    let echo = Arc::new(Echo::default());
    let (shut_down, mut asked) = oneshot::channel();
    let (_closing, closed) = watch::channel(());
    let service = Arc::clone(&echo);
    // Larger than any conversation: calls that a full budget ends are the session's own tests' matter.
    let budget = BufferBudget::new(64 << 20, 1).worker();
    let shared = ConnectionContext { limits, budget, observer: Arc::new(Unobserved) };
    let server = tokio::spawn(async move {
        let mut connection = Http2Connection::new(theirs, &Arc::default(), service, &shared, closed);
        tokio::select! {
            biased;
            Ok(()) = &mut asked => {}
            ended = connection.serve() => return ended,
        }
        // GOAWAY must follow the server's SETTINGS.
        if let Some(ended) = connection.serve_handshake().await {
            return ended;
        }
        connection.shut_down();
        connection.serve().await
    });
    let mut talk = Conversation::new(stream);
    talk.says(&[PREFACE, &settings(&[])].concat());
    let mut shut_down = Some(shut_down);
    for _ in 0..MOST_ACTS {
        if script.is_over() || talk.closed {
            break;
        }
        let mut acts = talk.caller.acts(&mut script, &talk.monitor);
        if mangles && script.once_in(12) {
            mangle(&mut script, &mut acts);
            talk.changed = true;
        }
        talk.says(&acts);
        if script.once_in(150)
            && let Some(shut_down) = shut_down.take()
        {
            let _ = shut_down.send(());
        }
        for _ in 0..script.below(4) {
            talk.some(&mut script).await;
        }
    }
    let is_shut_down = shut_down.is_none();
    let floods = script.once_in(4);
    if talk.ends(&echo, is_shut_down).await && floods {
        talk.floods(pipe).await;
    }
    let (frames_sent, frames_received) = (talk.monitor.frames_sent, talk.monitor.frames_received);
    let answers = if talk.changed { 0 } else { talk.caller.checks(&talk.monitor, false) };
    let errors = usize::from(talk.monitor.goaway.is_some_and(|code| code > 0));
    drop(talk);
    let ended = tokio::time::timeout(IDLE, server).await.expect("a connection ends with its client");
    let _ = ended.expect("a connection never panics");
    assert_eq!(echo.live_calls(), 0, "calls outlive their connection");
    Tally { frames_sent, frames_received, answers, errors }
}

impl Conversation {
    fn new(stream: DuplexStream) -> Self {
        let (monitor, caller) = (Monitor::new(), Caller::default());
        Self { stream, monitor, caller, output: Vec::new(), changed: false, closed: false }
    }

    fn says(&mut self, bytes: &[u8]) {
        self.monitor.sends(bytes);
        self.output.extend_from_slice(bytes);
    }

    /// A read or a write of any size, or a turn of the server.
    async fn some(&mut self, script: &mut Script<'_>) {
        let most = if script.once_in(3) { 40_000 } else { 100 };
        let size = 1 + script.below(most);
        match script.below(3) {
            0 => tokio::task::yield_now().await,
            1 => {
                let size = size.min(self.output.len());
                tokio::select! {
                    biased;
                    written = self.stream.write(&self.output[..size]) => {
                        self.output.drain(..written.unwrap_or(0));
                    }
                    () = tokio::task::yield_now() => {}
                }
            }
            _ => {
                let mut bytes = vec![0; size];
                tokio::select! {
                    biased;
                    read = self.stream.read(&mut bytes) => self.hears(&bytes[..read.unwrap_or(0)]),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
    }

    fn hears(&mut self, bytes: &[u8]) {
        self.closed |= bytes.is_empty();
        self.monitor.receives(bytes);
        for opaque in std::mem::take(&mut self.monitor.pinged) {
            self.says(&frame(PING, ACK, 0, opaque));
        }
    }

    /// Writes and reads until nothing more comes.
    async fn settles(&mut self) {
        let mut bytes = vec![0; 64 << 10];
        while !self.closed {
            let Self { stream, output, .. } = self;
            let (mut from, mut to) = tokio::io::split(stream);
            let (mut written, mut read) = (None, None);
            tokio::select! {
                biased;
                it = from.read(&mut bytes) => read = Some(it.unwrap_or(0)),
                it = to.write(output), if !output.is_empty() => written = Some(it),
                () = tokio::time::sleep(IDLE) => return,
            }
            match (read, written) {
                (Some(read), _) => self.hears(&bytes[..read]),
                (_, Some(Ok(written))) => drop(self.output.drain(..written)),
                // The server has closed: what it has sent is still to be read.
                _ => self.output.clear(),
            }
        }
        // After an error only as much is sent as goes out at once.
        if !self.changed {
            self.monitor.closed();
        }
    }

    /// The client ends all calls; then nothing may be left of them, and the connection serves further ones. Whether
    /// it still does.
    async fn ends(&mut self, echo: &Echo, is_shut_down: bool) -> bool {
        self.settles().await;
        if self.changed && (self.closed || !self.monitor.is_clean()) {
            return false;
        }
        let is_error = self.monitor.goaway.is_some_and(|code| code > 0);
        assert!(!is_error, "the client kept to the rules: {:?}", self.monitor.goaway);
        let bytes = self.caller.ends(&self.monitor);
        self.says(&bytes);
        self.settles().await;
        if !self.changed {
            self.caller.checks(&self.monitor, !is_shut_down);
        }
        if is_shut_down || self.closed {
            assert!(self.closed || self.changed, "a shutdown ends when all calls have ended");
            return false;
        }
        if !self.changed {
            assert_eq!(echo.live_calls(), 0, "calls outlive their streams");
        }
        let Self { monitor, .. } = self;
        let window = monitor.connection.credited - monitor.connection.sent;
        assert!(window >= 512 << 10, "credit for {window} bytes came back");
        const LAST: u32 = 0x7fff_ffff;
        self.says(&unary(LAST, "still there"));
        self.settles().await;
        let seen = &self.monitor.streams[&LAST];
        assert!(seen.ended || self.changed, "the connection serves no further call");
        seen.ended
    }

    /// If the client reads nothing, the server stops reading: it keeps no more than so much of what it has to say.
    async fn floods(&mut self, pipe: usize) {
        const KEPT: usize = 512 << 10;
        let pings = frame(PING, 0, 0, [7; 8]).repeat((2 * pipe + 2 * KEPT) / 17);
        let mut written = 0;
        loop {
            tokio::select! {
                biased;
                more = self.stream.write(&pings[written..]) => written += more.unwrap_or(0),
                () = tokio::time::sleep(IDLE) => break,
            }
            assert!(written < 2 * pipe + KEPT, "{written} bytes were taken from a client that reads nothing");
        }
    }
}

/// Changes what was to be sent.
fn mangle(script: &mut Script<'_>, bytes: &mut Vec<u8>) {
    for _ in 0..=script.below(3) {
        if bytes.is_empty() {
            bytes.extend((0..9 + script.below(9)).map(|_| script.byte()));
        }
        let at = script.below(bytes.len());
        match script.below(9) {
            0 => bytes[at] ^= 1 << script.below(8),
            1 => bytes[at] = script.byte(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(..at)),
            4 => bytes.splice(at..at, [script.byte(), script.byte()]).for_each(drop),
            5 => bytes.extend_from_within(..),
            // The parts of the first frame's header.
            6 => change(bytes, 3, script.below(11) as u8),
            7 => change(bytes, 4, script.byte()),
            _ => change(bytes, 8, script.byte()),
        }
    }
}

fn change(bytes: &mut [u8], at: usize, to: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = to;
    }
}
