//! HPACK's static table, and the dynamic table of one peer.

use std::collections::VecDeque;

use super::{HeaderField, TABLE};

#[derive(Debug)]
pub(super) struct TableEntry {
    /// The name, followed by the value.
    bytes: Box<[u8]>,
    name_length: usize,
    /// True if HTTP/2 allows the name, or the whole field.
    is_name: bool,
    allowed: bool,
}

/// The dynamic table, the newest entry first.
#[derive(Debug)]
pub(super) struct DynamicTable {
    entries: VecDeque<TableEntry>,
    size: usize,
    largest: usize,
}

impl TableEntry {
    pub(super) fn new(field: HeaderField<'_>, is_name: bool) -> Self {
        let HeaderField { name, value, allowed } = field;
        Self { bytes: [name, value].concat().into(), name_length: name.len(), is_name, allowed }
    }

    /// The entry's size as RFC 7541 (4.1) defines it.
    fn size(&self) -> usize {
        const OVERHEAD: usize = 32;
        self.bytes.len() + OVERHEAD
    }

    fn field(&self) -> HeaderField<'_> {
        let (name, value) = self.bytes.split_at(self.name_length);
        HeaderField { name, value, allowed: self.allowed }
    }
}

impl Default for DynamicTable {
    fn default() -> Self {
        Self { entries: VecDeque::new(), size: 0, largest: TABLE }
    }
}

impl DynamicTable {
    /// Returns the field at an index, counted from 1: the static table, then the dynamic table.
    #[inline]
    pub(super) fn field(&self, place: usize) -> Option<HeaderField<'_>> {
        match place.checked_sub(STATIC.len() + 1) {
            Some(index) => self.entries.get(index).map(TableEntry::field),
            None => STATIC.get(place.checked_sub(1)?).map(|&(name, value)| HeaderField {
                name: name.as_bytes(),
                value: value.as_bytes(),
                allowed: true,
            }),
        }
    }

    /// Returns the name at an index, and true if it is allowed.
    pub(super) fn name(&self, place: usize) -> Option<(&[u8], bool)> {
        match place.checked_sub(STATIC.len() + 1) {
            Some(index) => self.entries.get(index).map(|entry| (entry.field().name, entry.is_name)),
            None => self.field(place).map(|field| (field.name, true)),
        }
    }

    /// Inserts an entry, and evicts the oldest ones as needed.
    pub(super) fn add(&mut self, entry: TableEntry) {
        let size = entry.size();
        self.make_room(size);
        if size <= self.largest {
            self.size += size;
            self.entries.push_front(entry);
        }
    }

    /// Applies a size update.
    pub(super) fn resize(&mut self, largest: usize) {
        self.largest = largest;
        self.make_room(0);
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.largest
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }
}

/// The static table: RFC 7541, appendix A.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];
