//! What a peer says, frame by frame.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::code::{Broken, Code};
use super::super::head::{Reader, Wrong};
use super::super::stream::Stream;
use super::{ACK, Begun, Block, FAREWELL, KEEPALIVE, Leaving, STREAM_WINDOW, Session};
use crate::http2::frames::{self, Frame, HEAD, LARGEST_PAYLOAD, flag, kind, setting, settings};

/// The largest window there may be.
const LARGEST_WINDOW: i64 = (1 << 31) - 1;

type Taken = Result<(), Broken>;

impl Session {
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Taken {
        if self.block.is_some() && frame.kind != kind::CONTINUATION {
            return Err(Broken::protocol("it sent another frame within headers"));
        }
        if self.begun == Begun::Preface {
            if frame.kind != kind::SETTINGS || frame.has(ACK) {
                return Err(Broken::protocol("it did not begin with its settings"));
            }
            self.begun = Begun::Settings;
        }
        match frame.kind {
            kind::HEADERS => self.headers(frame),
            kind::DATA => self.data(frame),
            kind::CONTINUATION => self.continuation(frame),
            kind::WINDOW_UPDATE => self.window_update(frame),
            kind::RST_STREAM => self.rst_stream(frame),
            kind::PRIORITY => self.priority(frame),
            kind::SETTINGS | kind::PING | kind::GOAWAY if frame.stream != 0 => {
                Err(Broken::protocol("it sent a frame of the connection on a stream"))
            }
            kind::SETTINGS => self.settings(frame),
            kind::PING => self.ping_or_pong(frame),
            kind::GOAWAY => sized(frame, frame.payload.len() >= 8).map(|()| self.is_left = true),
            kind::PUSH_PROMISE => Err(Broken::protocol("it sent a PUSH_PROMISE, which only servers may")),
            // What is new is of no interest to who does not know it.
            _ => Ok(()),
        }
    }

