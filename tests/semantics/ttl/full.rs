//! A server without memory for another byte: what must be written is refused, for each decision alone and all
//! of its limits, and what need not be is answered.

use weir_core::algorithm::Op;
use weir_store::{StoreError, Verdicts};

use super::together::{everyone, plain};
use super::{LONG, World, each_engine, strategy};

impl World {
    fn full(&self, full: bool) {
        self.redis.cli(&["CONFIG", "SET", "maxmemory", if full { "1" } else { "0" }]);
    }
}

fn is_refused<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Refused(why)) if why.starts_with("OOM"))
}

fn remain(answer: &Result<Verdicts, StoreError>) -> Vec<u64> {
    answer.as_ref().unwrap().limits.iter().map(|limit| limit.remaining).collect()
}

#[tokio::test]
async fn charges_are_refused_whole_and_looks_are_answered() {
    let world = World::start().await;
    let several: Vec<_> = each_engine(LONG).iter().map(|one| one.algorithms()[0]).collect();
    let several = strategy("several", &several[..8]);
    for strategy in plain().into_iter().chain([several]) {
        let name = strategy.name();
        for left in [3, 2] {
            let before: Vec<_> = everyone(&world, &strategy, Op::Peek).await.iter().map(remain).collect();
            world.full(true);
            let refused = everyone(&world, &strategy, Op::Charge).await;
            assert!(refused.iter().all(is_refused), "{name}: {refused:?}");
            let after: Vec<_> = everyone(&world, &strategy, Op::Peek).await.iter().map(remain).collect();
            assert_eq!(after, before, "{name}");
            world.full(false);
            let charged = everyone(&world, &strategy, Op::Charge).await;
            assert!(
                charged.iter().all(|one| remain(one).iter().all(|&one| one == left)),
                "{name}: {charged:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_refund_is_made_or_refused() {
    let world = World::start().await;
    for strategy in each_engine(LONG).into_iter().filter(|one| !one.algorithms()[0].counts_denied()) {
        let name = strategy.name();
        assert_eq!(world.ask(&strategy, Op::Charge, 3).await.1.remaining, 1);
        world.full(true);
        let refund = world.decide(&strategy, Op::Refund, &[1]).await;
        let left = if refund.is_ok() { 2 } else { 1 };
        assert!(refund.is_ok() || is_refused(&refund), "{name}: {refund:?}");
        assert_eq!(world.ask(&strategy, Op::Peek, 1).await.1.remaining, left, "{name}: {refund:?}");
        world.full(false);
    }
}
