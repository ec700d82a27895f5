//! The header block of a request: its method, and the fields that are used.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use http::{StatusCode, Uri};

use crate::deadline;
use crate::hpack::HeaderField;
use crate::inflate::GZIP;
use crate::intercept::KeptHeaders;
use crate::service::{MethodId, Methods};

/// The parsed headers of a request.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) struct RequestHead {
    /// The hot method; `None` for any other, whose path is in `uri`.
    pub(crate) method: Option<MethodId>,
    uri: Option<Box<Uri>>,
    /// The caller's timeout, and the deadline that follows from it.
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    /// The value of grpc-encoding, unless it is `identity`.
    pub(crate) encoding: Option<Box<str>>,
    kept: Option<Arc<KeptHeaders>>,
    /// The value of content-length.
    pub(crate) length: Option<u64>,
}

/// The reason why a header block begins no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// The request is malformed (RFC 9113, 8.1.1).
    Malformed,
    /// The headers exceed the size limit.
    TooLarge,
    /// The request is valid HTTP but not gRPC; the HTTP status to answer with.
    NotGrpc(StatusCode),
    /// The path cannot name a method.
    UnknownPath,
}

/// Parses the fields of one block. After a fault it reads on, because HPACK needs every block to its end.
pub(crate) struct HeaderReader<'a> {
    head: RequestHead,
    methods: &'a Methods,
    /// Bytes left for the block, as RFC 9113, 6.5.2 counts them; `None` once they are exceeded.
    budget: Option<usize>,
    /// The pseudo-header fields seen so far.
    seen: u8,
    /// True once a regular field was read: no pseudo-header field may follow.
    regular: bool,
    malformed: bool,
    odd_path: bool,
    not_grpc: Option<StatusCode>,
}

/// Bytes of an unsupported encoding's name that are kept for the error.
const MAX_ENCODING: usize = 64;

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;

impl<'a> HeaderReader<'a> {
    /// Creates a reader of a request's headers, of at most `most` bytes.
    pub(crate) const fn of_request(most: usize, methods: &'a Methods) -> Self {
        let head = RequestHead {
            method: None,
            uri: None,
            timeout: None,
            deadline: None,
            encoding: None,
            kept: None,
            length: None,
        };
        Self {
            head,
            methods,
            budget: Some(most),
            seen: 0,
            regular: false,
            malformed: false,
            odd_path: false,
            not_grpc: None,
        }
    }

    /// Creates a reader of trailers, which have no pseudo-header fields.
    pub(crate) const fn of_trailers(most: usize, methods: &'a Methods) -> Self {
        let mut reader = Self::of_request(most, methods);
        reader.regular = true;
        reader
    }

    /// Reads the next field.
    pub(crate) fn field(&mut self, field: HeaderField<'_>) {
        const OVERHEAD: usize = 32;
        let size = field.name.len() + field.value.len() + OVERHEAD;
        self.budget = self.budget.and_then(|budget| budget.checked_sub(size));
        if self.budget.is_none() {
            return;
        }
        // RFC 9113, 8.2.1 calls blanks around a value malformed. Proxies forward such values, so they are trimmed.
        let may_be_blank = |byte: Option<&u8>| byte.is_some_and(|byte| *byte <= b' ');
        let value = field.value;
        let value = if may_be_blank(value.first()) || may_be_blank(value.last()) {
            value.trim_ascii()
        } else {
            value
        };
        let field = HeaderField { value, ..field };
        let is_pseudo = field.name.first() == Some(&b':');
        self.malformed |= !field.allowed || (is_pseudo && self.regular);
        let valid = if is_pseudo {
            self.pseudo_header(field)
        } else {
            self.regular = true;
            self.regular_field(field)
        };
        self.malformed |= valid.is_none();
    }

    /// Returns the request, or the fault of its block.
    pub(crate) fn request(self) -> Result<RequestHead, HeaderFault> {
        if self.budget.is_none() {
            return Err(HeaderFault::TooLarge);
        }
        let all = METHOD | SCHEME | PATH;
        if self.malformed || self.seen & all != all {
            return Err(HeaderFault::Malformed);
        }
        match self.not_grpc {
            Some(status) => Err(HeaderFault::NotGrpc(status)),
            None if self.odd_path => Err(HeaderFault::UnknownPath),
            None => Ok(self.head),
        }
    }

    /// True if the block was well-formed trailers.
    pub(crate) fn were_trailers(&self) -> bool {
        !self.malformed
    }

