//! Appendix C: the examples, byte by byte as the RFC prints them. Those of requests are GET, which gRPC does not
//! have, and those of responses are no requests: how they are refused shows that they were decoded.

use super::*;
use crate::case::*;

const C_2_1: &[u8] = b"\x40\x0acustom-key\x0dcustom-header";
const C_2_2: &[u8] = b"\x04\x0c/sample/path";
const C_2_3: &[u8] = b"\x10\x08password\x06secret";

const C_3: [&[u8]; 3] = [
    b"\x82\x86\x84\x41\x0fwww.example.com",
    b"\x82\x86\x84\xbe\x58\x08no-cache",
    b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
];

const C_4: [&[u8]; 3] = [
    b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
    b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
    b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
];

const C_5: [&[u8]; 3] = [
    b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com",
    b"\x48\x03307\xc1\xc0\xbf",
    b"\x88\xc1\x61\x1dMon, 21 Oct 2013 20:13:22 GMT\xc0\x5a\x04gzip\
      \x77\x38foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

const C_6: [&[u8]; 3] = [
    b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\
      \x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
    b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
    b"\x88\xc1\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x84\xa6\x2d\x1b\xff\xc0\x5a\
      \x83\x9b\xd9\xab\x77\xad\x94\xe7\x82\x1d\xd7\xf2\xe6\xc7\xb3\x35\xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\
      \x36\x72\xc1\xab\x27\x0f\xb5\x29\x1f\x95\x87\x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\x3d\x50\x07",
];

pub(crate) fn cases() -> Vec<Case> {
    let get = |stream: u32, fields: &[u8]| frame(HEADERS, END_HEADERS | END_STREAM, stream, fields);
    let requests = |section, name: &str, blocks: [&[u8]; 3], entries: usize| {
        case(section, name)
            .send([get(1, blocks[0]), get(3, blocks[1]), get(5, blocks[2])].concat())
            .http(1, "405")
            .http(3, "405")
            .http(5, "405")
            // As many fields are in the table as the RFC says.
            .send(call_with(7, &indexed(61 + entries - 1)))
            .echo(7, "a")
            .send(call_with(9, &indexed(61 + entries + 1)))
            .error(COMPRESSION_ERROR)
    };
    let responses = |section, name: &str, blocks: [&[u8]; 3]| {
        case(section, name)
            .send(get(1, &[&resize(256), blocks[0]].concat()))
            .send([get(3, blocks[1]), get(5, blocks[2])].concat())
            .reset(1, PROTOCOL_ERROR)
            .reset(3, PROTOCOL_ERROR)
            .reset(5, PROTOCOL_ERROR)
            .send(call_with(7, &[indexed(62), indexed(63), indexed(64)].concat()))
            .echo(7, "a")
            .send(call_with(9, &indexed(65)))
            .error(COMPRESSION_ERROR)
    };
    cases! {
        // 10 with a prefix of five bits, 1337, and 42 with one of eight: as table sizes and as a length.
        case("C.1", "the examples of integers are lengths and indices like others") =>
            send(call_behind(1, &[0x2a])), send(call_behind(3, &[0x3f, 0x9a, 0x0a])),
            send(call_with(5, &[&[0, 1, b'x', 42][..], &[b'v'; 42]].concat())), echo(1, "a"), echo(3, "a"),
            echo(5, "a");
        case("C.2.1", "a literal with indexing") =>
            send(call_with(1, C_2_1)), send(call_with(3, &indexed(62))), echo(1, "a"), echo(3, "a");
        case("C.2.2", "a literal without indexing") =>
            send(get(1, &[&block(&CALL[..2]), C_2_2, &block(&CALL[3..])].concat())), status(1, UNIMPLEMENTED),
            send(call_with(3, &indexed(62))), error(COMPRESSION_ERROR);
        case("C.2.3", "a literal that is never indexed") => send(call_with(1, C_2_3)), echo(1, "a"),
            send(call_with(3, &indexed(62))), error(COMPRESSION_ERROR);
        case("C.2.4", "an indexed field") =>
            send(get(1, &[&[0x82][..], &block(&CALL[1..])].concat())), http(1, "405");
        requests("C.3", "requests without Huffman coding", C_3, 3);
        requests("C.4", "requests with Huffman coding", C_4, 3);
        responses("C.5", "responses without Huffman coding", C_5);
        responses("C.6", "responses with Huffman coding", C_6);
    }
}
