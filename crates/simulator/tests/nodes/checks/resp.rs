//! Replies of scripts, read back.

/// A reply in RESP2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RespValue {
    Int(i64),
    Text(Vec<u8>),
    Array(Vec<RespValue>),
    Nothing,
}

impl RespValue {
    /// Reads one reply.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        read(&mut &bytes[..])
    }

    /// The numbers of an array of numbers.
    pub(super) fn numbers(&self) -> Option<Vec<u64>> {
        let Self::Array(values) = self else { return None };
        let number = |value: &Self| match value {
            Self::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        values.iter().map(number).collect()
    }
}

fn read(bytes: &mut &[u8]) -> Option<RespValue> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[2..];
    let (kind, line) = line.split_first()?;
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    match kind {
        b':' => Some(RespValue::Int(number()?)),
        b'$' => match usize::try_from(number()?) {
            Err(_) => Some(RespValue::Nothing),
            Ok(length) => {
                let (text, rest) = bytes.split_at_checked(length)?;
                *bytes = rest.get(2..)?;
                Some(RespValue::Text(text.to_vec()))
            }
        },
        b'*' => match usize::try_from(number()?) {
            Err(_) => Some(RespValue::Nothing),
            Ok(count) => (0..count).map(|_| read(bytes)).collect::<Option<_>>().map(RespValue::Array),
        },
        _ => Some(RespValue::Text(line.to_vec())),
    }
}
