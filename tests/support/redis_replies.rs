//! The ends of replies.

use std::io::BufRead;

/// The replies in these bytes.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (reply, rest) = bytes.split_at(end_of(bytes).expect("the reply is whole"));
        replies.push(reply);
        bytes = rest;
    }
    replies
}

/// Reads one reply.
pub(crate) fn read(from: &mut impl BufRead) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        assert!(from.read_until(b'\n', &mut bytes).unwrap() > 0, "the server has closed the connection");
        if end_of(&bytes) == Some(bytes.len()) {
            return bytes;
        }
    }
}

/// Returns the end of the first reply, if all of it has arrived.
fn end_of(bytes: &[u8]) -> Option<usize> {
    let line = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let number = || std::str::from_utf8(&bytes[1..line - 2]).unwrap().parse::<i64>().unwrap();
    let parts = match bytes[0] {
        b'$' => {
            let length = usize::try_from(number()).map_or(0, |length| length + 2);
            return (bytes.len() >= line + length).then_some(line + length);
        }
        b'*' | b'~' => number().max(0),
        b'%' => 2 * number(),
        _ => 0,
    };
    let mut at = line;
    for _ in 0..parts {
        at += end_of(bytes.get(at..)?)?;
    }
    Some(at)
}
