//! Memory that was freed goes back to the system.

use std::hint::black_box;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Between two looks of the allocator for memory to give back.
const EVERY: Duration = Duration::from_secs(1);

/// A block that is larger than those that the allocator keeps for later ones of its size. Nothing is written to it.
const BLOCK: usize = 1 << 20;

/// The allocator (mimalloc) gives freed pages back a second later, but looks for them only when it takes or frees a page.
/// A process that is idle after a burst would keep the memory of the burst. So a page is taken and freed each second.
pub(super) async fn give_back() {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
    }
}
