//! The commands that show usage: what they say of services in this process. The rest is in crates/usage/tests.

mod costs;
mod roster;
mod top;

use crate::support::usage::{get, usage_of};