    fn pseudo_header(&mut self, HeaderField { name, value, .. }: HeaderField<'_>) -> Option<()> {
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
                self.not_grpc = Some(StatusCode::METHOD_NOT_ALLOWED);
            }
            PATH => match self.methods.find(value) {
                Some(method) => self.head.method = Some(method),
                None => self.path(value)?,
            },
            _ => {}
        }
        Some(())
    }

    /// Reads the path. One with characters that no URI has (`<`) cannot name a method. Proxies forward such paths,
    /// so it is not malformed.
    fn path(&mut self, value: &[u8]) -> Option<()> {
        match PathAndQuery::try_from(value) {
            Ok(path) => self.head.uri = Some(Box::new(path.into())),
            Err(_)
                if value.first() == Some(&b'/') && value.iter().all(|byte| *byte > b' ' && *byte != 0x7f) =>
            {
                self.odd_path = true;
            }
            Err(_) => return None,
        }
        Some(())
    }

    fn regular_field(&mut self, HeaderField { name, value, .. }: HeaderField<'_>) -> Option<()> {
        match name {
            // Connection-specific fields are not allowed (RFC 9113, 8.2.2).
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => None,
            b"te" if value != b"trailers" => None,
            b"content-length" => {
                // Digits only: `parse` would accept a leading plus.
                let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
                let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
                (self.head.length.replace(length).is_none_or(|before| before == length)).then_some(())
            }
            b"content-type" => {
                if !is_grpc(value) {
                    self.not_grpc = self.not_grpc.or(Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
                }
                Some(())
            }
            b"grpc-timeout" => {
                self.timeout(value);
                Some(())
            }
            b"grpc-encoding" => {
                self.encoding(value);
                Some(())
            }
            _ => {
                self.keep_if_asked(name, value);
                Some(())
            }
        }
    }

    /// Reads the timeout; the first one counts. One that cannot be parsed counts as none, as everywhere in gRPC.
    fn timeout(&mut self, value: &[u8]) {
        if self.head.timeout.is_none() {
            self.head.timeout = std::str::from_utf8(value).ok().and_then(deadline::parse);
        }
    }

    fn encoding(&mut self, value: &[u8]) {
        if value != b"identity" && self.head.encoding.is_none() {
            let name = value.get(..MAX_ENCODING).unwrap_or(value);
            self.head.encoding = Some(String::from_utf8_lossy(name).into());
        }
    }

    /// Keeps a header that the interceptor reads. Other headers are dropped: with HPACK's table
    /// a few bytes of a block can expand to many, and calls that wait for their messages would hold them.
    fn keep_if_asked(&mut self, name: &[u8], value: &[u8]) {
        let index = self.methods.kept_headers().iter().position(|kept| kept.as_str().as_bytes() == name);
        if let Some(index) = index {
            Arc::make_mut(self.head.kept.get_or_insert_default()).push(index, value);
        }
    }
}

/// True for the content-type of gRPC, with or without a message format. gRPC-Web is another protocol.
fn is_grpc(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

impl RequestHead {
    /// Returns the path of a call that is not of a hot method.
    pub(crate) fn path(&self) -> Option<&str> {
        self.uri.as_deref().map(Uri::path)
    }

    /// True for a call of a hot method without compression, whose head is cheap to clone.
    pub(crate) const fn is_hot_and_plain(&self) -> bool {
        self.method.is_some() && self.uri.is_none() && self.encoding.is_none()
    }

    /// True if the messages may be compressed with gzip.
    #[inline]
    pub(crate) fn is_gzip(&self) -> bool {
        self.encoding.as_deref() == Some(GZIP)
    }

    /// Returns the headers that the interceptor reads.
    #[inline]
    pub(crate) fn kept(&self) -> &KeptHeaders {
        self.kept.as_deref().unwrap_or(KeptHeaders::NONE)
    }

    /// Sets the deadline if the caller has a timeout. The clock is read only then.
    pub(crate) fn set_deadline(&mut self, now: impl FnOnce() -> Instant) {
        self.deadline = self.timeout.and_then(|timeout| now().checked_add(timeout));
    }

    /// True if the deadline has passed.
    pub(crate) fn is_late(&self, now: impl FnOnce() -> Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now())
    }

    /// Returns the deadline, once it is set.
    #[inline]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Creates the request for the general router.
    pub(crate) fn request<B>(&self, body: B) -> http::Request<B> {
        let mut request = http::Request::new(body);
        *request.method_mut() = http::Method::POST;
        if let Some(uri) = &self.uri {
            request.uri_mut().clone_from(uri);
        }
        *request.version_mut() = http::Version::HTTP_2;
        request
    }
}
