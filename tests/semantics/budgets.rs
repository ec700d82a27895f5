//! Costs by name, holds and settlements.

mod properties;
mod rows;
