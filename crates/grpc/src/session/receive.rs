//! The receiving side of a session: one handler per frame type.

use http::{HeaderMap, HeaderValue, StatusCode};

use crate::error_code::{ConnectionError, ErrorCode};
use crate::events::ConnectionEvent;
use crate::frames::{self, Frame, LARGEST_PAYLOAD, flag, kind, setting, settings};
use crate::request_headers::{HeaderFault, RequestHead};
use crate::session::{
    ACK, ClientPreface, GracefulShutdown, HeaderBlock, KEEPALIVE_PING, SHUTDOWN_PING, STREAM_WINDOW, Session,
};
use crate::stream::CallStream;

/// The largest flow-control window (RFC 9113, 6.9.1).
pub(super) const LARGEST_WINDOW: i64 = (1 << 31) - 1;

type FrameResult = Result<(), ConnectionError>;

impl Session {
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> FrameResult {
        if self.header_block.is_some() && frame.kind != kind::CONTINUATION {
            return Err(ConnectionError::protocol("it sent another frame within headers"));
        }
        if self.handshake == ClientPreface::Settings {
            if frame.kind != kind::SETTINGS || frame.has(ACK) {
                return Err(ConnectionError::protocol("it did not begin with its settings"));
            }
            self.handshake = ClientPreface::Done;
        }
        match frame.kind {
            kind::HEADERS => self.headers(frame),
            kind::DATA => self.data(frame),
            kind::CONTINUATION => self.continuation(frame),
            kind::WINDOW_UPDATE => self.window_update(frame),
            kind::RST_STREAM => self.rst_stream(frame),
            kind::PRIORITY => self.priority(frame),
            kind::SETTINGS | kind::PING | kind::GOAWAY if frame.stream != 0 => {
                Err(ConnectionError::protocol("it sent a frame of the connection on a stream"))
            }
            kind::SETTINGS => self.settings(frame),
            kind::PING => self.ping_frame(frame),
            kind::GOAWAY => self.goaway_frame(frame),
            kind::PUSH_PROMISE => {
                Err(ConnectionError::protocol("it sent a PUSH_PROMISE, which only servers may"))
            }
            // Frames of unknown types are ignored (RFC 9113, 4.1).
            _ => Ok(()),
        }
    }

