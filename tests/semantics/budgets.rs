//! Costs by name, holds and settlements, through the real server, on every store.

mod properties;
mod refused;
mod rows;
