//! What the peer is told: answers, as far as there is room for them.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body::{Body as _, Frame};
use tonic::Status;

use super::super::code::Code;
use super::super::stream::{Tail, Then};
use super::super::work::Pouring;
use super::Session;
use crate::http2::frames::{self, LARGEST_PAYLOAD, flag, kind};
use crate::service::{Poured, Reply};

impl Session {
    /// Answers a call that went well with one message.
    #[inline]
    pub(in crate::server::http2) fn answer_message(&mut self, id: u32, message: &[u8]) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.blocks.begin(&mut self.out, id);
        let length = message.len() as i64;
        if message.len() <= LARGEST_PAYLOAD && length <= self.first_room + stream.room && length <= self.room
        {
            self.room -= length;
            frames::write(&mut self.out, kind::DATA, 0, id, message);
            self.blocks.end_well(&mut self.out, id);
            self.ended(id);
        } else {
            self.queue(id, Bytes::copy_from_slice(message), Then::Well);
        }
    }

    /// Answers a call.
    pub(in crate::server::http2) fn answer(&mut self, id: u32, answer: Result<Reply, Status>) {
        if !self.streams.contains_key(&id) {
            return;
        }
        match answer {
            Ok(Reply::Message(message)) => self.answer_message(id, &message),
            Ok(Reply::Messages(body)) => {
                self.blocks.begin(&mut self.out, id);
                self.asked.push(Pouring { stream: id, body });
            }
            Ok(Reply::Other(response)) => {
                let (head, body) = response.into_parts();
                self.answer_otherwise(id, &head, (!body.is_end_stream()).then(|| Box::pin(body) as Poured));
            }
            Err(status) => self.answer_otherwise(id, &status.into_http::<()>().into_parts().0, None),
        }
    }

    fn answer_otherwise(&mut self, id: u32, head: &http::response::Parts, body: Option<Poured>) {
        self.blocks.response(&mut self.out, id, head.status, &head.headers, body.is_none());
        match body {
            Some(body) => self.asked.push(Pouring { stream: id, body }),
            None => self.ended(id),
        }
    }

    /// Goes on with an answer.
    pub(in crate::server::http2) fn poured(&mut self, pouring: Pouring, piece: Option<Frame<Bytes>>) {
        let id = pouring.stream;
        let Some(piece) = piece else { return self.queue(id, Bytes::new(), Then::Nothing) };
        match piece.into_data() {
            Ok(data) if pouring.body.is_end_stream() => self.queue(id, data, Then::Nothing),
            Ok(data) => self.queue(id, data, Then::More(pouring)),
            Err(piece) => match piece.into_trailers() {
                Ok(trailers) => self.queue(id, Bytes::new(), Then::Trailers(trailers)),
                Err(_) => self.asked.push(pouring),
            },
        }
    }

    /// Ends a call that has failed without an answer.
    pub(in crate::server::http2) fn failed(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            self.let_go(stream);
            self.send_reset(id, Code::Internal);
        }
    }

    /// The answers that may go on, where not too much waits to be written already. Those of streams that have
    /// been reset meanwhile may not.
    pub(in crate::server::http2) fn take_asked(&mut self) -> Vec<Pouring> {
        if self.is_full() {
            return Vec::new();
        }
        self.asked.retain(|pouring| self.streams.contains_key(&pouring.stream));
        std::mem::take(&mut self.asked)
    }

    /// Sends what has found no room so far, each stream a frame at a time.
    pub(in crate::server::http2) fn pump(&mut self) {
        let mut without = 0;
        while without < self.blocked.len() && self.room > 0 && !self.is_full() {
            let Some(id) = self.blocked.pop_front() else { return };
            match self.send_some(id) {
                Sent::All => {}
                Sent::Some => {
                    self.blocked.push_back(id);
                    without = 0;
                }
                Sent::Nothing => {
                    self.blocked.push_back(id);
                    without += 1;
                }
            }
        }
    }

    /// Headers that were refused for their size: the call's caller is told so.
    pub(super) fn answer_too_large(&mut self, id: u32, is_last: bool) {
        const RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");
        let mut fields = HeaderMap::new();
        fields.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        fields.insert(HeaderName::from_static("grpc-status"), RESOURCE_EXHAUSTED);
        let most = self.bounds.header_bytes;
        let why = format!("the headers of a call may have {most} bytes, with 32 for each header");
        if let Ok(why) = HeaderValue::try_from(why) {
            fields.insert(HeaderName::from_static("grpc-message"), why);
        }
        self.refuse(id, is_last, StatusCode::OK, &fields);
    }

    /// All that is said to headers that begin no call.
    pub(super) fn refuse(&mut self, id: u32, is_last: bool, status: StatusCode, fields: &HeaderMap) {
        self.blocks.response(&mut self.out, id, status, fields, true);
        if !is_last {
            self.send_reset(id, Code::NoError);
        }
    }

    /// Sends what there is room for; what follows it, then or when there is.
    fn queue(&mut self, id: u32, data: Bytes, then: Then) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.waiting += data.len();
        stream.tail = Some(Tail { data, then });
        loop {
            match self.send_some(id) {
                Sent::All => return,
                Sent::Some if !self.is_full() => {}
                Sent::Some | Sent::Nothing => break,
            }
        }
        // Streams that were reset are still there, and nobody looks while there is no window at all.
        if self.blocked.len() > 2 * self.streams.len() {
            self.blocked.retain(|id| self.streams.contains_key(id));
        }
        self.blocked.push_back(id);
    }

    /// A frame of what waits on a stream; where that was the last, what follows.
    fn send_some(&mut self, id: u32) -> Sent {
        let Some(stream) = self.streams.get_mut(&id) else { return Sent::All };
        let Some(tail) = &mut stream.tail else { return Sent::All };
        let room = usize::try_from(self.room.min(self.first_room + stream.room)).unwrap_or(0);
        let length = tail.data.len().min(room).min(LARGEST_PAYLOAD);
        if length == 0 && !tail.data.is_empty() {
            return Sent::Nothing;
        }
        let piece = tail.data.split_to(length);
        let is_last = tail.data.is_empty();
        let ends = is_last && matches!(tail.then, Then::Nothing);
        stream.room -= length as i64;
        self.room -= length as i64;
        self.waiting -= length;
        if length > 0 || ends {
            let flags = if ends { flag::END_STREAM } else { 0 };
            frames::write(&mut self.out, kind::DATA, flags, id, &piece);
        }
        if !is_last {
            return Sent::Some;
        }
        match stream.tail.take().map(|tail| tail.then) {
            Some(Then::More(pouring)) => self.asked.push(pouring),
            Some(Then::Well) => {
                self.blocks.end_well(&mut self.out, id);
                self.ended(id);
            }
            Some(Then::Trailers(trailers)) => {
                self.blocks.trailers(&mut self.out, id, &trailers);
                self.ended(id);
            }
            Some(Then::Nothing) => self.ended(id),
            None => {}
        }
        Sent::All
    }

    /// A call has been answered. Who has not said all is told that nobody listens.
    fn ended(&mut self, id: u32) {
        let Some(stream) = self.streams.remove(&id) else { return };
        let is_done = stream.is_done;
        self.let_go(stream);
        if !is_done {
            self.send_reset(id, Code::NoError);
        }
    }
}

/// What became of what waited.
enum Sent {
    All,
    Some,
    Nothing,
}
