//! Receiving side of a connection.

use std::collections::HashMap;

use super::{CallOutcome, Failure, LoadConnection};
use crate::answer;
use crate::response::{ResponseBlocks, Said};
use weir_grpc::frames::{self, Frame, FrameFault, flag, kind, settings};

/// Used bytes after which the connection window is replenished.
const GIVE_BACK: u32 = 1 << 28;

/// Size limit of an answer: a thousand results have a few hundred bytes each.
const LONGEST_MESSAGE: usize = 4 << 20;
const LONGEST_BLOCK: usize = 64 << 10;

const PREFIX: usize = 5;

pub(super) struct Incoming {
    /// An incomplete frame.
    rest: Vec<u8>,
    blocks: ResponseBlocks,
    /// An incomplete header block, and its first frame.
    block: Option<(u32, u8, Vec<u8>)>,
    /// Incomplete messages by stream.
    messages: HashMap<u32, Vec<u8>>,
    /// Bytes of DATA since the window was last replenished.
    used: u32,
    pub(super) is_greeted: bool,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            rest: Vec::new(),
            blocks: ResponseBlocks::default(),
            block: None,
            messages: HashMap::new(),
            used: 0,
            is_greeted: false,
        }
    }

    pub(super) fn forget(&mut self, stream: u32) {
        self.messages.remove(&stream);
    }
}

impl LoadConnection {
    /// Processes received bytes. An error ends the connection.
    pub(super) fn read(&mut self, bytes: &[u8], sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        if self.incoming.rest.is_empty() {
            let taken = self.frames(bytes, sink)?;
            self.incoming.rest.extend_from_slice(&bytes[taken..]);
        } else {
            let mut joined = std::mem::take(&mut self.incoming.rest);
            joined.extend_from_slice(bytes);
            let taken = self.frames(&joined, sink)?;
            joined.drain(..taken);
            self.incoming.rest = joined;
        }
        Ok(())
    }

    /// Processes all complete frames. Returns their length.
    fn frames(&mut self, bytes: &[u8], sink: &mut dyn FnMut(CallOutcome)) -> Result<usize, FrameFault> {
        let mut taken = 0;
        while let Some((frame, length)) = frames::first(&bytes[taken..])? {
            self.frame(frame, sink)?;
            taken += length;
        }
        Ok(taken)
    }

    fn frame(&mut self, frame: Frame<'_>, sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        if !self.incoming.is_greeted && frame.kind != kind::SETTINGS {
            return Err("it does not greet as HTTP/2 servers do");
        }
        match frame.kind {
            kind::DATA => self.data(frame, sink)?,
            kind::HEADERS | kind::CONTINUATION => self.headers(frame, sink)?,
            kind::RST_STREAM => self.fail(frame.stream, Failure::Reset(frame.number(0)?), sink),
            kind::SETTINGS if !frame.has(flag::ACK) => {
                self.incoming.is_greeted = true;
                settings(frame.payload).for_each(|(name, value)| self.outgoing.set(name, value));
                self.outgoing.acknowledge_settings();
            }
            kind::PING if !frame.has(flag::ACK) => self.outgoing.pong(frame.payload),
            kind::WINDOW_UPDATE => self.outgoing.grant(frame.stream, frame.number(0)?),
            kind::GOAWAY => {
                // Calls up to the last stream are still answered; later ones were never processed.
                self.is_closing = true;
                let behind = ((frame.number(0)? & (u32::MAX >> 1)) + 1) | 1;
                let lost = |call| sink(CallOutcome { call, result: Err(Failure::Lost) });
                self.calls.take_from(behind, lost);
                if self.stream.id.is_some_and(|stream| stream >= behind) {
                    self.stream.end(&Failure::Lost, sink);
                }
            }
            kind::PUSH_PROMISE => return Err("it pushes, although we forbade it"),
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, frame: Frame<'_>, sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        self.incoming.used += frame.payload.len() as u32;
        if self.incoming.used >= GIVE_BACK {
            let used = std::mem::take(&mut self.incoming.used);
            self.outgoing.give_back(0, used);
            if let Some(stream) = self.stream.id {
                self.outgoing.give_back(stream, used);
            }
        }
        let content = frame.content()?;
        if self.stream.id == Some(frame.stream) {
            self.stream.receive(content, self.service.mode.decisions(), sink)?;
            if frame.has(flag::END_STREAM) {
                self.stream.end(&Failure::Malformed, sink); // the status is missing
            }
            return Ok(());
        }
        let Some(waiting) = self.calls.get(frame.stream) else { return Ok(()) };
        let begun = self.incoming.messages.get_mut(&frame.stream);
        let read = match begun {
            None if message_length(content) == Some(content.len()) => Some(content),
            None if content.is_empty() => None,
            None => {
                self.incoming.messages.insert(frame.stream, content.to_vec());
                None
            }
            Some(begun) => {
                begun.extend_from_slice(content);
                if begun.len() > LONGEST_MESSAGE {
                    return Err("it sent a message that is too large");
                }
                (message_length(begun) == Some(begun.len())).then_some(begun.as_slice())
            }
        };
        if let Some(message) = read {
            match answer::read(self.service.mode, &message[PREFIX..]) {
                Some(answer) => waiting.answer = Some(answer),
                None => self.fail(frame.stream, Failure::Malformed, sink),
            }
        }
        if frame.has(flag::END_STREAM) {
            self.fail(frame.stream, Failure::Malformed, sink); // the status is missing
        }
        Ok(())
    }

