//! The requests of counters that nodes count on their own, for `lua/approximate/`. Those of one slot share a script call.

mod scripts;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use smallvec::SmallVec;
use weir_core::approximate::{ApproximateBound, CountAnswer, CountAsk, NodePush, PlaceAnswer, PlaceAsk};
use weir_core::key::{self, Subject};
use weir_core::strategy::Strategy;
use weir_units::Micros;

pub use self::scripts::APPROXIMATE;
use self::scripts::{CountScript, count_script};
use super::callers::Replies;
use super::context::LinkContext;
use super::evaluate::ScriptName;
use super::reply::{NOT_A_STATE, garbled, text};
use super::script_call::{CallTerms, ScriptRequest, ScriptTarget};
use super::{Connected, RedisStore};
use crate::cost::{KEY_COST, ScriptCost};
use crate::scripts::Script;
use crate::{CountStore, CounterKey, StoreError};

/// The most counters of one script call.
const TOGETHER: usize = 100;

/// Bytes of the arguments of one request, about.
const ARGUMENTS: usize = 160;

type CountNumbers = SmallVec<[u64; 10]>;

/// A request to one counter, or to the places of a strategy.
pub(super) struct CountRequest {
    target: ScriptTarget<CountScript>,
    key: Arc<[u8]>,
    arguments: CountArguments,
}

type CountArguments = SmallVec<[CountArgument; 13]>;

#[derive(Debug, Clone, Copy)]
enum CountArgument {
    Number(u64),
    Word(&'static str),
}

impl CountRequest {
    fn of_count(key: &CounterKey, window: Micros, ask: CountAsk) -> Self {
        use CountArgument::{Number, Word};
        let none = NodePush { window: 0, place: 0, incarnation: 0, sequence: 0, units: 0 };
        let (push, has_push) = (ask.push.unwrap_or(none), u64::from(ask.push.is_some()));
        let arguments = [
            Number(window.0),
            Word(ask.op.name()),
            Number(ask.cost),
            Number(ask.times),
            Number(ask.limit),
            Number(ask.share),
            Number(ask.most),
            Number(has_push),
            Number(push.window),
            Number(push.place),
            Number(push.incarnation),
            Number(push.sequence),
            Number(push.units),
        ];
        Self::new(key, CountScript::Count, SmallVec::from_buf(arguments))
    }

    fn of_place(key: &CounterKey, bound: &ApproximateBound, ask: PlaceAsk) -> Self {
        use CountArgument::{Number, Word};
        let (does, place, incarnation) = match ask {
            PlaceAsk::Take => ("take", 0, 0),
            PlaceAsk::Keep { place, incarnation } => ("keep", place, incarnation),
            PlaceAsk::Free { place, incarnation } => ("free", place, incarnation),
        };
        let (window, nodes) = (Number(bound.window().0), Number(bound.nodes()));
        let arguments = [window, nodes, Word(does), Number(place), Number(incarnation)];
        Self::new(key, CountScript::Places, SmallVec::from_slice(&arguments))
    }

    fn new(key: &CounterKey, script: CountScript, arguments: CountArguments) -> Self {
        let target = ScriptTarget { slot: key.slot, form: script };
        Self { target, key: Arc::clone(&key.name), arguments }
    }
}

impl ScriptRequest for CountRequest {
    type Answer = CountNumbers;
    type Form = CountScript;

    fn target(&self) -> &ScriptTarget<CountScript> {
        &self.target
    }

    fn cost(&self) -> ScriptCost {
        KEY_COST
    }

    fn is_like(&self, other: &Self) -> bool {
        self.target.slot == other.target.slot
    }

    fn fits(&self, others: &[Arc<Self>]) -> bool {
        self.target.form != CountScript::Places && others.len() < TOGETHER
    }

    fn deadline(context: &LinkContext) -> Duration {
        context.config.deadline.into()
    }

