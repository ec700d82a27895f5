//! Questions about the same keys keep their order, whatever else they differ in.

use std::sync::Arc;
use weir_testing::DecideOne as _;

use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::Subject;
use weir_core::strategy::{Field, Strategy};
use weir_store::{Decision, Verdicts};
use weir_units::Micros;

use super::{Answer, World, patient, settle};

/// Windows that count by consumer, whatever is used.
fn world() -> World {
    World::over(patient(), &[&[Field::Consumer]])
}

impl World {
    async fn put(
        &self,
        strategy: &Arc<Strategy>,
        resource: &'static str,
        group: Option<&'static str>,
        cost: u64,
    ) -> tokio::task::JoinHandle<Answer> {
        let (coalesce, strategy) = (Arc::clone(&self.coalesce), Arc::clone(strategy));
        let caller = tokio::spawn(async move {
            let subject = Subject { resource, consumer: "bob", group, ..Subject::default() };
            let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            coalesce.decide_one(&decision, Op::Charge, &[cost], &mut out).await?;
            let (verdict, limits) = out.get(0).unwrap();
            Ok((verdict.allowed, limits[0].remaining))
        });
        settle().await;
        caller
    }
}

/// A routing group is nothing to keys that do not name the resource.
#[tokio::test]
async fn resources_of_different_groups() {
    let world = world();
    let strategy = Arc::clone(&world.strategy);
    let first = world.put(&strategy, "one", None, 3).await;
    let second = world.put(&strategy, "one", None, 6).await;
    let third = world.put(&strategy, "other", Some("group"), 5).await;
    world.let_through(2).await;
    assert_eq!(first.await.unwrap(), Ok((true, 7)));
    assert_eq!(second.await.unwrap(), Ok((true, 1)));
    assert_eq!(third.await.unwrap(), Ok((false, 1)), "it came last");
}

/// On some resources another limit is in force for the same counter.
#[tokio::test]
async fn a_strategy_and_its_override() {
    let world = world();
    let own = Arc::clone(&world.strategy);
    let mut raised = Strategy::clone(&own);
    let window = Algorithm::fixed_window(12, Micros::from_secs(60), false, false).unwrap();
    raised.override_limit("l0", window).unwrap();
    let raised = Arc::new(raised);
    let first = world.put(&own, "one", None, 3).await;
    let second = world.put(&own, "one", None, 6).await;
    let third = world.put(&raised, "raised", None, 2).await;
    let fourth = world.put(&raised, "raised", None, 2).await;
    let fifth = world.put(&own, "one", None, 1).await;
    world.let_through(4).await;
    let costs: Vec<_> = world.calls().into_iter().map(|(_, costs)| costs).collect();
    assert_eq!(costs, [vec![3], vec![6], vec![2, 2], vec![1]]);
    assert_eq!(first.await.unwrap(), Ok((true, 7)));
    assert_eq!(second.await.unwrap(), Ok((true, 1)));
    assert_eq!(third.await.unwrap(), Ok((true, 1)), "eleven of twelve");
    assert_eq!(fourth.await.unwrap(), Ok((false, 1)));
    assert_eq!(fifth.await.unwrap(), Ok((false, 0)));
}
