//! The same, of decisions that share their calls: a random heap of them is put to Redis at once, about few
//! keys, under strategies that share counters and their overrides, and each is answered as if they had come
//! one after the other.

use std::collections::HashSet;
use weir_testing::DecideOne as _;
use weir_testing::rules::numbered_limits;

use futures_util::future::join_all;
use weir_store::Part;
use weir_store::coalesce::Coalesce;
use weir_store::{LimitSet, Store, StoreError};

use super::*;

const CONSUMERS: [&str; 3] = ["bob", "eve", "mallory"];
const RESOURCES: [&str; 2] = ["one", "other"];

/// The scopes of the limits of a strategy: those of a pair have a field in common.
const SCOPES: [[&[Field]; 2]; 2] =
    [[&[Field::Resource, Field::Consumer], &[Field::Resource]], [&[Field::Consumer], &[Field::Consumer]]];

/// A limit, what an override has instead, and its scope.
type Scoped = (Algorithm, Algorithm, usize);

/// A pair of scopes, and limits under them.
type Rule = (usize, Vec<Scoped>);

/// Strategies, and heaps of questions with the time that goes by before each.
type Heaps = (Vec<Rule>, Vec<(u64, Vec<Asked>)>);

#[derive(Debug, Clone)]
struct Asked {
    strategy: usize,
    raised: bool,
    resource: usize,
    consumer: usize,
    op: Op,
    costs: Vec<Cost>,
    /// Of a refund or a reset: the limits that are left out, and the id.
    left_out: usize,
    id: usize,
}

/// A store on a runtime and a clock of its own.
struct Asks<S> {
    runtime: tokio::runtime::Runtime,
    clock: ManualClock,
    store: S,
}

#[test]
fn redis() {
    let redis = support::shared_redis();
    tell(4, Asks::new(vec![redis.url()], Topology::Single), random::op().boxed(), 5);
}

#[test]
fn cluster() {
    let cluster = support::shared_cluster();
    tell(32, Asks::new(cluster.urls(), Topology::Cluster), random::op().boxed(), 5);
}

/// Questions as they come in batches, of which those about the same keys wait for one another.
#[test]
fn in_rows() {
    let Asks { runtime, clock, store } = Asks::new(vec![support::shared_redis().url()], Topology::Single);
    let config = support::redis_config(vec![], Topology::Single);
    let store = Coalesce::before(store, &config);
    tell(8, Asks { runtime, clock, store }, Just(Op::Charge).boxed(), 1);
}

/// Tells one `share`th of the usual number of heaps, of these operations beside charges and looks.
fn tell<S: Store>(share: u32, mut asks: Asks<S>, op: BoxedStrategy<Op>, most_costs: usize) {
    random::tell(file!(), share, &heaps(op, most_costs), |heaps| asks.tell_heaps(&heaps));
}

/// A strategy and its override, of a name that was not there before.
fn rules((pair, limits): &Rule) -> [Rules; 2] {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let name = format!("heap-{}", NAMES.fetch_add(1, Ordering::Relaxed));
    let scoped = |(algorithm, _, scope): &Scoped| (SCOPES[*pair][*scope], *algorithm);
    let own = numbered_limits(limits.iter().map(scoped));
    let own = weir_core::strategy::Strategy::new(&name, own, false, FailurePolicy::Error).unwrap();
    let mut raised = own.clone();
    for (index, (_, other, _)) in limits.iter().enumerate() {
        // Only what counts by consumer can be overridden.
        let _ = raised.override_limit(&format!("limit-{index}"), *other);
    }
    [Arc::new(own), Arc::new(raised)]
}

/// The limits of `part` alone.
fn only(rules: &Rules, part: LimitSet) -> Rules {
    let limits = rules.limits().iter().enumerate().filter(|(index, _)| part.has(*index));
    let limits = limits.map(|(_, limit)| limit.clone()).collect();
    Arc::new(weir_core::strategy::Strategy::new(rules.name(), limits, false, FailurePolicy::Error).unwrap())
}

/// A question with everything that it needs.
struct Question<'a> {
    rules: &'a Rules,
    subject: Subject<'a>,
    op: Op,
    costs: Vec<u64>,
    part: Part<'a>,
}

