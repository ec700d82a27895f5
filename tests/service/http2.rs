//! What the server as a whole does with HTTP/2, seen from outside, byte by byte. `crates/grpc/tests` runs the sections of RFC 9113
//! and RFC 7541. What is read here is read strictly: see [`session`] and [`blocks`].

mod blocks;
mod buffering;
mod calls;
mod costs;
mod credit;
mod ends;
mod floods;
mod ground;
mod held;
mod long_memory;
mod open_calls;
mod reactions;
mod requests;
mod session;
mod tables;

/// RFC 9113's codes.
const NO_ERROR: u32 = 0x0;
const PROTOCOL_ERROR: u32 = 0x1;

/// And its settings.
const HEADER_TABLE_SIZE: u16 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;
