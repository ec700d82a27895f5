//! HTTP/2 as RFC 9113 and RFC 7541 have it, held against the server from outside, byte by byte.
//!
//! Where the RFCs leave a choice, each reaction that they allow is accepted, and what checks it says so in
//! its name. What is read is read strictly: see [`session`] and [`blocks`].

mod blocks;
mod buffering;
mod calls;
mod costs;
mod credit;
mod ends;
mod faults;
mod floods;
mod ground;
mod held;
mod hpack;
mod long_memory;
mod malformed;
mod mutations;
mod odd;
mod open_calls;
mod reactions;
mod requests;
mod session;
mod strict;
mod tables;
mod tolerated;
mod windows;

/// RFC 9113's codes.
const NO_ERROR: u32 = 0x0;
const PROTOCOL_ERROR: u32 = 0x1;
const FLOW_CONTROL_ERROR: u32 = 0x3;
const STREAM_CLOSED: u32 = 0x5;
const FRAME_SIZE_ERROR: u32 = 0x6;
const COMPRESSION_ERROR: u32 = 0x9;

/// The codes of faults that have a code of their own.
const SIZE: &[u32] = &[FRAME_SIZE_ERROR];
const COMPRESSION: &[u32] = &[COMPRESSION_ERROR];
const CLOSED: &[u32] = &[STREAM_CLOSED];
const FLOW: &[u32] = &[FLOW_CONTROL_ERROR];

/// And its settings.
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
