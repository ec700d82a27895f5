//! What a request's header block says: where it goes, and the fields that matter there.

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::http2::hpack::Field;
use crate::server::dispatch::Method;

/// The beginning of a request.
#[derive(Debug)]
pub(super) struct Head {
    /// The decisions' method that it calls; else [`Head::other`] says what.
    pub(super) method: Option<Method>,
    other: Option<Box<Other>>,
    fields: Option<Box<HeaderMap>>,
    /// Bytes that will follow, if it says so.
    pub(super) length: Option<u64>,
}

/// What tonic's services look at besides.
#[derive(Debug, Default)]
struct Other {
    verb: http::Method,
    uri: Uri,
}

/// Why a block begins no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not as HTTP says it must be.
    Malformed,
    /// It has more bytes than it may have.
    TooLarge,
}

/// Listens to the fields of one block. What is wrong ends nothing: the block must be read to its end.
pub(super) struct Reader {
    head: Head,
    /// Bytes that are still allowed, as RFC 9113 counts them.
    left: Option<usize>,
    /// The pseudo headers that have been.
    seen: u8,
    /// Whether no further pseudo header may come.
    ordinary: bool,
    malformed: bool,
}

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;

impl Reader {
    /// For the block that begins a request, of at most so many bytes.
    pub(super) const fn of_request(most: usize) -> Self {
        let head = Head { method: None, other: None, fields: None, length: None };
        Self { head, left: Some(most), seen: 0, ordinary: false, malformed: false }
    }

    /// For one that ends a request: it may have no pseudo header.
    pub(super) const fn of_trailers(most: usize) -> Self {
        let mut reader = Self::of_request(most);
        reader.ordinary = true;
        reader
    }

    pub(super) fn hear(&mut self, field: Field<'_>) {
        const OVERHEAD: usize = 32;
        let size = field.name.len() + field.value.len() + OVERHEAD;
        self.left = self.left.and_then(|left| left.checked_sub(size));
        if self.left.is_none() {
            return;
        }
        let is_pseudo = field.name.first() == Some(&b':');
        self.malformed |= !field.allowed || (is_pseudo && self.ordinary);
        let heard = if is_pseudo {
            self.pseudo(field)
        } else {
            self.ordinary = true;
            self.field(field)
        };
        self.malformed |= heard.is_none();
    }

    /// The request, if it is one.
    pub(super) fn request(self) -> Result<Head, Wrong> {
        if self.left.is_none() {
            return Err(Wrong::TooLarge);
        }
        let all = METHOD | SCHEME | PATH;
        if self.malformed || self.seen & all != all { Err(Wrong::Malformed) } else { Ok(self.head) }
    }

    /// Whether these were trailers as they must be.
    pub(super) fn were_trailers(&self) -> bool {
        !self.malformed
    }

    fn pseudo(&mut self, Field { name, value, .. }: Field<'_>) -> Option<()> {
        let which = match name {
            b":method" => METHOD,
            b":scheme" => SCHEME,
            b":path" => PATH,
            b":authority" => AUTHORITY,
            _ => return None,
        };
        if self.seen & which != 0 {
            return None;
        }
        self.seen |= which;
        match which {
            // Nearly all are POSTs, and so are those that nobody says otherwise of.
            METHOD if value != b"POST" => self.other().verb = http::Method::from_bytes(value).ok()?,
            PATH => match Method::of(value) {
                Some(method) => self.head.method = Some(method),
                None => self.other().uri = PathAndQuery::try_from(value).ok()?.into(),
            },
            _ => {}
        }
        Some(())
    }

    fn other(&mut self) -> &mut Other {
        self.head
            .other
            .get_or_insert_with(|| Box::new(Other { verb: http::Method::POST, uri: Uri::default() }))
    }

    fn field(&mut self, Field { name, value, .. }: Field<'_>) -> Option<()> {
        match name {
            // They are of a connection, and HTTP/2 has its own ways to say it.
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => None,
            b"te" if value != b"trailers" => None,
            b"content-length" => {
                let length = std::str::from_utf8(value).ok()?.parse().ok()?;
                (self.head.length.replace(length).is_none_or(|before| before == length)).then_some(())
            }
            // Decisions know these only: grpc-timeout and grpc-encoding.
            _ if self.head.method.is_some() && !name.starts_with(b"grpc-") => Some(()),
            _ => {
                let fields = self.head.fields.get_or_insert_default();
                let name = HeaderName::from_bytes(name).ok()?;
                fields.append(name, HeaderValue::from_bytes(value).ok()?);
                Some(())
            }
        }
    }
}

impl Head {
    /// The request with its body.
    pub(super) fn request<B>(self, body: B) -> http::Request<B> {
        let mut request = http::Request::new(body);
        if let Some(fields) = self.fields {
            *request.headers_mut() = *fields;
        }
        *request.method_mut() = http::Method::POST;
        if let Some(other) = self.other {
            *request.method_mut() = other.verb;
            *request.uri_mut() = other.uri;
        }
        *request.version_mut() = http::Version::HTTP_2;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [(&str, &str); 4] = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.health.v1.Health/Check"),
        ("te", "trailers"),
    ];

    fn read(fields: &[(&str, &str)]) -> Result<Head, Wrong> {
        let mut reader = Reader::of_request(1000);
        for (name, value) in fields {
            reader.hear(Field { name: name.as_bytes(), value: value.as_bytes(), allowed: true });
        }
        reader.request()
    }

    #[test]
    fn what_no_request_says_is_malformed() {
        let more = |field| read(&[&REQUEST[..], &[field]].concat()).err();
        assert_eq!(more(("x", "y")), None);
        for field in [
            (":scheme", "http"),
            (":authority", "late"),
            ("connection", "close"),
            ("te", "gzip"),
            ("content-length", "-1"),
            ("bad name", ""),
        ] {
            assert_eq!(more(field), Some(Wrong::Malformed), "{field:?}");
        }
        for missing in 0..3 {
            let mut fields = REQUEST.to_vec();
            fields.remove(missing);
            assert_eq!(read(&fields).err(), Some(Wrong::Malformed), "without {:?}", REQUEST[missing]);
            let twice = [&REQUEST[missing..=missing], &REQUEST[..]].concat();
            assert_eq!(read(&twice).err(), Some(Wrong::Malformed), "twice {:?}", REQUEST[missing]);
        }
        assert_eq!(read(&[&[(":status", "200")], &REQUEST[..]].concat()).err(), Some(Wrong::Malformed));
        assert_eq!(more(("x", &"y".repeat(1000))), Some(Wrong::TooLarge));
    }

    #[test]
    fn a_request_keeps_what_its_service_looks_at() {
        let fields =
            [&REQUEST[..], &[("grpc-timeout", "1S"), ("x", "1"), ("x", "2"), ("content-length", "7")]];
        let head = read(&fields.concat()).unwrap();
        assert_eq!((head.method, head.length), (None, Some(7)));
        let request = head.request(());
        assert_eq!((request.method(), request.uri().path()), (&http::Method::POST, REQUEST[2].1));
        assert_eq!(request.headers().get_all("x").iter().count(), 2);
        let ours = (":path", "/weir.v1.RateLimitService/ShouldAllow");
        let fields = [&[REQUEST[0], REQUEST[1], ours], &fields.concat()[3..]].concat();
        let head = read(&fields).unwrap();
        assert_eq!(head.method, Some(Method::ShouldAllow));
        assert_eq!(head.request(()).headers().len(), 1, "the timeout");
    }
}
