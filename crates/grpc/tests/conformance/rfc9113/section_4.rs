//! 4: frames, their size, and header blocks. 4.2 lets a DATA or HEADERS frame that is too large be a stream error;
//! here it is a connection error like any other, because its payload is never read.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [
        unknown_types(),
        undefined_flags(),
        reserved_bits(),
        sizes(),
        blocks(),
        interruptions(),
        compression_state(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn unknown_types() -> Vec<Case> {
    let unknown = |stream, payload: &[u8]| frame(0x16, 0xff, stream, payload);
    cases! {
        case("4.1", "a frame of an unknown type is ignored on the connection") =>
            send(unknown(0, b"x")), usable();
        case("4.1", "a frame of an unknown type is ignored on an idle stream") =>
            send(unknown(9, b"x")), usable();
        case("4.1", "a frame of an unknown type is ignored on an open stream") =>
            send([headers(1, 0, &CALL), unknown(1, b"x"), data(1, END_STREAM, message("a"))]), echo(1, "a");
        case("4.1", "a frame of an unknown type is ignored on a closed stream") =>
            send(unary(1, "a")), echo(1, "a"), send(unknown(1, b"x")), usable();
        case("4.1", "a frame of an unknown type is ignored on a stream of the server") =>
            send(unknown(2, b"x")), usable();
        case("4.1", "a frame of an unknown type may be empty") => send(unknown(0, b"")), usable();
        case("4.1", "a frame of an unknown type may be as large as any other") =>
            send(unknown(0, &[0; 16_384])), usable();
        case("4.1", "every unknown type is ignored") =>
            send((0x0a..=0xff).flat_map(|kind| frame(kind, 0, 0, "any")).collect::<Vec<u8>>()), usable();
    }
}

fn undefined_flags() -> Vec<Case> {
    let call = [headers(1, 0, &CALL), data(1, END_STREAM, message("a"))].concat();
    let held = headers(1, 0, &call_of("/echo.Echo/Held"));
    cases! {
        case("4.1", "undefined flags of DATA are ignored") =>
            send([headers(1, 0, &CALL), data(1, 0xf6 | END_STREAM, message("a"))]), echo(1, "a");
        case("4.1", "undefined flags of HEADERS are ignored") =>
            send([headers(1, 0xd2, &CALL), data(1, END_STREAM, message("a"))]), echo(1, "a");
        case("4.1", "undefined flags of PRIORITY are ignored") =>
            send(frame(PRIORITY, 0xff, 1, [0; 5])), usable();
        case("4.1", "undefined flags of RST_STREAM are ignored") =>
            send(held), send(frame(RST_STREAM, 0xff, 1, [0, 0, 0, 8])), usable();
        case("4.1", "undefined flags of SETTINGS are ignored") =>
            send(frame(SETTINGS, 0xfe, 0, "")), acks(1), usable();
        case("4.1", "undefined flags of PING are ignored") =>
            send(frame(PING, 0xfe, 0, *b"12345678")), pong(b"12345678");
        case("4.1", "undefined flags of WINDOW_UPDATE are ignored") =>
            send(frame(WINDOW_UPDATE, 0xff, 0, [0, 0, 0, 1])), usable();
        case("4.1", "undefined flags of GOAWAY are ignored") =>
            send(call), echo(1, "a"), send(frame(GOAWAY, 0xff, 0, [0; 8])), closed();
        case("4.1", "undefined flags of CONTINUATION are ignored") =>
            send(frame(HEADERS, 0, 1, block(&CALL[..2]))),
            send(frame(CONTINUATION, 0xfb, 1, block(&CALL[2..3]))),
            send(frame(CONTINUATION, 0xff, 1, block(&CALL[3..]))), send(data(1, END_STREAM, message("a"))),
            echo(1, "a");
    }
}

fn reserved_bits() -> Vec<Case> {
    const RESERVED: u32 = 1 << 31;
    cases! {
        case("4.1", "the reserved bit of a stream is ignored") =>
            send([headers(RESERVED | 1, 0, &CALL), data(RESERVED | 1, END_STREAM, message("a"))]),
            echo(1, "a");
        case("4.1", "the reserved bit is ignored on the connection") =>
            send(frame(PING, 0, RESERVED, *b"12345678")), pong(b"12345678");
    }
}

fn sizes() -> Vec<Case> {
    let large = "x".repeat(16_384 - 5);
    let too_large = |name: &str, kind, stream| {
        case("4.2", format!("{name} of 16,385 bytes is an error before its payload comes"))
            .send(frame_head(16_385, kind, 0, stream))
            .error(FRAME_SIZE_ERROR)
    };
    cases! {
        case("4.2", "a DATA frame may have 16,384 bytes") => send(unary(1, &large)), echo(1, &large);
        case("4.2", "a HEADERS frame may have 16,384 bytes") =>
            send({
                // Below the limit of the header list, because the padding does not count there.
                let block = block(&and(&[("x", &"y".repeat(16_060))]));
                let padding = 16_384 - 1 - block.len();
                assert!(padding < 256);
                let payload = [vec![padding as u8], block, vec![0; padding]].concat();
                [frame(HEADERS, END_HEADERS | PADDED, 1, payload), data(1, END_STREAM, message("a"))].concat()
            }), echo(1, "a");
        too_large("DATA", DATA, 1);
        too_large("HEADERS", HEADERS, 1);
        too_large("CONTINUATION", CONTINUATION, 1);
        too_large("SETTINGS", SETTINGS, 0);
        too_large("PING", PING, 0);
        too_large("a frame of an unknown type", 0xaa, 0);
        case("4.2", "the largest length that can be written is an error") =>
            send(frame_head(0xff_ffff, DATA, 0, 1)), error(FRAME_SIZE_ERROR);
        case("4.2", "what the client takes does not change what the server takes") =>
            send(settings(&[(MAX_FRAME_SIZE, 1 << 20)])), acks(1), send(frame_head(16_385, DATA, 0, 1)),
            error(FRAME_SIZE_ERROR);
        // The client of these cases takes no larger frame.
        case("4.2", "the server sends no frame of more than 16,384 bytes") =>
            send(settings(&[(MAX_FRAME_SIZE, 1 << 20)])), acks(1),
            send([headers(1, 0, &call_of("/echo.Echo/Large")), data(1, END_STREAM, message("60000"))]),
            answer(1, message([7; 60_000]));
    }
}

fn blocks() -> Vec<Case> {
    let whole = block(&CALL);
    let body = data(1, END_STREAM, message("a"));
    let pieces: Vec<u8> = whole.iter().flat_map(|byte| frame(CONTINUATION, 0, 1, [*byte])).collect();
    cases! {
        case("4.3", "a block may be split between any two bytes") =>
            send({
                let mut all = Vec::new();
                for at in 0..=whole.len() {
                    let stream = 1 + 2 * at as u32;
                    all.extend(frame(HEADERS, END_STREAM, stream, &whole[..at]));
                    all.extend(frame(CONTINUATION, END_HEADERS, stream, &whole[at..]));
                    all.extend(reset(stream, CANCEL));
                }
                all
            });
        case("4.3", "every byte of a block may have a frame of its own") =>
            send([frame(HEADERS, 0, 1, ""), pieces, frame(CONTINUATION, END_HEADERS, 1, ""), body.clone()]),
            echo(1, "a");
        case("4.3", "frames of a block may arrive byte by byte") =>
            send_byte_by_byte(frame(HEADERS, 0, 1, &whole[..9])),
            send_byte_by_byte(frame(CONTINUATION, END_HEADERS, 1, &whole[9..])), send_byte_by_byte(body),
            echo(1, "a");
        case("4.3", "a block that cannot be decoded is a connection error") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [0x80])), error(COMPRESSION_ERROR);
        case("4.3", "a block that ends within a field is a connection error") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &whole[..whole.len() - 1])),
            error(COMPRESSION_ERROR);
        case("4.3", "trailers that cannot be decoded are a connection error") => send(headers(1, 0, &CALL)),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [0x80])), error(COMPRESSION_ERROR);
        case("4.3", "an unfinished block is no error while it may still go on") =>
            send(frame(HEADERS, 0, 1, &whole[..9])), nothing();
    }
}