    fn headers(&mut self, frame: &Frame<'_>) -> FrameResult {
        if frame.stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("it sent headers on a stream that is not its own"));
        }
        sized(frame, frame.payload.len() >= fixed_fields(frame))?;
        let block = frame.content().map_err(ConnectionError::protocol)?;
        let end_stream = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            self.complete_block(frame.stream, end_stream, block)?;
            return if depends_on_itself(frame) {
                self.reset(frame.stream, ErrorCode::Protocol)
            } else {
                Ok(())
            };
        }
        self.begin_block(frame.stream, end_stream, depends_on_itself(frame), block);
        Ok(())
    }

    fn continuation(&mut self, frame: &Frame<'_>) -> FrameResult {
        let end = frame.has(flag::END_HEADERS);
        match self.continue_block(frame.stream, frame.payload, end)? {
            Some(HeaderBlock { stream, end_stream, depends_on_itself, bytes, .. }) => {
                self.complete_block(stream, end_stream, &bytes)?;
                if depends_on_itself { self.reset(stream, ErrorCode::Protocol) } else { Ok(()) }
            }
            None => Ok(()),
        }
    }

    fn complete_block(&mut self, id: u32, end_stream: bool, block: &[u8]) -> FrameResult {
        let Self { decoder, methods, limits, .. } = self;
        let most = limits.max_header_bytes as usize;
        let undecodable =
            |_| ConnectionError::new(ErrorCode::Compression, "it sent headers that cannot be decoded");
        if id > self.last_stream_id {
            let head = decoder.request(block, most, methods).map_err(undecodable)?;
            self.request(id, end_stream, head)
        } else {
            let valid = decoder.trailers(block, most, methods).map_err(undecodable)?;
            self.trailers(id, end_stream, valid)
        }
    }

    fn request(&mut self, id: u32, end_stream: bool, head: Result<RequestHead, HeaderFault>) -> FrameResult {
        if self.shutdown == GracefulShutdown::Final {
            // Streams above the last stream of the final GOAWAY are ignored.
            return Ok(());
        }
        self.last_stream_id = id;
        if self.streams.len() + self.lingering.len() >= self.limits.max_streams as usize {
            self.send_reset(id, ErrorCode::RefusedStream);
            return Ok(());
        }
        let head = match head {
            Ok(mut head) => {
                head.set_deadline(|| self.now());
                head
            }
            Err(HeaderFault::Malformed) => return self.reset(id, ErrorCode::Protocol),
            Err(HeaderFault::TooLarge) => {
                self.answer_too_large(id, end_stream);
                return Ok(());
            }
            Err(HeaderFault::UnknownPath) => {
                self.answer_unknown_path(id, end_stream);
                return Ok(());
            }
            Err(HeaderFault::NotGrpc(StatusCode::UNSUPPORTED_MEDIA_TYPE)) => {
                self.answer_not_grpc(id, end_stream);
                return Ok(());
            }
            Err(HeaderFault::NotGrpc(status)) => {
                let allowed = (status == StatusCode::METHOD_NOT_ALLOWED)
                    .then(|| (http::header::ALLOW, HeaderValue::from_static("POST")));
                self.refuse(id, end_stream, status, &HeaderMap::from_iter(allowed));
                return Ok(());
            }
        };
        let method = self.methods.traits_of(head.method, head.path());
        let open = match self.open_calls.begin(method.kind, self.limits.max_side_streams) {
            Ok(open) => open,
            Err(bound) => {
                self.refuse_stream(id, end_stream, bound);
                return Ok(());
            }
        };
        let mut stream = CallStream::new(head, STREAM_WINDOW.into(), method, open);
        let valid = !end_stream || stream.end_of_body();
        self.held_by_streams += stream.count();
        self.streams.insert(id, stream);
        if !valid {
            return self.reset(id, ErrorCode::Protocol);
        }
        self.new_calls.push(id);
        Ok(())
    }

    fn trailers(&mut self, id: u32, end_stream: bool, valid: bool) -> FrameResult {
        let Some(stream) = self.streams.get_mut(&id) else {
            return self.headers_of_ended(id, end_stream && valid);
        };
        if stream.end_stream_received {
            return self.reset(id, ErrorCode::StreamClosed);
        }
        if !end_stream || !valid || !stream.end_of_body() {
            return self.reset(id, ErrorCode::Protocol);
        }
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>) -> FrameResult {
        self.check_opened(frame.stream)?;
        sized(frame, frame.payload.len() >= fixed_fields(frame))?;
        let content = frame.content().map_err(ConnectionError::protocol)?;
        let length = frame.payload.len();
        self.recv_window -= length as i64;
        if self.recv_window < 0 {
            return Err(ConnectionError::new(ErrorCode::FlowControl, "it sent more data than it may"));
        }
        let Some(stream) = self.streams.get_mut(&frame.stream) else {
            self.return_bytes(length);
            return self.data_of_ended(frame, content.len());
        };
        stream.recv_window -= length as i64;
        let fault = if stream.end_stream_received {
            Some(ErrorCode::StreamClosed)
        } else if stream.recv_window < 0 {
            Some(ErrorCode::FlowControl)
        } else if !stream.push(content) {
            Some(ErrorCode::Protocol)
        } else {
            None
        };
        if let Some(code) = fault {
            self.return_bytes(length);
            return self.reset(frame.stream, code);
        }
        let valid = !frame.has(flag::END_STREAM) || stream.end_of_body();
        if stream.framing.is_partial() && stream.reserved == 0 {
            self.unreserved.push(frame.stream);
        }
        self.held_by_streams = self.held_by_streams - stream.counted + stream.count();
        // Padding is consumed at once.
        if content.len() < length {
            self.add_stream_credit(frame.stream, length - content.len());
        }
        if valid { Ok(()) } else { self.reset(frame.stream, ErrorCode::Protocol) }
    }

    fn window_update(&mut self, frame: &Frame<'_>) -> FrameResult {
        sized(frame, frame.payload.len() == 4)?;
        let increment = i64::from(frame.number(0).map_err(ConnectionError::protocol)? & (u32::MAX >> 1));
        if frame.stream == 0 {
            self.send_window += increment;
            return if increment == 0 {
                Err(ConnectionError::protocol("it sent a WINDOW_UPDATE of nothing"))
            } else if self.send_window > LARGEST_WINDOW {
                Err(ConnectionError::new(ErrorCode::FlowControl, "it made the window larger than it can be"))
            } else {
                Ok(())
            };
        }
        self.check_opened(frame.stream)?;
        let Some(stream) = self.streams.get_mut(&frame.stream) else {
            return self.unused_credit_of(frame.stream, increment);
        };
        stream.send_window_delta += increment;
        self.largest_send_window_delta = self.largest_send_window_delta.max(stream.send_window_delta);
        if increment == 0 {
            self.reset(frame.stream, ErrorCode::Protocol)
        } else if self.initial_send_window + stream.send_window_delta > LARGEST_WINDOW {
            self.reset(frame.stream, ErrorCode::FlowControl)
        } else {
            Ok(())
        }
    }

    fn rst_stream(&mut self, frame: &Frame<'_>) -> FrameResult {
        sized(frame, frame.payload.len() == 4)?;
        self.check_opened(frame.stream)?;
        let id = frame.stream;
        let Some(begun) = self.streams.get(&id).map(CallStream::has_begun) else {
            if self.take_lingering(id).is_some() {
                self.cancelled_streams.remember(id);
            }
            return Ok(());
        };
        if begun {
            self.observer.observe(ConnectionEvent::ResetInFlight, "a client reset a call in flight");
        }
        let now = self.now();
        if self.client_resets.add(now) {
            return Err(self.flood("it resets calls too fast"));
        }
        self.cancelled_streams.remember(id);
        self.cancel_stream(id);
        Ok(())
    }

    /// Priorities are ignored. A stream that depends on itself is a stream error, as in RFC 7540 (5.3.1). No
    /// RST_STREAM may be sent on an idle stream.
    fn priority(&mut self, frame: &Frame<'_>) -> FrameResult {
        sized(frame, frame.payload.len() == 5)?;
        if frame.stream == 0 {
            return Err(ConnectionError::protocol("it sent a PRIORITY of nothing"));
        }
        if !depends_on_itself(frame) {
            return Ok(());
        }
        self.check_opened(frame.stream)
            .and_then(|()| self.reset(frame.stream, ErrorCode::Protocol))
            .map_err(|_| ConnectionError::protocol("it sent a PRIORITY of a stream that depends on itself"))
    }

    fn settings(&mut self, frame: &Frame<'_>) -> FrameResult {
        if frame.has(ACK) {
            return sized(frame, frame.payload.is_empty());
        }
        sized(frame, frame.payload.len().is_multiple_of(6))?;
        for (name, value) in settings(frame.payload) {
            match name {
                setting::HEADER_TABLE_SIZE => self.response_headers.set_table_size(value),
                setting::ENABLE_PUSH if value > 1 => {
                    return Err(ConnectionError::protocol("ENABLE_PUSH must be 0 or 1"));
                }
                setting::INITIAL_WINDOW_SIZE => self.set_initial_send_window(value.into())?,
                setting::MAX_FRAME_SIZE if !(LARGEST_PAYLOAD..1 << 24).contains(&(value as usize)) => {
                    return Err(ConnectionError::protocol(
                        "MAX_FRAME_SIZE must be from 16,384 to 16,777,215",
                    ));
                }
                _ => {}
            }
        }
        frames::write(&mut self.output, kind::SETTINGS, ACK, 0, &[]);
        Ok(())
    }

    fn goaway_frame(&mut self, frame: &Frame<'_>) -> FrameResult {
        sized(frame, frame.payload.len() >= 8)?;
        self.goaway_received = true;
        self.end_lingering();
        Ok(())
    }

    /// Sets the initial send window. It changes open streams too, but they are visited only if one of their windows
    /// may overflow: one frame may carry thousands of such settings.
    fn set_initial_send_window(&mut self, size: i64) -> FrameResult {
        self.initial_send_window = size;
        if size + self.largest_send_window_delta > LARGEST_WINDOW {
            self.largest_send_window_delta =
                self.streams.values().map(|stream| stream.send_window_delta).fold(0, i64::max);
        }
        if size + self.largest_send_window_delta > LARGEST_WINDOW {
            return Err(ConnectionError::new(
                ErrorCode::FlowControl,
                "it made a window larger than it can be",
            ));
        }
        Ok(())
    }

    fn ping_frame(&mut self, frame: &Frame<'_>) -> FrameResult {
        sized(frame, frame.payload.len() == 8)?;
        if !frame.has(ACK) {
            frames::write(&mut self.output, kind::PING, ACK, 0, frame.payload);
        } else if frame.payload == KEEPALIVE_PING {
            self.ping_acked = true;
        } else if frame.payload == SHUTDOWN_PING && self.shutdown == GracefulShutdown::Announced {
            // All streams that the client opened before it knew of the shutdown have arrived.
            self.finish_shutdown();
        }
        Ok(())
    }

    /// Checks that the stream is not idle: frames for idle streams are connection errors (RFC 9113, 5.1).
    fn check_opened(&self, stream: u32) -> FrameResult {
        if stream.is_multiple_of(2)
            || (stream > self.last_stream_id && self.shutdown != GracefulShutdown::Final)
        {
            return Err(ConnectionError::protocol("it sent a frame of a stream that it has not opened"));
        }
        Ok(())
    }
}

