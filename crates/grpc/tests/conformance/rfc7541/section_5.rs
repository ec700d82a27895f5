//! 5: integers and strings. A choice (5.1): an integer may have four bytes behind its first one, which is more than
//! any length or index here; longer ones are refused, also if they only have zeros there.

use super::*;
use crate::case::*;

pub(crate) fn cases() -> Vec<Case> {
    [integers(), strings(), huffman()].into_iter().flatten().collect()
}

/// A literal without indexing with this much before its value.
fn value(before: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0, 1, b'x'][..], before, value].concat()
}

fn integers() -> Vec<Case> {
    let fits = |name: &str, more: Vec<u8>| case("5.1", name).send(call_with(1, &more)).echo(1, "a");
    let wrong =
        |name: &str, more: Vec<u8>| case("5.1", name).send(call_with(1, &more)).error(COMPRESSION_ERROR);
    cases! {
        fits("a length below the prefix has one byte", value(&[126], &[b'v'; 126]));
        fits("a length as large as the prefix has two bytes", value(&[127, 0], &[b'v'; 127]));
        fits("a length above the prefix", value(&[127, 127], &[b'v'; 254]));
        fits("a length of three bytes", value(&[127, 128, 1], &[b'v'; 255]));
        fits("zeros behind an integer change nothing", value(&[127, 129, 128, 0], &[b'v'; 128]));
        fits("an integer may have four bytes behind its first one",
            value(&[127, 129, 128, 128, 0], &[b'v'; 128]));
        wrong("an integer of more bytes is refused", value(&[127, 129, 128, 128, 128, 0], &[b'v'; 128]));
        wrong("an integer that overflows 32 bits is refused",
            value(&[127, 255, 255, 255, 255, 127], &[b'v'; 10]));
        wrong("an integer that overflows 64 bits is refused",
            value(&[[127].as_slice(), &[255; 12], &[1]].concat(), &[b'v'; 10]));
        wrong("an integer without an end is refused", vec![0, 1, b'x', 127, 255]);
        wrong("an integer without its second byte is refused", vec![0, 1, b'x', 127]);
        wrong("an index without its second byte is refused", vec![0xff]);
        wrong("an index that overflows is refused", vec![0xff, 255, 255, 255, 255, 255, 1]);
        wrong("a name's index that overflows is refused", vec![0x7f, 255, 255, 255, 255, 255, 1, 1, b'v']);
        case("5.1", "a table size that overflows is refused") =>
            send(call_behind(1, &[0x3f, 255, 255, 255, 255, 255, 1])), error(COMPRESSION_ERROR);
    }
}

fn strings() -> Vec<Case> {
    let wrong =
        |name: &str, more: Vec<u8>| case("5.2", name).send(call_with(1, &more)).error(COMPRESSION_ERROR);
    let ok = |name: &str, more: Vec<u8>| case("5.2", name).send(call_with(1, &more)).echo(1, "a");
    vec![
        ok("a value may be empty", value(&[0], &[])),
        ok("a value may be long", value(&integer(0, 7, 9_000), &[b'v'; 9_000])),
        wrong("a value longer than its block is refused", value(&[9], b"short")),
        wrong("a value much longer than its block is refused", value(&integer(0, 7, 200_000_000), b"short")),
        wrong("a name longer than its block is refused", vec![0, 99, b'x']),
        wrong("a field without a value is refused", vec![0, 1, b'x']),
        wrong("a field without a name is refused", vec![0]),
        wrong("a Huffman string longer than its block is refused", value(&[0x80 | 9], &[0xff])),
    ]
}

/// 5.2: Huffman coding. The encoding of a call is said back, so that it shows what was decoded.
fn huffman() -> Vec<Case> {
    let encoding = |name: &str, coded: &[u8], says: &'static str| {
        let mut field = vec![0];
        string(&mut field, b"grpc-encoding");
        field.extend(integer(0x80, 7, coded.len()));
        field.extend_from_slice(coded);
        case("5.2", name).send(call_with(1, &field)).status_says(1, UNIMPLEMENTED, says)
    };
    let wrong = |name: &str, coded: &[u8]| {
        let field = value(&integer(0x80, 7, coded.len()), coded);
        case("5.2", name).send(call_with(1, &field)).error(COMPRESSION_ERROR)
    };
    let all = "abcdefghijklmnopqrstuvwxyz0123456789-_.~!*()";
    cases! {
        encoding("common letters have five bits", &coded("aeiost"), "aeiost");
        encoding("letters and digits are decoded", &coded(all), all);
        encoding("capitals are decoded", &coded("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        encoding("a string may end at the end of a byte", &coded("aaaaaaaa"), "aaaaaaaa");
        case("5.2", "every byte can be decoded as it was coded") =>
            send({
                let bytes: Vec<u8> = (1..=255).filter(|byte| !b"\n\r \t".contains(byte)).collect();
                let mut coded = Vec::new();
                httlib_huffman::encode(&bytes, &mut coded).expect("any byte has a code");
                call_with(1, &value(&integer(0x80, 7, coded.len()), &coded))
            }), echo(1, "a");
        case("5.2", "an empty Huffman string is an empty string") =>
            send(call_with(1, &value(&[0x80], &[]))), echo(1, "a");
        case("5.2", "a name may have Huffman coding") =>
            send(call_with(1, &[&[0, 0x80 | 1][..], &coded("x"), &[1, b'v']].concat())), echo(1, "a");
        case("5.2", "a name with Huffman coding is checked like any other") =>
            send(call_with(1, &[&[0, 0x80 | 1][..], &coded("X")[..1], &[1, b'v']].concat())),
            reset(1, PROTOCOL_ERROR);
        // `a` is 00011, then three bits.
        wrong("padding that is not all ones is an error", &[0b0001_1000]);
        wrong("padding with one zero is an error", &[0b0001_1110]);
        wrong("padding of eight bits is an error", &[0b0001_1111, 0xff]);
        wrong("padding of eight bits and no symbol is an error", &[0xff]);
        wrong("padding of 24 bits is an error", &[0b0001_1111, 0xff, 0xff, 0xff]);
        wrong("EOS is an error", &[0xff, 0xff, 0xff, 0xff]);
        wrong("EOS behind a symbol is an error", &[0b0001_1111, 0xff, 0xff, 0xff, 0xff]);
        // EOS has 30 bits, and `a` follows it.
        wrong("EOS before a symbol is an error", &[0xff, 0xff, 0xff, 0b1111_1100, 0b0110_1111]);
        wrong("a long code that is cut off is an error", &coded("\u{1}")[..2]);
    }
}

fn coded(text: &str) -> Vec<u8> {
    let mut coded = Vec::new();
    httlib_huffman::encode(text.as_bytes(), &mut coded).expect("text has a code");
    coded
}
