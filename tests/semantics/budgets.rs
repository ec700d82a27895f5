//! Costs by name, holds and settlements, through the real server, on every store.

mod differential;
mod keys;
mod listed;
mod many;
pub mod paired;
mod properties;
mod refused;
mod reserved;
pub mod rows;
mod served;
mod together;
