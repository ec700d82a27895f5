//! The client of a case: its end of the pipe, and what has come over it.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use weir_grpc::{
    BufferBudget, ConnectionContext, ConnectionEnd, ConnectionLimits, Http2Connection, Unobserved,
};

use crate::echo::Echo;
use crate::link::{End, Link};
use crate::wire::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, Received, SETTINGS,
    WINDOW_UPDATE,
};

/// Time in which everything has come that comes by itself. It passes only while both sides wait.
const IDLE: Duration = Duration::from_millis(10);

/// A received event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Settings(Vec<(u16, u32)>),
    SettingsAck,
    Ping([u8; 8]),
    Pong([u8; 8]),
    Goaway {
        last: u32,
        code: u32,
    },
    Reset {
        stream: u32,
        code: u32,
    },
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    Headers {
        stream: u32,
        fields: Vec<(String, String)>,
        end: bool,
    },
    Data {
        stream: u32,
        bytes: Vec<u8>,
        end: bool,
    },
    /// Bytes that are not HTTP/2.
    Text(String),
    /// The server has closed the connection.
    Closed,
}

/// A command of the connection's owner.
pub(crate) enum Command {
    ShutDown,
    FinishShutdown,
}

pub(crate) struct Client {
    stream: End,
    commands: mpsc::UnboundedSender<Command>,
    server: JoinHandle<Result<(), ConnectionEnd>>,
    decoder: fluke_hpack::Decoder<'static>,
    bytes: Vec<u8>,
    closed: bool,
    /// A header block whose CONTINUATION frames have not all come.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Received events that no step of the case has expected yet.
    pub(crate) events: Vec<Event>,
}

impl Client {
    pub(crate) async fn new(limits: ConnectionLimits, link: Link) -> Self {
        let (stream, theirs) = link.ends().await;
        let (commands, mut asked) = mpsc::unbounded_channel();
        let server = tokio::spawn(async move {
            let (_closing, closed) = watch::channel(());
            let budget = BufferBudget::new(64 << 20, 1).worker();
            let shared = ConnectionContext { limits, budget, observer: Arc::new(Unobserved) };
            let mut connection =
                Http2Connection::new(theirs, &Arc::default(), Arc::new(Echo::default()), &shared, closed);
            loop {
                tokio::select! {
                    biased;
                    Some(command) = asked.recv() => match command {
                        Command::ShutDown => connection.shut_down(),
                        Command::FinishShutdown => connection.finish_shutdown(),
                    },
                    ended = connection.serve() => return ended,
                }
            }
        });
        let (decoder, bytes, block, events) = (fluke_hpack::Decoder::new(), Vec::new(), None, Vec::new());
        Self { stream, commands, server, decoder, bytes, closed: false, block, events }
    }

    /// Sends bytes; the server may have closed the connection.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    pub(crate) fn command(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Closes the sending half.
    pub(crate) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads until nothing more comes by itself.
    pub(crate) async fn read(&mut self) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        loop {
            let read = tokio::time::timeout(IDLE, self.stream.read_buf(&mut self.bytes));
            match read.await {
                Ok(Ok(0) | Err(_)) => {
                    let rest = std::mem::take(&mut self.bytes);
                    if rest.starts_with(b"HTTP/1.1") {
                        self.events.push(Event::Text(String::from_utf8_lossy(&rest).into_owned()));
                    } else if !rest.is_empty() {
                        return Err(format!("half a frame came: {rest:?}"));
                    }
                    self.closed = true;
                    self.events.push(Event::Closed);
                    return Ok(());
                }
                Ok(Ok(_)) => self.take_frames()?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Returns the end of the connection, once it has ended.
    pub(crate) async fn ended(&mut self) -> Result<Result<(), ConnectionEnd>, String> {
        let ended = tokio::time::timeout(IDLE, &mut self.server).await;
        let ended = ended.map_err(|_| "the connection goes on".to_owned())?;
        ended.map_err(|panicked| format!("the connection panicked: {panicked}"))
    }

    fn take_frames(&mut self) -> Result<(), String> {
        if self.bytes.starts_with(b"HTTP/1.1") {
            // All of it is there when the connection is closed.
            return Ok(());
        }
        while let Some(frame) = Received::take(&mut self.bytes) {
            if let Some(event) = self.event(frame)? {
                self.events.push(event);
            }
        }
        Ok(())
    }

    /// Parses a frame. A frame that no server may send is a fault of the server.
    fn event(&mut self, frame: Received) -> Result<Option<Event>, String> {
        let wrong = || format!("the server sent {frame:?}");
        let of_connection = matches!(frame.kind, SETTINGS | PING | GOAWAY);
        let of_stream = matches!(frame.kind, DATA | HEADERS | CONTINUATION | RST_STREAM);
        if of_connection && frame.stream != 0 || of_stream && frame.stream == 0 || frame.stream >= 1 << 31 {
            return Err(wrong());
        }
        if self.block.is_some() && frame.kind != CONTINUATION || frame.payload.len() > 16_384 {
            return Err(wrong());
        }
        let (stream, ack, end) = (frame.stream, frame.has(ACK), frame.has(END_STREAM));
        let size = frame.payload.len();
        let opaque = || <[u8; 8]>::try_from(&frame.payload[..]).map_err(|_| wrong());
        let number = |at| frame.number(at).ok_or_else(wrong);
        Ok(Some(match frame.kind {
            SETTINGS if ack && size == 0 => Event::SettingsAck,
            SETTINGS if !ack && size.is_multiple_of(6) => Event::Settings(values(&frame.payload)),
            PING if ack => Event::Pong(opaque()?),
            PING => Event::Ping(opaque()?),
            GOAWAY => Event::Goaway { last: number(0)?, code: number(4)? },
            RST_STREAM if size == 4 => Event::Reset { stream, code: number(0)? },
            WINDOW_UPDATE if size == 4 && number(0)? > 0 => {
                Event::WindowUpdate { stream, increment: number(0)? }
            }
            DATA => Event::Data { stream, bytes: frame.payload, end },
            HEADERS | CONTINUATION => return self.headers(&frame),
            _ => return Err(wrong()),
        }))
    }

    fn headers(&mut self, frame: &Received) -> Result<Option<Event>, String> {
        let wrong = || format!("the server sent {frame:?}");
        let (stream, end, mut block) = match (frame.kind, self.block.take()) {
            (HEADERS, None) => (frame.stream, frame.has(END_STREAM), Vec::new()),
            (CONTINUATION, Some(begun)) if begun.0 == frame.stream => begun,
            _ => return Err(wrong()),
        };
        block.extend_from_slice(&frame.payload);
        if !frame.has(END_HEADERS) {
            self.block = Some((stream, end, block));
            return Ok(None);
        }
        let text = |bytes| String::from_utf8(bytes).map_err(|_| wrong());
        let fields = self.decoder.decode(&block).map_err(|fault| format!("{fault:?} in {frame:?}"))?;
        let fields = fields.into_iter().map(|(name, value)| Ok((text(name)?, text(value)?)));
        Ok(Some(Event::Headers { stream, fields: fields.collect::<Result<_, String>>()?, end }))
    }
}

fn values(payload: &[u8]) -> Vec<(u16, u32)> {
    let value = |bytes: &[u8]| {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
        (number(&bytes[..2]) as u16, number(&bytes[2..]))
    };
    payload.chunks_exact(6).map(value).collect()
}
