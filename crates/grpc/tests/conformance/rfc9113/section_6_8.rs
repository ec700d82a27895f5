//! 6.8 and 6.10: GOAWAY, graceful shutdown, and CONTINUATION.

use std::time::Duration;

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [goaways(), shutdowns(), keepalive(), continuations()].into_iter().flatten().collect()
}

const LATER: u32 = 0x7fff_ffff;

fn held(stream: u32) -> Vec<u8> {
    [headers(stream, 0, &call_of("/echo.Echo/Held")), data(stream, END_STREAM, message("a"))].concat()
}

fn goaways() -> Vec<Case> {
    let goaway = |code: u32, debug: &str| {
        frame(GOAWAY, 0, 0, [&0_u32.to_be_bytes()[..], &code.to_be_bytes(), debug.as_bytes()].concat())
    };
    cases! {
        case("6.8", "GOAWAY on a stream is a connection error") =>
            send(frame(GOAWAY, 0, 1, [0; 8])), error(PROTOCOL_ERROR);
        case("6.8", "GOAWAY of 7 bytes is FRAME_SIZE_ERROR") =>
            send(frame(GOAWAY, 0, 0, [0; 7])), error(FRAME_SIZE_ERROR);
        case("6.8", "empty GOAWAY is FRAME_SIZE_ERROR") =>
            send(frame(GOAWAY, 0, 0, "")), error(FRAME_SIZE_ERROR);
        case("6.8", "a connection without calls ends with GOAWAY") => send(goaway(NO_ERROR, "")), closed();
        case("6.8", "GOAWAY may have debug data") => send(goaway(NO_ERROR, "because")), closed();
        case("6.8", "GOAWAY with an error ends the connection too") =>
            send(goaway(PROTOCOL_ERROR, "you")), closed();
        case("6.8", "GOAWAY may have an unknown code") => send(goaway(0xdead_beef, "")), closed();
        case("6.8", "calls before GOAWAY are answered") => send([headers(1, 0, &CALL), goaway(NO_ERROR, "")]),
            nothing(), send(data(1, END_STREAM, message("a"))), echo(1, "a"), closed();
        case("6.8", "calls that arrive with GOAWAY are answered") =>
            send([unary(1, "a"), unary(3, "wait"), goaway(NO_ERROR, "")]), echo(1, "a"), echo(3, "wait"),
            closed();
        case("6.8", "a call that was reset is not waited for") =>
            send([held(1), goaway(NO_ERROR, "")]), nothing(), send(reset(1, CANCEL)), closed();
        case("6.8", "GOAWAY may be sent twice") =>
            send([held(1), goaway(NO_ERROR, ""), goaway(NO_ERROR, "")]), nothing(), send(reset(1, CANCEL)),
            closed();
    }
}

/// The server's own shutdown: GOAWAY with the largest identifier, a PING, and GOAWAY with the last stream once
/// the PING is acknowledged.
fn shutdowns() -> Vec<Case> {
    let begun = |name: &str| case("6.8", name).send(held(1)).nothing().shut_down().goaway(LATER, NO_ERROR);
    cases! {
        case("6.8", "a shutdown without calls ends when the client knows of it") =>
            shut_down(), goaway(LATER, NO_ERROR), ping(), goaway(0, NO_ERROR), closed();
        case("6.8", "a shutdown ends without the acknowledgement if it must") => shut_down(),
            goaway(LATER, NO_ERROR), lost_ping(), finish_shutdown(), goaway(0, NO_ERROR), closed();
        begun("calls that the client sends before it knows of a shutdown are answered") =>
            send(unary(3, "a")), echo(3, "a"), ping(), goaway(3, NO_ERROR), send(reset(1, CANCEL)), closed();
        begun("a call in flight is answered after the last GOAWAY") =>
            send(headers(3, 0, &CALL)), ping(), goaway(3, NO_ERROR),
            send([data(3, END_STREAM, message("a")), reset(1, CANCEL)]), echo(3, "a"), closed();
        begun("streams behind the last GOAWAY are ignored, with all of their frames") =>
            ping(), goaway(1, NO_ERROR), send([unary(3, "a"), window_update(3, 1), reset(3, CANCEL)]),
            nothing(), send(reset(1, CANCEL)), closed();
        begun("another PING ends no shutdown") => lost_ping(), send(frame(PING, ACK, 0, *b"whatever")),
            nothing(), send(unary(3, "a")), echo(3, "a");
        begun("a second shutdown changes nothing") => lost_ping(), shut_down(), nothing();
        begun("an error during a shutdown ends it") =>
            lost_ping(), send(frame(PING, 0, 0, "")), error_after(1, FRAME_SIZE_ERROR);
    }
}

/// 6.7 and 9.1: a silent client is asked whether it is there.
fn keepalive() -> Vec<Case> {
    let silent = |name: &str| case("9.1", name).limits(|limits| limits.keepalive_interval = Duration::ZERO);
    cases! {
        silent("a client that acknowledges PINGs keeps its connection") =>
            lost_ping(), send(frame(PING, 0, 0, *b"12345678")), pong(b"12345678");
        silent("a client that does not acknowledge a PING loses its connection, with GOAWAY") =>
            lost_ping(), wait(Duration::from_secs(11)), goaway(0, NO_ERROR), closed();
    }
}

fn continuations() -> Vec<Case> {
    let whole = block(&CALL);
    let begun = |name: &str| case("6.10", name).send(frame(HEADERS, 0, 1, &whole[..9]));
    let ends = frame(CONTINUATION, END_HEADERS, 1, &whole[9..]);
    let body = data(1, END_STREAM, message("a"));
    cases! {
        begun("a block may go on in CONTINUATION") => send([ends.clone(), body.clone()]), echo(1, "a");
        begun("CONTINUATION may be empty") => send([frame(CONTINUATION, 0, 1, ""), ends, body]), echo(1, "a");
        begun("CONTINUATION on stream 0 is a connection error") =>
            send(frame(CONTINUATION, END_HEADERS, 0, &whole[9..])), error(PROTOCOL_ERROR);
        begun("CONTINUATION of another stream is a connection error") =>
            send(frame(CONTINUATION, END_HEADERS, 3, &whole[9..])), error(PROTOCOL_ERROR);
        case("6.10", "CONTINUATION without HEADERS is a connection error") =>
            send(frame(CONTINUATION, END_HEADERS, 1, &whole)), error(PROTOCOL_ERROR);
        case("6.10", "CONTINUATION behind END_HEADERS is a connection error") =>
            send([headers(1, 0, &CALL), frame(CONTINUATION, END_HEADERS, 1, "")]), error(PROTOCOL_ERROR);
        case("6.10", "CONTINUATION behind CONTINUATION with END_HEADERS is a connection error") =>
            send(frame(HEADERS, 0, 1, &whole[..9])), send(frame(CONTINUATION, END_HEADERS, 1, &whole[9..])),
            send(frame(CONTINUATION, END_HEADERS, 1, "")), error(PROTOCOL_ERROR);
        case("6.10", "CONTINUATION behind DATA is a connection error") =>
            send([headers(1, 0, &CALL), data(1, 0, ""), frame(CONTINUATION, END_HEADERS, 1, "")]),
            error(PROTOCOL_ERROR);
        case("6.10", "trailers may go on in CONTINUATION") =>
            send([headers(1, 0, &CALL), data(1, 0, message("a"))]),
            send([
                frame(HEADERS, END_STREAM, 1, ""),
                frame(CONTINUATION, END_HEADERS, 1, block(&[("x", "y")])),
            ]), echo(1, "a");
    }
}