/// True if a HEADERS or PRIORITY frame makes its stream depend on itself.
#[inline]
fn depends_on_itself(frame: &Frame<'_>) -> bool {
    let is_headers = frame.kind == kind::HEADERS;
    if is_headers && !frame.has(flag::PRIORITY) {
        return false;
    }
    let at = usize::from(is_headers && frame.has(flag::PADDED));
    frame.number(at).is_ok_and(|dependency| dependency & (u32::MAX >> 1) == frame.stream)
}

/// Returns the bytes of fixed fields that the flags of a DATA or HEADERS frame announce. A frame with fewer is
/// FRAME_SIZE_ERROR (RFC 9113, 4.2).
const fn fixed_fields(frame: &Frame<'_>) -> usize {
    const PAD_LENGTH: usize = 1;
    const PRIORITY: usize = 5;
    let padded = if frame.has(flag::PADDED) { PAD_LENGTH } else { 0 };
    padded + if frame.kind == kind::HEADERS && frame.has(flag::PRIORITY) { PRIORITY } else { 0 }
}

fn sized(frame: &Frame<'_>, is_right: bool) -> FrameResult {
    const WHY: &str = "it sent a frame of a length that its kind cannot have";
    debug_assert!(frame.payload.len() <= LARGEST_PAYLOAD);
    if is_right { Ok(()) } else { Err(ConnectionError::new(ErrorCode::FrameSize, WHY)) }
}
