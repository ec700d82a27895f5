//! 8.2: header fields. A deviation: blanks around a value are trimmed and the call is served, because proxies
//! forward such values.

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [names(), values(), connection_specific(), harmless()].into_iter().flatten().collect()
}

fn with_field(section: &'static str, name: String, fields: &[Pair<'_>]) -> Case {
    case(section, name).send([headers(1, 0, &and(fields)), data(1, END_STREAM, message("a"))].concat())
}

fn malformed(section: &'static str, name: &str, fields: &[Pair<'_>]) -> Case {
    with_field(section, format!("{name} is malformed"), fields).reset(1, PROTOCOL_ERROR).usable()
}

fn served(section: &'static str, name: &str, fields: &[Pair<'_>]) -> Case {
    with_field(section, format!("{name} is served"), fields).echo(1, "a")
}

/// A literal field of any bytes.
fn raw(section: &'static str, name: &str, field: &[u8], value: &[u8]) -> Case {
    let mut fields = block(&CALL);
    fields.push(0);
    string(&mut fields, field);
    string(&mut fields, value);
    case(section, name)
        .send([frame(HEADERS, END_HEADERS, 1, fields), data(1, END_STREAM, message("a"))].concat())
}

fn names() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("an upper-case letter in a name", "X-Custom"),
        ("an upper-case letter at the end of a name", "customX"),
        ("a space in a name", "x y"),
        ("a space before a name", " x"),
        ("a space behind a name", "x "),
        ("a tab in a name", "x\ty"),
        ("a line feed in a name", "x\ny"),
        ("a carriage return in a name", "x\ry"),
        ("NUL in a name", "x\0y"),
        ("DEL in a name", "x\x7fy"),
        ("a colon in a name", "x:y"),
        ("a colon behind a name", "x:"),
        ("an empty name", ""),
    ]
    .into_iter()
    .map(|(name, field)| malformed("8.2.1", name, &[(field, "y")]))
    .collect();
    cases.push(
        raw("8.2.1", "a byte above 0x7f in a name is malformed", &[b'x', 0x80], b"y")
            .reset(1, PROTOCOL_ERROR),
    );
    // Names that are malformed stay so when the dynamic table holds them.
    let insert = [block(&CALL), vec![0x40, 1, b'X', 1, b'y']].concat();
    let refer = [block(&CALL), vec![0x80 | 62]].concat();
    cases.push(
        case("8.2.1", "a malformed name of the dynamic table is malformed")
            .send(frame(HEADERS, END_HEADERS | END_STREAM, 1, insert))
            .reset(1, PROTOCOL_ERROR)
            .send(frame(HEADERS, END_HEADERS | END_STREAM, 3, refer))
            .reset(3, PROTOCOL_ERROR)
            .usable(),
    );
    cases
}

fn values() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("NUL in a value", "a\0b"),
        ("NUL at the end of a value", "a\0"),
        ("a line feed in a value", "a\nb"),
        ("a carriage return in a value", "a\rb"),
        ("a line end at the end of a value", "a\r\n"),
    ]
    .into_iter()
    .map(|(name, value)| malformed("8.2.1", name, &[("x", value)]))
    .collect();
    cases.extend(cases! {
        served("8.2.1", "an empty value", &[("x", "")]);
        served("8.2.1", "a value with spaces and tabs inside", &[("x", "a b\tc")]);
        served("8.2.1", "a value with every visible character",
            &[("x", "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~")]);
        raw("8.2.1", "a value with bytes above 0x7f is served", b"x", &[0x80, 0xff, 0xc3, 0xa4]) =>
            echo(1, "a");
        served("8.2.1", "a name with every character of a token", &[("!#$%&'*+-.^_`|~09az", "y")]);
    });
    cases
}

/// 8.2.2.
fn connection_specific() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("connection", "close"),
        ("connection", "x-custom"),
        ("proxy-connection", "keep-alive"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ]
    .into_iter()
    .map(|field| malformed("8.2.2", &format!("{}: {}", field.0, field.1), &[field]))
    .collect();
    let te = |value: &'static str| {
        case("8.2.2", format!("te: {value} is malformed"))
            .send(headers(1, END_STREAM, &with("te", value)))
            .reset(1, PROTOCOL_ERROR)
            .usable()
    };
    cases.extend([te("gzip"), te("trailers, deflate"), te("")]);
    // The table of RFC 7541 has it at index 57.
    let indexed = [block(&CALL), vec![0x0f, 57 - 15, 7], b"chunked".to_vec()].concat();
    cases.push(
        case("8.2.2", "transfer-encoding of the static table is malformed")
            .send(frame(HEADERS, END_HEADERS | END_STREAM, 1, indexed))
            .reset(1, PROTOCOL_ERROR)
            .usable(),
    );
    cases
}

fn harmless() -> Vec<Case> {
    vec![
        served("8.2.3", "cookie in several fields", &[("cookie", "a=1"), ("cookie", "b=2")]),
        served("8.2", "one field many times", &[("x", "1"); 100]),
        served("8.2", "host beside no :authority", &[("host", "example.com")]),
        served("8.2", "expect", &[("expect", "100-continue")]),
        served("8.2.2", "te: trailers twice", &[("te", "trailers")]),
        served(
            "8.2",
            "metadata of gRPC in base64",
            &[("trace-bin", "AAEC"), ("user-agent", "grpc-test/1.0")],
        ),
    ]
}
