//! Mutations of valid inputs: messages with changed bytes, texts with cuts and insertions.

use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;

/// Messages, with none, one or two of their bytes changed and a few more behind them.
pub fn damaged<M: Message>(messages: impl Strategy<Value = M>) -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<Index>(), any::<u8>()), 0..3);
    let tail = prop::collection::vec(any::<u8>(), 0..8);
    (messages, damage, tail).prop_map(|(message, damage, tail)| {
        let mut bytes = message.encode_to_vec();
        bytes.extend(tail);
        for (index, byte) in damage {
            if !bytes.is_empty() {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
        }
        bytes
    })
}

/// A text with a few cuts, and one of these pieces in place of what was cut.
pub fn changed(text: &'static str, pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let change = (any::<Index>(), 0..20_usize, prop::sample::select(pieces));
    prop::collection::vec(change, 1..8).prop_map(|changes| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, removed, piece) in changes {
            let start = at.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, piece.chars());
        }
        text.into_iter().collect()
    })
}
