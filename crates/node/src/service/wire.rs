//! Protocol buffers on the hot path: questions borrowed from the request, answers encoded directly.
//!
//! The generated types copy every string of a request and allocate one for every name in an answer, which costs more
//! than a decision. These read and write the same bytes (`tests/service/wire.rs` compares them with the generated
//! types). Other methods use the generated types.

mod answer;
mod costed;
mod costs;
mod fields;
mod question;
mod reasons;

pub use answer::STORE_FAILURE;
pub(super) use answer::{response, result};
pub use fields::{FieldValue, Malformed, MessageFields};
pub use question::attributes;
pub(super) use question::{TextsBefore, read};