/// 4.3 and 6.10: nothing may come between the frames of a block.
fn interruptions() -> Vec<Case> {
    let interrupted = |name: &str, between: Vec<u8>| {
        case("4.3", format!("{name} within a block is a connection error"))
            .send(unary(1, "a"))
            .echo(1, "a")
            .send([frame(HEADERS, 0, 3, block(&CALL[..2])), between].concat())
            .error(PROTOCOL_ERROR)
    };
    vec![
        interrupted("DATA of its stream", data(3, 0, "x")),
        interrupted("DATA of another stream", data(1, 0, "x")),
        interrupted("HEADERS of its stream", headers(3, 0, &CALL[2..])),
        interrupted("HEADERS of another stream", headers(5, 0, &CALL)),
        interrupted("CONTINUATION of another stream", frame(CONTINUATION, END_HEADERS, 1, "")),
        interrupted("PRIORITY", frame(PRIORITY, 0, 3, [0; 5])),
        interrupted("RST_STREAM", reset(3, CANCEL)),
        interrupted("SETTINGS", settings(&[])),
        interrupted("an acknowledgement of SETTINGS", frame(SETTINGS, ACK, 0, "")),
        interrupted("PING", frame(PING, 0, 0, [0; 8])),
        interrupted("GOAWAY", frame(GOAWAY, 0, 0, [0; 8])),
        interrupted("WINDOW_UPDATE", window_update(0, 1)),
        interrupted("a frame of an unknown type", frame(0xaa, 0, 3, "x")),
    ]
}

