//! Depths of queues and the ages of their oldest items, asked of the store: other nodes put items in and take them out, too.

use std::time::Duration;

use crate::model::{QueueOp, QueuePart, QueueReply};

use super::CurrentQueues;
use crate::store::{QueueAsk, QueueHandle, QueueStore as _};

/// Interval between two questions to the store.
const EVERY: Duration = Duration::from_secs(5);

/// Asks `store` for both, of each queue and of its dead letters, at the start and then every five seconds. What the
/// store does not answer keeps its last depth.
pub(crate) async fn watch(store: QueueHandle, current: CurrentQueues) {
    loop {
        let queues = current.load_full();
        for (index, rule) in queues.rules.all().iter().enumerate() {
            let dead = rule.numbers().max_deliveries.map(|_| QueuePart::Dead);
            for (number, part) in (2 * index..).zip(std::iter::once(QueuePart::Main).chain(dead)) {
                let op = QueueOp::Stats { outcomes: 0 };
                let Ok(answer) = store.queue(&QueueAsk { rule, part, op, deadline: None }).await else {
                    continue;
                };
                if let (QueueReply::Stats(stats), Some(counters)) =
                    (answer.reply, queues.counters.get(number))
                {
                    counters.saw_depth(answer.depth);
                    counters.saw_oldest(stats.oldest_age.unwrap_or_default());
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
