//! 3: how a connection begins. The choices of 3.4: an invalid preface gets no GOAWAY, because its sender does not
//! speak HTTP/2. A client of HTTP/1.1 gets a response of HTTP/1.1.

use std::time::Duration;

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [prefaces(), first_frames(), patience()].into_iter().flatten().collect()
}

fn begun(with: &[Vec<u8>]) -> Vec<u8> {
    [PREFACE, &with.concat()].concat()
}

fn prefaces() -> Vec<Case> {
    let settings_frame = settings(&[]);
    let upgrade = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\
                   http2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    cases! {
        bare("3.1", "the upgrade from HTTP/1.1 is obsolete and not offered") =>
            send(upgrade), text("505"), broken();
        bare("3.3", "prior knowledge suffices: a request may follow the preface at once") =>
            send(begun(&[settings_frame.clone(), unary(1, "hello")])), acks(1), echo(1, "hello");
        bare("3.4", "the preface may arrive byte by byte") =>
            send_byte_by_byte(begun(std::slice::from_ref(&settings_frame))), acks(1), usable();
        bare("3.4", "the preface and everything behind it may arrive byte by byte") =>
            send_byte_by_byte(begun(&[settings_frame, unary(1, "hello")])), acks(1), echo(1, "hello");
        bare("3.4", "the server's preface is a SETTINGS frame, sent without waiting for the client's") =>
            send(PREFACE), settings([(MAX_CONCURRENT_STREAMS, 1024), (MAX_HEADER_LIST_SIZE, 16 << 10)]),
            nothing();
        bare("3.4", "a request of HTTP/1.1 gets a response of HTTP/1.1") =>
            send("GET / HTTP/1.1\r\nhost: a\r\n\r\n"), text("HTTP/1.1 505 HTTP Version Not Supported"),
            broken();
        bare("3.4", "a preface with another version ends the connection") =>
            send("PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"), text("505"), broken();
        bare("3.4", "a preface whose last byte is wrong ends the connection") =>
            send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"), text("505"), broken();
        bare("3.4", "a TLS handshake ends the connection without an answer") =>
            send([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), broken();
        bare("3.4", "a frame before the preface ends the connection") => send(settings(&[])), broken();
        bare("3.4", "a client that closes within the preface ends the connection") =>
            send(&PREFACE[..10]), finish(), closed();
        bare("3.4", "a client that sends nothing and closes ends the connection") => finish(), closed();
        case("3.4", "a second preface is no frame") => send(PREFACE), error(FRAME_SIZE_ERROR);
    }
}

fn first_frames() -> Vec<Case> {
    let first = |name: &str, frame: Vec<u8>| {
        bare("3.4", format!("the first frame must be SETTINGS, not {name}"))
            .send(begun(&[frame]))
            .error(PROTOCOL_ERROR)
    };
    cases! {
        first("PING", frame(PING, 0, 0, [0; 8]));
        first("HEADERS", headers(1, END_STREAM, &CALL));
        first("DATA", data(1, 0, "x"));
        first("WINDOW_UPDATE", window_update(0, 1));
        first("PRIORITY", frame(PRIORITY, 0, 1, [0; 5]));
        first("GOAWAY", frame(GOAWAY, 0, 0, [0; 8]));
        first("a frame of an unknown type", frame(0xaa, 0, 0, "x"));
        first("an acknowledgement of SETTINGS", frame(SETTINGS, ACK, 0, ""));
        first("SETTINGS of a stream", frame(SETTINGS, 0, 1, ""));
        bare("3.4", "the first SETTINGS must have a possible length") =>
            send(begun(&[frame(SETTINGS, 0, 0, [0; 7])])), error(FRAME_SIZE_ERROR);
        bare("3.4", "the first SETTINGS may have parameters") =>
            send(begun(&[settings(&[(ENABLE_PUSH, 0), (MAX_CONCURRENT_STREAMS, 0)])])), acks(1), usable();
    }
}

fn patience() -> Vec<Case> {
    let late = Duration::from_secs(11);
    cases! {
        bare("3.4", "a client that sends nothing for 10 s loses its connection") => wait(late), broken();
        bare("3.4", "a client that sends half a preface loses its connection") =>
            send(&PREFACE[..12]), wait(late), broken();
        bare("3.4", "a client that sends no SETTINGS for 10 s loses its connection") =>
            send(PREFACE), wait(late), broken();
        bare("3.4", "a client that needs 9 s for its preface keeps its connection") =>
            send(PREFACE), wait(Duration::from_secs(9)), send(settings(&[])), acks(1),
            wait(Duration::from_secs(100)), usable();
    }
}