impl Asked {
    fn question<'a>(&self, rules: &'a [[Rules; 2]], pure: &Named) -> Question<'a> {
        let rules = &rules[self.strategy % rules.len()][usize::from(self.raised)];
        let (resource, consumer) = (RESOURCES[self.resource], CONSUMERS[self.consumer]);
        let group = (self.resource > 0).then_some("group");
        let subject = Subject { resource, consumer, group, ..Subject::default() };
        let count = rules.limits().len();
        let undoes = matches!(self.op, Op::Refund | Op::Reset) && count > 1;
        let kept = |index: &usize| !undoes || *index != self.left_out;
        let some = (0..count).filter(kept).fold(LimitSet::NONE, LimitSet::with);
        let limits = if undoes { some } else { LimitSet::ALL };
        let op = random::supported(self.op, only(rules, limits).algorithms());
        let (limits, id) = match op {
            Op::Refund => (limits, ["", "first", "second"][self.id]),
            Op::Reset => (limits, ""),
            _ => (LimitSet::ALL, ""),
        };
        let mut machine = pure.machine.clone();
        machine.limits = rules.algorithms().to_vec();
        let costs = self.costs.iter().map(|&cost| machine.cost(cost)).collect();
        Question { rules, subject, op, costs, part: Part { limits, id } }
    }
}

impl Asks<RedisStore> {
    fn new(nodes: Vec<String>, topology: Topology) -> Self {
        let World { runtime, clock, store } = World::new(nodes, topology);
        Self { runtime, clock, store }
    }
}

impl<S: Store> Asks<S> {
    fn tell_heaps(&mut self, (strategies, heaps): &Heaps) -> Result<usize, TestCaseError> {
        let rules: Vec<_> = strategies.iter().map(rules).collect();
        let mut pure = Named::new(&rules[0][0]);
        let mut refunded = HashSet::new();
        let mut decisions = 0;
        for (pause, heap) in heaps {
            pure.machine.now.0 += pause;
            self.clock.set(pure.machine.now);
            let questions: Vec<_> = heap.iter().map(|asked| asked.question(&rules, &pure)).collect();
            let answers = self.runtime.block_on(join_all(questions.iter().map(|one| self.store_says(one))));
            for (number, (question, answer)) in questions.iter().zip(answers).enumerate() {
                let Question { rules, subject, op, ref costs, part } = *question;
                let part_rules = only(rules, part.limits);
                let answer = answer.unwrap();
                for (index, &cost) in costs.iter().enumerate() {
                    let who = (rules.name().to_owned(), subject.resource, subject.consumer, part.id);
                    let again = !part.id.is_empty() && !refunded.insert(who);
                    let cost = if again { 0 } else { cost };
                    agree(&mut pure, &part_rules, &subject, (op, cost), answer.get(index), number)?;
                    decisions += 1;
                }
            }
        }
        Ok(decisions)
    }

    async fn store_says(&self, question: &Question<'_>) -> Result<Verdicts, StoreError> {
        let Question { rules, subject, op, ref costs, part } = *question;
        let decision = Decision { part: Some(&part), ..Decision::new(rules, subject, op, costs) };
        let mut out = Verdicts::default();
        self.store.decide_one(&decision, op, costs, &mut out).await.map(|()| out)
    }
}

fn heaps(op: BoxedStrategy<Op>, most_costs: usize) -> impl proptest::strategy::Strategy<Value = Heaps> {
    let of_engine = prop_oneof![
        (random::bucket(), random::bucket()),
        (random::any_bucket(), random::any_bucket()),
        (random::warm_up(), random::warm_up()),
        (random::window(), random::window()),
        (random::interval(), random::interval()),
        (random::log(), random::log()),
        (random::sliding(), random::sliding()),
        (random::slots(), random::slots()),
        (random::sparse(), random::sparse()),
        (random::limit(), random::limit()),
    ];
    let limit = (of_engine.boxed(), 0..2_usize).prop_map(|((own, other), scope)| (own, other, scope));
    let limits = prop_oneof![
        4 => prop::collection::vec(limit.clone(), 1),
        4 => prop::collection::vec(limit.clone(), 2..=3),
        1 => prop::collection::vec(limit, 4..=MAX_LIMITS),
    ];
    let pause = prop_oneof![1 => Just(0_u64), 4 => 0..=20_u64, 1 => 0..=2_000_000_u64];
    let heap = (pause, prop::collection::vec(asked(op, most_costs), 1..30));
    (prop::collection::vec((0..SCOPES.len(), limits), 1..=3), prop::collection::vec(heap, 1..8))
}

fn asked(op: BoxedStrategy<Op>, most_costs: usize) -> impl proptest::strategy::Strategy<Value = Asked> {
    let op = prop_oneof![6 => Just(Op::Charge), 1 => Just(Op::Peek), 1 => op];
    let costs = prop_oneof![
        6 => prop::collection::vec(random::cost(), 1),
        1 => prop::collection::vec(random::cost(), 1..=most_costs),
    ];
    let whose = (0..3_usize, prop::bool::weighted(0.2), 0..RESOURCES.len(), 0..CONSUMERS.len());
    (whose, op, costs, 0..3_usize, 0..3_usize).prop_map(
        |((strategy, raised, resource, consumer), op, costs, left_out, id)| Asked {
            strategy,
            raised,
            resource,
            consumer,
            op,
            costs,
            left_out,
            id,
        },
    )
}
