//! 8.3 to 8.7: pseudo-header fields, CONNECT, and what may be retried. A choice: this server is no proxy, so that
//! CONNECT is malformed or not allowed.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [pseudo_fields(), methods_and_schemes(), paths(), connect(), upgrade_and_retry()]
        .into_iter()
        .flatten()
        .collect()
}

fn sent(section: &'static str, name: impl Into<String>, fields: &[Pair<'_>]) -> Case {
    case(section, name).send([headers(1, 0, fields), data(1, END_STREAM, message("a"))].concat())
}

fn malformed(section: &'static str, name: &str, fields: &[Pair<'_>]) -> Case {
    sent(section, format!("{name} is malformed"), fields).reset(1, PROTOCOL_ERROR).usable()
}

fn pseudo_fields() -> Vec<Case> {
    let mut cases = Vec::new();
    for field in [":method", ":scheme", ":path"] {
        cases.push(malformed("8.3.1", &format!("a request without {field}"), &without(field)));
        let twice = [(field, CALL.iter().find(|it| it.0 == field).map_or("", |it| it.1))];
        let doubled: Vec<Pair<'_>> = twice.into_iter().chain(CALL).collect();
        cases.push(malformed("8.3", &format!("a request with {field} twice"), &doubled));
        let mut behind = without(field);
        behind.extend(twice);
        cases.push(malformed("8.3", &format!("a request with {field} behind other fields"), &behind));
    }
    let before = |field: Pair<'static>| [field].into_iter().chain(CALL).collect::<Vec<_>>();
    let two = |value| before((":authority", value));
    cases.extend(cases! {
        malformed("8.3", "a request with an unknown pseudo-header field", &before((":unknown", "x")));
        malformed("8.3", "a request with a pseudo-header field of responses", &before((":status", "200")));
        malformed("8.3", "a request with an empty pseudo-header field", &before((":", "x")));
        malformed("8.3", "a request with an upper-case pseudo-header field", &before((":Method", "POST")));
        malformed("8.3", "a request with :authority twice",
            &[&[(":authority", "a")][..], &two("a")].concat());
        malformed("8.3", "a request with :authority behind other fields", &and(&[(":authority", "a")]));
        malformed("8.3.1", "a request without fields", &[]);
        malformed("8.3.1", "a request with only regular fields", &CALL[3..]);
        sent("8.3.1", "a request with :authority is served", &two("localhost:8080")) => echo(1, "a");
        sent("8.3.1", "a request without :authority is served", &CALL) => echo(1, "a");
        sent("8.3.1", "a request whose :authority and host differ is served",
            &[&two("a")[..], &[("host", "b")]].concat()) => echo(1, "a");
        sent("8.3", "pseudo-header fields may come in any order",
            &[CALL[2], CALL[0], CALL[1], CALL[3], CALL[4]]) => echo(1, "a");
    });
    cases
}

fn methods_and_schemes() -> Vec<Case> {
    let method = |value: &'static str| {
        case("8.3.1", format!(":method {value} is not allowed"))
            .send(headers(1, END_STREAM, &with(":method", value)))
            .http_with(1, "405", "allow", "POST")
            .usable()
    };
    cases! {
        method("GET");
        method("PUT");
        method("DELETE");
        method("OPTIONS");
        method("PRI");
        method("post");
        malformed("8.3.1", "an empty :method", &with(":method", ""));
        malformed("8.3.1", "a :method with a space", &with(":method", "PO ST"));
        sent("8.3.1", ":scheme https is served", &with(":scheme", "https")) => echo(1, "a");
    }
}

fn paths() -> Vec<Case> {
    let unknown =
        |name: &str, path: &'static str| sent("8.3.1", name, &call_of(path)).status(1, UNIMPLEMENTED);
    vec![
        unknown("an unknown path is answered", "/no.Such/Method"),
        unknown("the shortest path is answered", "/"),
        unknown("a path with a query is another path", "/echo.Echo/Unary?a=b"),
        unknown("a path with a slash at the end is another path", "/echo.Echo/Unary/"),
        unknown("a path in upper case is another path", "/ECHO.ECHO/UNARY"),
        unknown("a path with percent-encoding is another path", "/echo.Echo/%55nary"),
        malformed("8.3.1", "a :path that does not begin with a slash", &with(":path", "echo.Echo/Unary")),
        malformed("8.3.1", "a :path with a scheme", &with(":path", "http://a/echo.Echo/Unary")),
        malformed("8.3.1", "an empty :path", &with(":path", "")),
        malformed("8.3.1", "a :path with a space", &with(":path", "/a b")),
        malformed("8.3.1", "a :path with NUL", &with(":path", "/a\0b")),
    ]
}

fn connect() -> Vec<Case> {
    let authority = (":authority", "example.com:443");
    cases! {
        malformed("8.5", "CONNECT to an authority", &[(":method", "CONNECT"), authority]);
        malformed("8.5", "extended CONNECT, which was not offered,",
            &[(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/"), authority]);
        case("8.5", "CONNECT with :scheme and :path opens no tunnel") =>
            send(headers(1, END_STREAM, &with(":method", "CONNECT"))), http(1, "405"), usable();
    }
}

fn upgrade_and_retry() -> Vec<Case> {
    cases! {
        malformed("8.6", "an upgrade", &and(&[("upgrade", "websocket")]));
        case("8.7", "a stream that was refused can be sent again") => limits(|limits| limits.max_streams = 1),
            send([headers(1, 0, &CALL), unary(3, "again")]), reset(3, REFUSED_STREAM),
            send(data(1, END_STREAM, message("a"))), echo(1, "a"), send(unary(5, "again")), echo(5, "again");
        case("8.7", "PING shows that a connection works") =>
            send(frame(PING, 0, 0, *b"00000000")), pong(b"00000000");
    }
}