/// 4.3: blocks change the state of the decompressor even if the request they begin is not served.
fn compression_state() -> Vec<Case> {
    // Its path goes into the dynamic table, at index 62.
    let insert = || [vec![0x44], vec![16], b"/echo.Echo/Unary".to_vec()].concat();
    let other_fields = block(&[CALL[0], CALL[1], CALL[3], CALL[4]]);
    let refer = [block(&CALL[..2]), vec![0x80 | 62], block(&CALL[3..])].concat();
    let used = |stream: u32| {
        [frame(HEADERS, END_HEADERS, stream, &refer), data(stream, END_STREAM, message("a"))].concat()
    };
    let first = |more: &[Pair<'_>]| {
        let fields = [CALL[0], CALL[1]].into_iter().chain(more.iter().copied()).collect::<Vec<_>>();
        frame(HEADERS, END_HEADERS | END_STREAM, 3, [block(&fields), insert()].concat())
    };
    cases! {
        case("4.3", "the block of a refused stream is decoded") =>
            limits(|limits| limits.max_streams = 1), send(headers(1, 0, &call_of("/echo.Echo/Held"))),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 3, [insert(), other_fields.clone()].concat())),
            reset(3, REFUSED_STREAM), send(reset(1, CANCEL)), send(used(5)), echo(5, "a");
        case("4.3", "the block of a malformed request is decoded") =>
            send(first(&[("connection", "close")])), reset(3, PROTOCOL_ERROR), send(used(5)), echo(5, "a");
        case("4.3", "the block of a request with too many headers is decoded") =>
            send(first(&[("x", &"y".repeat(16_000)), ("z", &"y".repeat(300))])),
            status(3, RESOURCE_EXHAUSTED), send(used(5)), echo(5, "a");
        case("4.3", "the block of a request that is not gRPC is decoded") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 3, [&[0x82, 0x86][..], &insert()].concat())),
            http(3, "405"), send(used(5)), echo(5, "a");
        // The trailer is the newest entry, and x: y does no harm.
        case("4.3", "the block of trailers is decoded") =>
            send([headers(3, 0, &CALL), data(3, 0, message("t"))]),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 3, [&[0x40, 1, b'x'][..], &[1, b'y']].concat())),
            echo(3, "t"),
            send([
                frame(HEADERS, END_HEADERS, 5, [block(&CALL), vec![0x80 | 62]].concat()),
                data(5, END_STREAM, message("a")),
            ]), echo(5, "a");
        case("4.3", "the block of trailers for a stream that was reset is decoded") =>
            send(headers(3, 0, &and(&[("connection", "close")]))), reset(3, PROTOCOL_ERROR),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 3, insert())), send(used(5)), echo(5, "a");
        case("4.3", "the block of a stream behind the last one of GOAWAY is decoded") =>
            send(headers(1, 0, &call_of("/echo.Echo/Held"))), nothing(), shut_down(),
            goaway(0x7fff_ffff, NO_ERROR), ping(), goaway(1, NO_ERROR),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 3, [insert(), other_fields].concat())),
            send(frame(HEADERS, END_HEADERS | END_STREAM, 5, &refer)), nothing();
    }
}
