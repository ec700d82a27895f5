//! Odd calls that proxies forward, and DATA on the server's own streams.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = blanks();
    cases.extend(paths());
    cases.push(idle());
    cases
}

/// The server opens no streams, so that all of its identifiers stay idle (5.1).
fn idle() -> Case {
    case("5.1", "DATA on an idle stream of the server's below the last one is a connection error")
        .send(unary(5, "a"))
        .echo(5, "a")
        .send(data(2, 0, "x"))
        .error_after(5, PROTOCOL_ERROR)
}

/// Blanks around a value are trimmed and the call is served, because proxies forward such values (8.2.1 has it
/// malformed).
fn blanks() -> Vec<Case> {
    let one = |value: &str| {
        case("8.2.1", format!("a value with blanks around it, `{}`, is served", value.escape_debug()))
            .send([headers(1, 0, &and(&[("x", value)])), data(1, END_STREAM, message("a"))])
            .echo(1, "a")
    };
    [" v", "v ", "\tv", "v\t", " ", "  v  "].into_iter().map(one).collect()
}

/// A path that no URI has names no method, and its call is answered.
fn paths() -> Vec<Case> {
    let one = |path: &'static str| {
        case("8.3.1", format!("the path `{path}` is answered"))
            .send([headers(1, 0, &call_of(path)), data(1, END_STREAM, message("a"))])
            .status(1, UNIMPLEMENTED)
            .nothing()
            .usable()
    };
    ["/a<b", "/<", "/a>b"].into_iter().map(one).collect()
}
