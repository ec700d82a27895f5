//! Reads requests from bytes that arrive in any parts.

use super::numbers::integer;

/// The most words of a request, and the most bytes of a word.
const MOST_WORDS: i64 = 1 << 20;
const MOST_BYTES: i64 = 512 << 20;

/// The bytes that have arrived and are not a request yet.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    bytes: Vec<u8>,
    /// Position at which the next request begins.
    at: usize,
}

/// Reason why a connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) String);

impl RequestReader {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next request, once all of it is here. An empty one has no words.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        let mut at = self.at;
        let Some(line) = self.line(&mut at) else { return Ok(None) };
        let Some(count) = line.strip_prefix(b"*") else {
            let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            let words = words.map(<[u8]>::to_vec).collect();
            self.at = at;
            return Ok(Some(words));
        };
        let count = integer(count).ok().filter(|count| *count <= MOST_WORDS);
        let count = count.ok_or_else(|| ProtocolError("invalid multibulk length".to_owned()))?;
        let mut words = Vec::new();
        for _ in 0..count {
            let Some(word) = self.word(&mut at)? else { return Ok(None) };
            words.push(word);
        }
        self.at = at;
        Ok(Some(words))
    }

    fn word(&self, at: &mut usize) -> Result<Option<Vec<u8>>, ProtocolError> {
        let Some(line) = self.line(at) else { return Ok(None) };
        let Some(length) = line.strip_prefix(b"$") else {
            let found = char::from(line.first().copied().unwrap_or(b'\r'));
            return Err(ProtocolError(format!("expected '$', got '{found}'")));
        };
        let length = integer(length).ok().filter(|length| (0..=MOST_BYTES).contains(length));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| ProtocolError("invalid bulk length".to_owned()))?;
        let Some(word) = self.bytes.get(*at..*at + length) else { return Ok(None) };
        if self.bytes.len() < *at + length + 2 {
            return Ok(None);
        }
        *at += length + 2;
        Ok(Some(word.to_vec()))
    }

    /// A line without its end.
    fn line(&self, at: &mut usize) -> Option<&[u8]> {
        let rest = &self.bytes[*at..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        *at += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_from_any_parts() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING  x\r\n*0\r\n*1\r\n$0\r\n\r\n";
        let whole: Vec<Vec<&[u8]>> = vec![vec![b"GET", b"a\r\nb"], vec![b"PING", b"x"], vec![], vec![b""]];
        for size in 1..=bytes.len() {
            let (mut reader, mut read) = (RequestReader::default(), Vec::new());
            for part in bytes.chunks(size) {
                reader.feed(part);
                while let Some(request) = reader.next().unwrap() {
                    read.push(request);
                }
            }
            assert_eq!(read, whole);
        }
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for bytes in [&b"*x\r\n"[..], b"*1\r\n:1\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$x\r\n"] {
            let mut reader = RequestReader::default();
            reader.feed(bytes);
            assert!(reader.next().is_err());
        }
    }
}