    fn headers(&mut self, frame: Frame<'_>, sink: &mut dyn FnMut(CallOutcome)) -> Result<(), FrameFault> {
        let content = frame.content()?;
        let unfinished = self.incoming.block.take();
        let (stream, flags, said) = match unfinished {
            None if frame.kind == kind::HEADERS && frame.has(flag::END_HEADERS) => {
                (frame.stream, frame.flags, self.incoming.blocks.read(content)?)
            }
            None if frame.kind == kind::HEADERS => {
                self.incoming.block = Some((frame.stream, frame.flags, content.to_vec()));
                return Ok(());
            }
            Some((stream, flags, mut block))
                if frame.kind == kind::CONTINUATION && frame.stream == stream =>
            {
                block.extend_from_slice(content);
                if block.len() > LONGEST_BLOCK {
                    return Err("it sent headers that are too large");
                }
                if !frame.has(flag::END_HEADERS) {
                    self.incoming.block = Some((stream, flags, block));
                    return Ok(());
                }
                (stream, flags, self.incoming.blocks.read(&block)?)
            }
            _ => return Err("it sent headers out of order"),
        };
        self.said(stream, said, flags & flag::END_STREAM != 0, sink);
        Ok(())
    }

    fn said(&mut self, stream: u32, said: Said, is_end: bool, sink: &mut dyn FnMut(CallOutcome)) {
        const SUCCESS: u16 = 200;
        match (said.http, said.grpc) {
            (Some(status), _) if status != SUCCESS => self.fail(stream, Failure::Http(status), sink),
            (_, Some(0)) if is_end => self.succeed(stream, sink),
            (_, Some(code)) if is_end => {
                let message = said.message.as_deref().unwrap_or_default().to_owned();
                self.fail(stream, Failure::Status(code, message), sink);
            }
            _ if is_end => self.fail(stream, Failure::Malformed, sink),
            _ => {}
        }
    }

    fn succeed(&mut self, stream: u32, sink: &mut dyn FnMut(CallOutcome)) {
        if self.stream.id == Some(stream) {
            self.outgoing.forget(stream);
            return self.stream.end(&Failure::Lost, sink); // it ended before its time, if any call waits
        }
        if !self.incoming.messages.is_empty() {
            self.incoming.forget(stream);
        }
        if let Some(waiting) = self.calls.take(stream) {
            sink(CallOutcome { call: waiting.call, result: waiting.answer.ok_or(Failure::Malformed) });
        }
    }

    fn fail(&mut self, stream: u32, failure: Failure, sink: &mut dyn FnMut(CallOutcome)) {
        if self.stream.id == Some(stream) {
            self.outgoing.forget(stream);
            return self.stream.end(&failure, sink);
        }
        self.incoming.forget(stream);
        self.outgoing.forget(stream);
        if let Some(waiting) = self.calls.take(stream) {
            sink(CallOutcome { call: waiting.call, result: Err(failure) });
        }
    }
}

/// Length of the message that begins here, its prefix included; `None` if that is not known yet.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let prefix: &[u8; PREFIX] = bytes.first_chunk()?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    Some(PREFIX + length as usize)
}