    fn script(form: CountScript, _: &[Arc<Self>]) -> &'static Script {
        count_script(form)
    }

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd {
        let bytes = requests.iter().map(|request| request.key.len() + ARGUMENTS).sum::<usize>();
        let mut command = script.command(2 + 14 * requests.len(), 24 + bytes);
        command.arg(requests.len());
        for request in requests {
            command.arg(&*request.key);
        }
        match terms.now {
            Some(now) => command.arg(now.0),
            None => command.arg(-1),
        };
        for argument in requests.iter().flat_map(|request| &request.arguments) {
            match argument {
                CountArgument::Number(number) => command.arg(*number),
                CountArgument::Word(word) => command.arg(*word),
            };
        }
        command
    }

    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<CountNumbers>, StoreError> {
        let Value::Array(values) = reply else { return Err(garbled()) };
        if requests.iter().any(|request| request.target.form == CountScript::Places) {
            return Ok(std::iter::once(numbers(&values)).collect());
        }
        if values.len() != requests.len() {
            return Err(garbled());
        }
        values.iter().map(|value| Ok(one(value))).collect()
    }
}

/// The numbers of a counter, or why it failed.
fn one(reply: &Value) -> Result<CountNumbers, StoreError> {
    match reply {
        Value::Array(values) => numbers(values),
        reason => {
            let reason = text(reason)?;
            // Redis adds where in the script it was.
            let is_unreadable = reason.contains("WRONGTYPE") || reason.contains(NOT_A_STATE);
            Err(if is_unreadable { StoreError::Unreadable } else { StoreError::Refused }(reason.into()))
        }
    }
}

fn numbers(values: &[Value]) -> Result<CountNumbers, StoreError> {
    let number = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| garbled()),
        _ => Err(garbled()),
    };
    values.iter().map(number).collect()
}

impl<T: Connected> CountStore for T {
    fn counter(&self, strategy: &Strategy, subject: &Subject<'_>) -> CounterKey {
        let shared = &self.store().0.shared;
        let config = &shared.context.config;
        let mut name = Vec::with_capacity(160);
        let tag = config.placements.tag(&shared.secret, strategy, subject, &mut name);
        name.clear();
        for limit in strategy.limits() {
            key::write_key(&mut name, config.namespace.prefix(tag), strategy, limit, subject);
        }
        self.store().key(tag, &name)
    }

    fn server_of(&self, key: &CounterKey) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        self.store().0.topology().owner(key.slot).ok()?.hash(&mut hasher);
        Some(hasher.finish())
    }

    async fn count(
        &self,
        key: &CounterKey,
        window: Micros,
        ask: CountAsk,
        deadline: Option<Instant>,
    ) -> Result<CountAnswer, StoreError> {
        let request = CountRequest::of_count(key, window, ask);
        let numbers = self.store().0.ask(&Arc::new(request), deadline).await?;
        let [passed, units, at, before, window, count, version, refunded, over, now] = numbers[..] else {
            return Err(garbled());
        };
        let now = Micros(now);
        Ok(CountAnswer { passed, units, at, before, window, count, version, refunded, over, now })
    }

    fn places(&self, strategy: &str, bound: &ApproximateBound) -> CounterKey {
        let shared = &self.store().0.shared;
        let tag = key::places_tag(&shared.secret, strategy);
        let mut name = Vec::with_capacity(160);
        key::write_places_key(&mut name, shared.context.config.namespace.prefix(tag), strategy, bound);
        self.store().key(tag, &name)
    }

    async fn place(
        &self,
        key: &CounterKey,
        bound: &ApproximateBound,
        ask: PlaceAsk,
    ) -> Result<PlaceAnswer, StoreError> {
        let request = CountRequest::of_place(key, bound, ask);
        match self.store().0.ask(&Arc::new(request), None).await?[..] {
            [] => Ok(PlaceAnswer::None),
            [place, incarnation, now] => Ok(PlaceAnswer::Holds { place, incarnation, now: Micros(now) }),
            _ => Err(garbled()),
        }
    }
}

impl RedisStore {
    fn key(&self, tag: u128, name: &[u8]) -> CounterKey {
        let is_cluster = self.0.topology().is_cluster();
        CounterKey { name: name.into(), slot: if is_cluster { key::slot(tag) } else { 0 } }
    }
}
