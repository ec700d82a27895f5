//! What a request's header block says: where it goes, and the fields that matter there.

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use crate::http2::hpack::Field;
use crate::server::dispatch::Method;

/// The beginning of a request.
#[derive(Debug)]
pub(super) struct Head {
    /// The decisions' method that it calls; else the path says what.
    pub(super) method: Option<Method>,
    uri: Option<Box<Uri>>,
    fields: Option<Box<HeaderMap>>,
    /// Bytes that will follow, if it says so.
    pub(super) length: Option<u64>,
}

/// Why a block begins no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not as HTTP says it must be.
    Malformed,
    /// It has more bytes than it may have.
    TooLarge,
    /// It is of HTTP, but not of gRPC: what HTTP says to that.
    Foreign(StatusCode),
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
    foreign: Option<StatusCode>,
}

/// The most bytes of a value that are kept; what a service understands is shorter.
const VALUE: usize = 64;

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;

impl Reader {
    /// For the block that begins a request, of at most so many bytes.
    pub(super) const fn of_request(most: usize) -> Self {
        let head = Head { method: None, uri: None, fields: None, length: None };
        Self { head, left: Some(most), seen: 0, ordinary: false, malformed: false, foreign: None }
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
        if self.malformed || self.seen & all != all {
            return Err(Wrong::Malformed);
        }
        self.foreign.map_or(Ok(self.head), |status| Err(Wrong::Foreign(status)))
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
            METHOD if value != b"POST" => {
                http::Method::from_bytes(value).ok()?;
                self.foreign = Some(StatusCode::METHOD_NOT_ALLOWED);
            }
            PATH => match Method::of(value) {
                Some(method) => self.head.method = Some(method),
                None => self.head.uri = Some(Box::new(PathAndQuery::try_from(value).ok()?.into())),
            },
            _ => {}
        }
        Some(())
    }

    fn field(&mut self, Field { name, value, .. }: Field<'_>) -> Option<()> {
        match name {
            // They are of a connection, and HTTP/2 has its own ways to say it.
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => None,
            b"te" if value != b"trailers" => None,
            b"content-length" => {
                // Digits only: a number may begin with a plus where it is parsed.
                let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
                let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
                (self.head.length.replace(length).is_none_or(|before| before == length)).then_some(())
            }
            b"content-type" => {
                if !is_grpc(value) {
                    self.foreign = self.foreign.or(Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
                }
                Some(())
            }
            b"grpc-timeout" => self.keep(HeaderName::from_static("grpc-timeout"), value),
            b"grpc-encoding" => self.keep(HeaderName::from_static("grpc-encoding"), value),
            _ => Some(()),
        }
    }

    /// Keeps the first of a name. Nothing else is kept of a call: with a table, a few bytes of a block can stand
    /// for all that headers may have, and calls that wait for their messages would hold it.
    fn keep(&mut self, name: HeaderName, value: &[u8]) -> Option<()> {
        let value = HeaderValue::from_bytes(value.get(..VALUE).unwrap_or(value)).ok()?;
        self.head.fields.get_or_insert_default().entry(name).or_insert(value);
        Some(())
    }
}

/// gRPC, with or without the name of what its messages are written in. gRPC-Web is another protocol.
fn is_grpc(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

impl Head {
    /// The request with its body.
    pub(super) fn request<B>(self, body: B) -> http::Request<B> {
        let mut request = http::Request::new(body);
        if let Some(fields) = self.fields {
            *request.headers_mut() = *fields;
        }
        *request.method_mut() = http::Method::POST;
        if let Some(uri) = self.uri {
            *request.uri_mut() = *uri;
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
        let long = "y".repeat(500);
        for path in [REQUEST[2].1, "/weir.v1.RateLimitService/ShouldAllow"] {
            let fields = [
                &[REQUEST[0], REQUEST[1], (":path", path)][..],
                &[("grpc-timeout", "1S"), ("x", "1"), ("grpc-timeout", "2S"), ("content-length", "7")],
            ];
            let head = read(&fields.concat()).unwrap();
            assert_eq!(head.method.is_some(), path != REQUEST[2].1);
            assert_eq!(head.length, Some(7));
            let request = head.request(());
            assert_eq!(request.method(), http::Method::POST);
            assert_eq!(request.headers().len(), 1, "the timeout, which is the first");
            assert_eq!(request.headers()["grpc-timeout"], "1S");
            let encoded = read(&[fields[0], &[("grpc-encoding", &long)]].concat()).unwrap().request(());
            assert_eq!(encoded.headers()["grpc-encoding"].len(), VALUE);
        }
        assert_eq!(read(&REQUEST).unwrap().request(()).uri().path(), REQUEST[2].1);
    }

    #[test]
    fn what_is_not_grpc_is_told_so_in_https_words() {
        let with = |name, value| {
            let others = REQUEST.iter().filter(|field| field.0 != name);
            read(&[&[(name, value)], &others.copied().collect::<Vec<_>>()[..]].concat()).err()
        };
        let typed = |value| read(&[&REQUEST[..], &[("content-type", value)]].concat()).err();
        for fine in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
            assert_eq!(typed(fine), None, "{fine}");
        }
        for other in ["application/json", "application/grpc-web", "application/grpc-web+proto", ""] {
            assert_eq!(typed(other), Some(Wrong::Foreign(StatusCode::UNSUPPORTED_MEDIA_TYPE)), "{other}");
        }
        for verb in ["GET", "PRI", "post"] {
            assert_eq!(with(":method", verb), Some(Wrong::Foreign(StatusCode::METHOD_NOT_ALLOWED)), "{verb}");
        }
        assert_eq!(with(":method", "a b"), Some(Wrong::Malformed));
    }
}
