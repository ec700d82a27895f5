//! The server as a whole on HTTP/2, seen from outside, byte by byte. `crates/grpc/tests` runs the sections of RFC
//! 9113 and RFC 7541. What is read here is read strictly: see [`session`].

mod buffering;
mod costs;
mod ends;
mod floods;
pub(crate) mod ground;
mod held;
mod long_memory;
mod open_calls;
mod reactions;
mod requests;
mod session;

/// RFC 9113's code.
const NO_ERROR: u32 = 0x0;

/// And its settings.
const HEADER_TABLE_SIZE: u16 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;
