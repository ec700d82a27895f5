//! Protocol buffers on the hot path: questions read in place, answers written once.
//!
//! The generated types copy every string of a request and make one for every name in an answer, which is
//! more than a decision costs. These two read and write the same bytes (`tests/service/wire.rs` compares them
//! with the generated types); everything that is not asked by the million uses the generated ones.

mod answer;
mod fields;
mod put;
mod question;
mod rate_limit;

pub(super) use answer::{response, result};
pub(super) use fields::{FieldValue, Malformed, MessageFields};
pub(super) use put::{nested, number, text};
pub(super) use question::{TextsBefore, attributes, read};
pub(super) use rate_limit::rate_limit;
