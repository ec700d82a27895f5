//! Depths of queues, asked of the store: other nodes put items in and take them out, too.

use std::time::Duration;

use weir_core::queue::{QueueOp, QueuePart, QueueReply};
use weir_store::{QueueAsk, QueueHandle, QueueStore as _};

use super::CurrentQueues;

/// How often the store is asked.
const EVERY: Duration = Duration::from_secs(5);

/// Asks `store` for the depth of each queue and of its dead letters, at the start and then every five seconds. What the
/// store does not answer keeps its last depth.
pub(crate) async fn watch(store: QueueHandle, current: CurrentQueues) {
    loop {
        let queues = current.load_full();
        for (index, rule) in queues.rules.all().iter().enumerate() {
            let op = QueueOp::Stats { outcomes: 0 };
            let ask = QueueAsk { rule, part: QueuePart::Main, op, deadline: None };
            let Ok(answer) = store.queue(&ask).await else { continue };
            let QueueReply::Stats(stats) = answer.reply else { continue };
            for (number, depth) in (2 * index..).zip([answer.depth, stats.dead_depth]) {
                if let Some(counters) = queues.counters.get(number) {
                    counters.saw_depth(depth);
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
