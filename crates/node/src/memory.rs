//! Returns freed memory to the system, also from idle threads.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Interval of the allocations that make the allocator return memory.
const EVERY: Duration = Duration::from_secs(1);

/// Blocks allocated per interval. The allocator (mimalloc) tidies the pages of a thread after every 10,000 blocks of
/// this size or larger that the thread takes, so at least every five seconds. It costs 0.1 ms of CPU.
const BLOCKS: usize = 2000;
const BLOCK: usize = 2 << 10;

/// A block that is larger than those that the allocator keeps for later ones of its size. Nothing is written to it.
const LARGE_BLOCK: usize = 1 << 20;

/// To be run on each thread that serves calls or works in the background.
///
/// The allocator does this work only when its thread takes or frees a page: it ends pages whose blocks were all freed, and a
/// second later gives freed pages back. A process that is idle after a burst would keep the memory of the burst.
pub(crate) async fn give_back() -> Infallible {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for _ in 0..BLOCKS {
            drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
        }
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)));
    }
}
