//! Limits with costs on a Redis, beside the pure driver, which is asked the same at the same time.

use std::sync::Arc;

use weir_core::algorithm::Algorithm;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetVerdict, CostedLimits, HoldBounds, LimitCost, NotDecided, SettledCosts,
};
use weir_core::key::{Subject, write_name};
use weir_core::strategy::{Field, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{BudgetDecision, BudgetOp, Store as _, StoreError};
use weir_units::Micros;

use super::rows::engines::decide_pure;
use super::rows::world::World;

/// The longest hold.
pub const MAX: Micros = Micros::from_secs(160);
/// Time for which ids are known.
pub const KNOWN_FOR: Micros = Micros::from_secs(600);

/// One consumer of one strategy.
pub struct Paired<'s> {
    pub store: &'s RedisStore,
    pub strategy: Arc<Strategy>,
    pub costed: Arc<CostedLimits>,
    pub consumer: String,
    pure: World,
    now: Micros,
}

impl<'s> Paired<'s> {
    /// The first limit has the fixed cost 1, and the others take the cost `n`.
    pub fn new(store: &'s RedisStore, consumer: &str, algorithms: &[Algorithm]) -> Self {
        let strategy = weir_testing::rules::numbered("paired", &[Field::Consumer], algorithms);
        let costs = algorithms.iter().enumerate().map(|(index, algorithm)| BudgetLimit {
            algorithm: *algorithm,
            cost: if index == 0 { LimitCost::Fixed(1) } else { LimitCost::Named(0) },
            at_once: false,
            near_percent: None,
        });
        let hold = Some(HoldBounds { max: MAX, known_for: KNOWN_FOR });
        let costed = Arc::new(CostedLimits { limits: costs.collect(), names: vec!["n".into()], hold });
        let (consumer, pure) = (consumer.to_owned(), World::default());
        Self { store, strategy, costed, consumer, pure, now: Micros::ZERO }
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject { consumer: &self.consumer, ..Subject::default() }
    }

    /// Asks both, which must agree, unless the store could not decide.
    pub async fn tell(&mut self, op: BudgetOp<'_>, id: &str) -> Result<BudgetVerdict, StoreError> {
        let (store, strategy, costed) = (self.store, Arc::clone(&self.strategy), Arc::clone(&self.costed));
        let consumer = self.consumer.clone();
        let subject = Subject { consumer: &consumer, ..Subject::default() };
        let (strategy, costed) = (&strategy, &costed);
        let decision = BudgetDecision { strategy, costed, subject, op, id, deadline: None, caller: 0 };
        let said = store.decide_costs(&decision).verdicts().await.map(|verdicts| *verdicts.budget.unwrap());
        match &said {
            Ok(verdict) => self.now = verdict.now,
            Err(StoreError::OtherContents | StoreError::TooManyEnds) => {}
            Err(_) => return said,
        }
        let name = |limit| {
            let mut name = Vec::new();
            write_name(&mut name, strategy, limit, &subject);
            String::from_utf8(name).unwrap()
        };
        let names = strategy.limits().iter().map(name).collect();
        let expected = decide_pure(costed, self.pure.cells_of(names, id.to_owned()), (op, id), self.now);
        let expected = expected.map_err(|error| match error {
            NotDecided::OtherContents => StoreError::OtherContents,
            NotDecided::TooManyEnds => StoreError::TooManyEnds,
            NotDecided::Full(never) => match never {},
        });
        assert_eq!(said, expected, "{consumer}: {op:?} as `{id}`; Redis is left");
        said
    }

    /// A charge, or a hold.
    pub async fn ask(
        &mut self,
        units: u64,
        id: &str,
        hold_for: Option<Micros>,
    ) -> Result<BudgetVerdict, StoreError> {
        let costs = [AskedCost { cost: units, at_least: None }].into_iter().collect();
        let asked = Ask { costs, cost: 1, peek: false, has_id: !id.is_empty(), hold_for };
        self.tell(BudgetOp::Ask(&asked), id).await
    }

    pub async fn settle(&mut self, units: u64, id: &str) -> Result<BudgetVerdict, StoreError> {
        self.tell(BudgetOp::Settle(&used(units)), id).await
    }

    pub async fn debit(&mut self, units: u64, id: &str) -> Result<BudgetVerdict, StoreError> {
        self.tell(BudgetOp::Debit(&used(units)), id).await
    }
}

fn used(units: u64) -> SettledCosts {
    SettledCosts { costs: [Some(units)].into_iter().collect(), cost: None }
}
