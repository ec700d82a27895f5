//! The sending side of a session: responses, within the send windows.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::{Body as _, Frame};
use tonic::Status;

use crate::error_code::ErrorCode;
use crate::frames::{self, LARGEST_PAYLOAD, flag, kind};
use crate::in_flight::StreamingResponse;
use crate::reply::{Reply, ResponseBody};
use crate::session::Session;
use crate::session::preface::wrong_port;
use crate::stream::{AfterData, QueuedData};
use crate::unread_request::UnreadRequest;

impl Session {
    /// Answers a call with one message and grpc-status 0.
    #[inline]
    pub(crate) fn answer_message(&mut self, id: u32, message: &[u8]) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.response_begun = true;
        self.response_headers.begin(&mut self.output, id);
        let length = message.len() as i64;
        if message.len() <= LARGEST_PAYLOAD
            && length <= self.initial_send_window + stream.send_window_delta
            && length <= self.send_window
        {
            self.send_window -= length;
            frames::write(&mut self.output, kind::DATA, 0, id, message);
            self.response_headers.end_ok(&mut self.output, id);
            self.end_stream(id);
        } else {
            self.queue(id, Bytes::copy_from_slice(message), AfterData::Ok);
        }
    }

    /// Answers a call with a response or an error.
    pub(crate) fn answer(&mut self, id: u32, answer: Result<Reply, Status>) {
        if !self.streams.contains_key(&id) {
            return;
        }
        match answer {
            Ok(Reply::Message(message)) => self.answer_message(id, &message),
            Ok(Reply::Messages(body)) => {
                self.response_begins(id);
                self.response_headers.begin(&mut self.output, id);
                self.resumable.push(StreamingResponse { stream: id, body });
            }
            Ok(Reply::Other(response)) => {
                let (head, body) = response.into_parts();
                self.respond(id, &head, (!body.is_end_stream()).then(|| Box::pin(body) as ResponseBody));
            }
            Err(status) => self.respond(id, &status.into_http::<()>().into_parts().0, None),
        }
    }

    fn response_begins(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.response_begun = true;
        }
    }

    /// Fails a response that has begun: in its trailers, unless data is still queued before them.
    pub(super) fn fail_response(&mut self, id: u32, status: &Status) {
        let Some(stream) = self.streams.get(&id) else { return };
        let mut trailers = HeaderMap::new();
        if stream.queued.is_none() && status.add_header(&mut trailers).is_ok() {
            self.resumable.retain(|response| response.stream != id);
            self.queue(id, Bytes::new(), AfterData::Trailers(Box::new(trailers)));
        } else {
            self.send_reset(id, ErrorCode::EnhanceYourCalm);
            self.cancel_stream(id);
        }
    }

    fn respond(&mut self, id: u32, head: &http::response::Parts, body: Option<ResponseBody>) {
        self.response_begins(id);
        self.response_headers.response(&mut self.output, id, head.status, &head.headers, body.is_none());
        match body {
            Some(body) => self.resumable.push(StreamingResponse { stream: id, body }),
            None => self.end_stream(id),
        }
    }

    /// Sends the next frame of a streaming response; `None` is its end.
    pub(crate) fn continue_response(&mut self, response: StreamingResponse, piece: Option<Frame<Bytes>>) {
        let id = response.stream;
        let Some(piece) = piece else { return self.queue(id, Bytes::new(), AfterData::EndStream) };
        match piece.into_data() {
            Ok(data) if response.body.is_end_stream() => self.queue(id, data, AfterData::EndStream),
            Ok(data) => self.queue(id, data, AfterData::More(response)),
            Err(piece) => match piece.into_trailers() {
                Ok(trailers) => self.queue(id, Bytes::new(), AfterData::Trailers(Box::new(trailers))),
                Err(_) => self.resumable.push(response),
            },
        }
    }

    /// Resets a call that has failed without a response.
    pub(crate) fn failed(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            self.release(&stream);
            self.send_reset(id, ErrorCode::Internal);
        }
    }

    /// Takes the streaming responses that may be polled for more; none while the output is full. Those of reset
    /// streams are dropped.
    pub(crate) fn take_resumable(&mut self) -> Vec<StreamingResponse> {
        if self.output_is_full() {
            return Vec::new();
        }
        self.resumable.retain(|response| self.streams.contains_key(&response.stream));
        std::mem::take(&mut self.resumable)
    }

    /// Sends queued data within the windows, one frame per stream in turn.
    pub(crate) fn send_queued(&mut self) {
        let mut without = 0;
        while without < self.blocked.len() && self.send_window > 0 && !self.output_is_full() {
            let Some(id) = self.blocked.pop_front() else { return };
            match self.send_some(id) {
                SendProgress::All => {}
                SendProgress::Some => {
                    self.blocked.push_back(id);
                    without = 0;
                }
                SendProgress::Nothing => {
                    self.blocked.push_back(id);
                    without += 1;
                }
            }
        }
    }

    /// Answers a call whose path cannot name a method.
    pub(super) fn answer_unknown_path(&mut self, id: u32, end_stream: bool) {
        let status = Status::unimplemented("the path is that of no method");
        let (head, ()) = status.into_http().into_parts();
        self.refuse(id, end_stream, head.status, &head.headers);
    }

    /// Answers a call whose headers are too large.
    pub(super) fn answer_too_large(&mut self, id: u32, end_stream: bool) {
        const RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");
        let mut fields = HeaderMap::new();
        fields.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        fields.insert(HeaderName::from_static("grpc-status"), RESOURCE_EXHAUSTED);
        let most = self.limits.max_header_bytes;
        let why = format!("the headers of a call may have {most} bytes, with 32 for each header");
        if let Ok(why) = HeaderValue::try_from(why) {
            fields.insert(HeaderName::from_static("grpc-message"), why);
        }
        self.refuse(id, end_stream, StatusCode::OK, &fields);
    }

    /// Answers a request whose content-type is not gRPC's, with a text for people and programs that have found the
    /// wrong port. Without a send window for the text only the status is sent.
    pub(super) fn answer_not_grpc(&mut self, id: u32, end_stream: bool) {
        const STATUS: StatusCode = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let text = wrong_port(self.limits.http1_hint);
        let length = text.len() as i64;
        if length > self.send_window.min(self.initial_send_window) {
            return self.refuse(id, end_stream, STATUS, &HeaderMap::new());
        }
        let fields = [
            (http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain")),
            (http::header::CONTENT_LENGTH, HeaderValue::from(text.len())),
        ];
        self.response_headers.response(&mut self.output, id, STATUS, &HeaderMap::from_iter(fields), false);
        self.send_window -= length;
        frames::write(&mut self.output, kind::DATA, flag::END_STREAM, id, text.as_bytes());
        if !end_stream {
            self.linger(id, UnreadRequest::new(None, -length));
        }
    }

    /// Answers a header block that begins no call.
    pub(super) fn refuse(&mut self, id: u32, end_stream: bool, status: StatusCode, fields: &HeaderMap) {
        self.response_headers.response(&mut self.output, id, status, fields, true);
        if !end_stream {
            self.linger(id, UnreadRequest::new(None, 0));
        }
    }

    /// Sends data within the windows and queues the rest; `then` follows it.
    fn queue(&mut self, id: u32, data: Bytes, then: AfterData) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.queued_bytes += data.len();
        stream.queued = Some(QueuedData { data, then });
        loop {
            match self.send_some(id) {
                SendProgress::All => return,
                SendProgress::Some if !self.output_is_full() => {}
                SendProgress::Some | SendProgress::Nothing => break,
            }
        }
        // Reset streams stay in the list while the connection has no send window.
        if self.blocked.len() > 2 * self.streams.len() {
            self.blocked.retain(|id| self.streams.contains_key(id));
        }
        self.blocked.push_back(id);
    }

    /// Sends one frame of a stream's queued data, and after the last one what follows the data.
    fn send_some(&mut self, id: u32) -> SendProgress {
        let Some(stream) = self.streams.get_mut(&id) else { return SendProgress::All };
        let Some(queued) = &mut stream.queued else { return SendProgress::All };
        let window = self.send_window.min(self.initial_send_window + stream.send_window_delta);
        let window = usize::try_from(window).unwrap_or(0);
        let length = queued.data.len().min(window).min(LARGEST_PAYLOAD);
        if length == 0 && !queued.data.is_empty() {
            return SendProgress::Nothing;
        }
        let piece = queued.data.split_to(length);
        let is_last = queued.data.is_empty();
        let ends = is_last && matches!(queued.then, AfterData::EndStream);
        stream.send_window_delta -= length as i64;
        self.send_window -= length as i64;
        self.queued_bytes -= length;
        if length > 0 || ends {
            let flags = if ends { flag::END_STREAM } else { 0 };
            frames::write(&mut self.output, kind::DATA, flags, id, &piece);
        }
        if !is_last {
            return SendProgress::Some;
        }
        match stream.queued.take().map(|queued| queued.then) {
            Some(AfterData::More(response)) => self.resumable.push(response),
            Some(AfterData::Ok) => {
                self.response_headers.end_ok(&mut self.output, id);
                self.end_stream(id);
            }
            Some(AfterData::Trailers(trailers)) => {
                self.response_headers.trailers(&mut self.output, id, &trailers);
                self.end_stream(id);
            }
            Some(AfterData::EndStream) => self.end_stream(id),
            None => {}
        }
        SendProgress::All
    }

    /// Ends a stream whose response is complete. If the client has not finished its request, the request lingers.
    fn end_stream(&mut self, id: u32) {
        let Some(stream) = self.streams.remove(&id) else { return };
        let unread = stream.unread_request();
        self.release(&stream);
        if let Some(unread) = unread {
            self.linger(id, unread);
        }
    }
}

/// Progress with the queued data of one stream.
enum SendProgress {
    All,
    Some,
    Nothing,
}
