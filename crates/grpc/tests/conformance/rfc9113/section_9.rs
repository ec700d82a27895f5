//! 9: connections are kept and reused.

use std::time::Duration;

use crate::case::*;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    let many = |count: u32| (0..count).map(|index| 1 + 2 * index);
    vec![
        many(300).fold(case("9.1", "calls may follow one another on one connection"), |case, stream| {
            let text = stream.to_string();
            case.send(unary(stream, &text)).echo(stream, &text)
        }),
        many(300).fold(
            case("9.1", "calls may come all at once")
                .send(many(300).flat_map(|stream| unary(stream, &stream.to_string())).collect::<Vec<u8>>()),
            |case, stream| case.echo(stream, &stream.to_string()),
        ),
        case("9.1", "an idle connection is kept").wait(Duration::from_secs(3_600)).usable(),
        case("9.1", "a connection with an idle stream is kept")
            .send(headers(1, 0, &CALL))
            .wait(Duration::from_secs(5))
            .send(data(1, END_STREAM, message("a")))
            .echo(1, "a"),
        case("9.1", "a client that closes ends the connection").finish().closed(),
        case("9.1", "a client that closes within a frame ends the connection")
            .send(&unary(1, "hello")[..20])
            .nothing()
            .finish()
            .closed(),
    ]
}
