//! JSON ⇄ Protobuf, from bytes to bytes, by the descriptors of the messages.
//!
//! ```text
//!   JSON ── read ── the fields of the message, as they come ── wire format
//!   wire format ── write ── JSON, in the order of the proto
//! ```
//!
//! No message is built in between. One reader serves callers that are newer than the server, whose unknown fields are
//! ignored, and people, whose unknown fields are mistakes; code that is generated for each message would be there twice.

mod duration;
mod read;
mod shape;
mod text;
mod timestamp;
mod wire;
mod write;

pub use self::read::{JsonMistake, UnknownFields};
pub use self::shape::{MethodShape, ProtoShapes, ShapeError};
pub use self::write::WireMistake;
