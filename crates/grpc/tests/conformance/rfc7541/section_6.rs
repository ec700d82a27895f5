//! 6: how fields are represented.

use super::*;
use crate::case::*;

pub(crate) fn cases() -> Vec<Case> {
    let path = b"/echo.Echo/Unary";
    // The path in one of the representations of a literal; whether the next block finds it in the table.
    let literal = |section, name: &str, start: Vec<u8>, is_kept: bool| {
        let mut field = start;
        string(&mut field, path);
        let send = |stream: u32, field: &[u8]| {
            let fields = [&block(&CALL[..2]), field, &block(&CALL[3..])].concat();
            [frame(HEADERS, END_HEADERS, stream, fields), data(stream, END_STREAM, message("a"))].concat()
        };
        let case = case(section, name).send(send(1, &field)).echo(1, "a").send(send(3, &indexed(62)));
        if is_kept { case.echo(3, "a") } else { case.error(COMPRESSION_ERROR) }
    };
    let new_name = |pattern: u8| [&[pattern, 5][..], b":path"].concat();
    let wrong = |section, name: &str, more: &[u8]| {
        case(section, name).send(call_with(1, more)).error(COMPRESSION_ERROR)
    };
    cases! {
        literal("6.2.1", "a literal with incremental indexing and an indexed name is kept",
            integer(0x40, 6, 4), true);
        literal("6.2.1", "a literal with incremental indexing and a new name is kept", new_name(0x40),
            true);
        literal("6.2.2", "a literal without indexing and an indexed name is not kept", integer(0x00, 4, 4),
            false);
        literal("6.2.2", "a literal without indexing and a new name is not kept", new_name(0x00), false);
        literal("6.2.3", "a literal that is never indexed and has an indexed name is not kept",
            integer(0x10, 4, 4), false);
        literal("6.2.3", "a literal that is never indexed and has a new name is not kept", new_name(0x10),
            false);
        case("6.1", "an indexed field of the static table is not inserted") =>
            send(call_behind(1, &indexed(1))), echo(1, "a"), send(call_with(3, &indexed(62))),
            error(COMPRESSION_ERROR);
        case("6.2.1", "a name of the dynamic table can be used with another value") =>
            send(call_with(1, &insert("grpc-encoding", "identity"))), echo(1, "a"),
            send(call_with(3, &[&integer(0x40, 6, 62)[..], &[3], b"zip"].concat())),
            status_says(3, UNIMPLEMENTED, "zip");
        case("6.2.2", "a name of the dynamic table can be used without indexing") =>
            send(call_with(1, &insert("grpc-encoding", "identity"))), echo(1, "a"),
            send(call_with(3, &[&integer(0x00, 4, 62)[..], &[3], b"zip"].concat())),
            status_says(3, UNIMPLEMENTED, "zip"), send(call_with(5, &indexed(62))), echo(5, "a");
        case("6.2.3", "a name of the dynamic table can be used and never be indexed") =>
            send(call_with(1, &insert("grpc-encoding", "identity"))), echo(1, "a"),
            send(call_with(3, &[&integer(0x10, 4, 62)[..], &[3], b"zip"].concat())),
            status_says(3, UNIMPLEMENTED, "zip");
        case("6.2.2", "the names of the static table have two-byte indices too") =>
            send(call_with(1, &[&integer(0x00, 4, 58)[..], &[1, b'v']].concat())), echo(1, "a");
        wrong("6.1", "an indexed field with index 0 is an error", &[0x80]);
        wrong("6.2.1", "a literal without its strings is an error", &[0x40]);
        wrong("6.2.2", "a literal without its value is an error", &[0x00, 1, b'x']);
        wrong("6.2.3", "a literal that is never indexed without its value is an error", &[0x10, 1, b'x']);
        case("6.3", "an update to the size that holds changes nothing") =>
            send(call_with(1, &insert("x", "y"))), send(call_behind(3, &resize(4_096))),
            send(call_with(5, &indexed(62))), echo(1, "a"), echo(3, "a"), echo(5, "a");
        case("6.3", "an update without its second byte is an error") =>
            send(frame(HEADERS, END_HEADERS | END_STREAM, 1, [0x3f])), error(COMPRESSION_ERROR);
        case("6.3", "many updates may begin a block") =>
            send(call_behind(1, &resize(7).repeat(1_000))), echo(1, "a");
    }
}
