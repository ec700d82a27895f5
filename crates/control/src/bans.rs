//! Bans: denied callers, counted denials, and the bans of the store.

mod banned;
mod guard;
mod keeper;
mod pages;

pub use self::banned::{BannedCaller, BannedUntil};
pub use self::guard::BanGuard;
pub(crate) use self::keeper::{APPLY_EVERY, BanKeeper, BanTotals};
pub use self::pages::BanPages;
