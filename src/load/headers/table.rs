//! The names that HPACK knows, and the headers that the server has put into its table.

use std::collections::VecDeque;
use std::sync::Arc;

/// What one header says, as far as anybody here asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Header {
    Http(u16),
    Grpc(i32),
    Message(Arc<str>),
    Other,
}

/// The names that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Http,
    Grpc,
    Message,
    Other,
}

/// A header that the server may refer to.
#[derive(Debug, Clone)]
struct Entry {
    header: Header,
    name: Name,
    name_length: usize,
    size: usize,
}

/// The dynamic table, the newest first.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    size: usize,
    largest: usize,
}

impl Name {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b":status" => Self::Http,
            b"grpc-status" => Self::Grpc,
            b"grpc-message" => Self::Message,
            _ => Self::Other,
        }
    }
}

impl Table {
    pub(super) const fn new(largest: usize) -> Self {
        Self { entries: VecDeque::new(), size: 0, largest }
    }

    /// The header at this place, counted from 1: the static ones, then ours.
    pub(super) fn header(&self, place: usize) -> Option<Header> {
        match place.checked_sub(STATIC.len() + 1) {
            Some(index) => self.entries.get(index).map(|entry| entry.header.clone()),
            None => STATIC.get(place.checked_sub(1)?).map(|_| match place {
                8..=14 => Header::Http(STATUSES[place - 8]),
                _ => Header::Other,
            }),
        }
    }

    /// The name at this place, and its length.
    pub(super) fn name(&self, place: usize) -> Option<(Name, usize)> {
        match place.checked_sub(STATIC.len() + 1) {
            Some(index) => self.entries.get(index).map(|entry| (entry.name, entry.name_length)),
            None => STATIC.get(place.checked_sub(1)?).map(|name| (Name::of(name.as_bytes()), name.len())),
        }
    }

    /// Takes in a new header, and drops the oldest as far as there is no room.
    pub(super) fn add(&mut self, header: Header, name: Name, name_length: usize, value_length: usize) {
        const OVERHEAD: usize = 32;
        let size = name_length + value_length + OVERHEAD;
        self.make_room(size);
        if size <= self.largest {
            self.size += size;
            self.entries.push_front(Entry { header, name, name_length, size });
        }
    }

    /// The server uses so much of the table from now on.
    pub(super) fn resize(&mut self, largest: usize) {
        self.largest = largest;
        self.make_room(0);
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.largest
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}

/// The values of `:status` in the static table.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// The names in the static table: RFC 7541, appendix A.
#[rustfmt::skip]
const STATIC: [&str; 61] = [
    ":authority", ":method", ":method", ":path", ":path", ":scheme", ":scheme", ":status", ":status", ":status",
    ":status", ":status", ":status", ":status", "accept-charset", "accept-encoding", "accept-language",
    "accept-ranges", "accept", "access-control-allow-origin", "age", "allow", "authorization", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length", "content-location",
    "content-range", "content-type", "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified", "link", "location",
    "max-forwards", "proxy-authenticate", "proxy-authorization", "range", "referer", "refresh", "retry-after",
    "server", "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "vary", "via",
    "www-authenticate",
];