    fn headers(&mut self, frame: &Frame<'_>) -> Taken {
        if frame.stream.is_multiple_of(2) {
            return Err(Broken::protocol("it sent headers on a stream that is not its own"));
        }
        let block = frame.content().map_err(Broken::protocol)?;
        let is_last = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return self.whole_block(frame.stream, is_last, block);
        }
        self.block =
            Some(Block { stream: frame.stream, is_last, received: block.len(), bytes: block.to_vec() });
        Ok(())
    }

    fn continuation(&mut self, frame: &Frame<'_>) -> Taken {
        let Some(block) = self.block.as_mut().filter(|block| block.stream == frame.stream) else {
            return Err(Broken::protocol("it sent a CONTINUATION of nothing"));
        };
        block.bytes.extend_from_slice(frame.payload);
        block.received += HEAD + frame.payload.len();
        // It must be read to its end, or no other can be: so it is kept, but not for ever. Frames count, too: they
        // may be empty.
        if block.received > (self.bounds.header_bytes as usize).saturating_mul(2).max(4 * LARGEST_PAYLOAD) {
            return Err(Broken::new(Code::EnhanceYourCalm, "it sent headers without an end"));
        }
        if frame.has(flag::END_HEADERS)
            && let Some(Block { stream, is_last, bytes, .. }) = self.block.take()
        {
            return self.whole_block(stream, is_last, &bytes);
        }
        Ok(())
    }

    fn whole_block(&mut self, id: u32, is_last: bool, block: &[u8]) -> Taken {
        let is_new = id > self.last;
        let most = self.bounds.header_bytes as usize;
        let mut reader = if is_new { Reader::of_request(most) } else { Reader::of_trailers(most) };
        let unreadable = |_| Broken::new(Code::Compression, "it sent headers that cannot be read");
        self.decoder.read(block, |field| reader.hear(field)).map_err(unreadable)?;
        if is_new { self.request(id, is_last, reader) } else { self.trailers(id, is_last, &reader) }
    }

    fn request(&mut self, id: u32, is_last: bool, reader: Reader) -> Taken {
        if self.leaving == Leaving::Closing {
            // It was told that nobody will look at this one.
            return Ok(());
        }
        self.last = id;
        if self.streams.len() >= self.bounds.streams as usize {
            self.send_reset(id, Code::RefusedStream);
            return Ok(());
        }
        let head = match reader.request() {
            Ok(head) => head,
            Err(Wrong::Malformed) => return self.reset(id, Code::Protocol),
            Err(Wrong::TooLarge) => {
                self.answer_too_large(id, is_last);
                return Ok(());
            }
            Err(Wrong::Foreign(status)) => {
                // Who may not use another method is told so.
                let allowed = (status == StatusCode::METHOD_NOT_ALLOWED)
                    .then(|| (http::header::ALLOW, HeaderValue::from_static("POST")));
                self.refuse(id, is_last, status, &HeaderMap::from_iter(allowed));
                return Ok(());
            }
        };
        let mut stream = Stream::new(head, STREAM_WINDOW.into());
        let fine = !is_last || stream.done();
        self.streams.insert(id, stream);
        if !fine {
            return self.reset(id, Code::Protocol);
        }
        self.arrived.push(id);
        Ok(())
    }

    fn trailers(&mut self, id: u32, is_last: bool, reader: &Reader) -> Taken {
        let Some(stream) = self.streams.get_mut(&id) else {
            return if self.forgiven.contains(&id) {
                Ok(())
            } else {
                Err(Broken::new(Code::StreamClosed, "it sent headers on a stream that has ended"))
            };
        };
        if stream.is_done {
            return self.reset(id, Code::StreamClosed);
        }
        if !is_last || !reader.were_trailers() || !stream.done() {
            return self.reset(id, Code::Protocol);
        }
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>) -> Taken {
        if frame.stream == 0 || frame.stream > self.last && self.leaving != Leaving::Closing {
            return Err(Broken::protocol("it sent data on a stream that it has not opened"));
        }
        let content = frame.content().map_err(Broken::protocol)?;
        let length = frame.payload.len();
        self.left -= length as i64;
        if self.left < 0 {
            return Err(Broken::new(Code::FlowControl, "it sent more data than it may"));
        }
        let Some(stream) = self.streams.get_mut(&frame.stream) else {
            self.has_read(length);
            let forgiven = frame.stream > self.last || self.forgiven.contains(&frame.stream);
            return if forgiven { Ok(()) } else { self.reset(frame.stream, Code::StreamClosed) };
        };
        stream.left -= length as i64;
        let fault = if stream.is_done {
            Some(Code::StreamClosed)
        } else if stream.left < 0 {
            Some(Code::FlowControl)
        } else if !stream.push(content) {
            Some(Code::Protocol)
        } else {
            None
        };
        if let Some(code) = fault {
            self.has_read(length);
            return self.reset(frame.stream, code);
        }
        let is_whole = !frame.has(flag::END_STREAM) || stream.done();
        // Padding is read as soon as it is there.
        self.has_read_of(frame.stream, length - content.len());
        if is_whole { Ok(()) } else { self.reset(frame.stream, Code::Protocol) }
    }

    fn window_update(&mut self, frame: &Frame<'_>) -> Taken {
        sized(frame, frame.payload.len() == 4)?;
        let more = i64::from(frame.number(0).map_err(Broken::protocol)? & (u32::MAX >> 1));
        if frame.stream == 0 {
            self.room += more;
            return if more == 0 {
                Err(Broken::protocol("it sent a WINDOW_UPDATE of nothing"))
            } else if self.room > LARGEST_WINDOW {
                Err(Broken::new(Code::FlowControl, "it made the window larger than it can be"))
            } else {
                Ok(())
            };
        }
        self.opened(frame.stream)?;
        let Some(stream) = self.streams.get_mut(&frame.stream) else { return Ok(()) };
        stream.room += more;
        self.most_room = self.most_room.max(stream.room);
        if more == 0 {
            self.reset(frame.stream, Code::Protocol)
        } else if self.first_room + stream.room > LARGEST_WINDOW {
            self.reset(frame.stream, Code::FlowControl)
        } else {
            Ok(())
        }
    }

    fn rst_stream(&mut self, frame: &Frame<'_>) -> Taken {
        sized(frame, frame.payload.len() == 4)?;
        self.opened(frame.stream)?;
        if self.streams.get(&frame.stream).is_some_and(|stream| !stream.has_begun()) {
            self.early_resets += 1;
            if self.early_resets > self.bounds.early_resets {
                return Err(Broken::new(Code::EnhanceYourCalm, "it resets calls as fast as it makes them"));
            }
        }
        self.drop_stream(frame.stream);
        Ok(())
    }

    fn priority(&self, frame: &Frame<'_>) -> Taken {
        sized(frame, frame.payload.len() == 5)?;
        if frame.stream == 0 { Err(Broken::protocol("it sent a PRIORITY of nothing")) } else { Ok(()) }
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Taken {
        if frame.has(ACK) {
            return sized(frame, frame.payload.is_empty());
        }
        sized(frame, frame.payload.len().is_multiple_of(6))?;
        for (name, value) in settings(frame.payload) {
            match name {
                setting::HEADER_TABLE_SIZE => self.blocks.set_table_size(value),
                setting::ENABLE_PUSH if value > 1 => {
                    return Err(Broken::protocol("ENABLE_PUSH must be 0 or 1"));
                }
                setting::INITIAL_WINDOW_SIZE => self.set_first_room(value.into())?,
                setting::MAX_FRAME_SIZE if !(LARGEST_PAYLOAD..1 << 24).contains(&(value as usize)) => {
                    return Err(Broken::protocol("MAX_FRAME_SIZE must be from 16,384 to 16,777,215"));
                }
                _ => {}
            }
        }
        frames::write(&mut self.out, kind::SETTINGS, ACK, 0, &[]);
        Ok(())
    }

    /// It holds for streams that are open too. They are looked at only where one of them may once have had so
    /// much more that its window would be too large now: a frame has place for thousands of such settings.
    fn set_first_room(&mut self, room: i64) -> Taken {
        self.first_room = room;
        if room + self.most_room > LARGEST_WINDOW {
            self.most_room = self.streams.values().map(|stream| stream.room).fold(0, i64::max);
        }
        if room + self.most_room > LARGEST_WINDOW {
            return Err(Broken::new(Code::FlowControl, "it made a window larger than it can be"));
        }
        Ok(())
    }

    fn ping_or_pong(&mut self, frame: &Frame<'_>) -> Taken {
        sized(frame, frame.payload.len() == 8)?;
        if !frame.has(ACK) {
            frames::write(&mut self.out, kind::PING, ACK, 0, frame.payload);
        } else if frame.payload == KEEPALIVE {
            self.ponged = true;
        } else if frame.payload == FAREWELL && self.leaving == Leaving::Announced {
            // All that was sent before it knew has come.
            self.finish_leaving();
        }
        Ok(())
    }

    /// Frames of a stream that has never been open are faults of the connection.
    fn opened(&self, stream: u32) -> Taken {
        if stream.is_multiple_of(2) || (stream > self.last && self.leaving != Leaving::Closing) {
            return Err(Broken::protocol("it sent a frame of a stream that it has not opened"));
        }
        Ok(())
    }
}

fn sized(frame: &Frame<'_>, is_right: bool) -> Taken {
    const WHY: &str = "it sent a frame of a length that its kind cannot have";
    debug_assert!(frame.payload.len() <= LARGEST_PAYLOAD);
    if is_right { Ok(()) } else { Err(Broken::new(Code::FrameSize, WHY)) }
}
