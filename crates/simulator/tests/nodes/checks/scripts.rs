//! The scripts that ran, and their questions.

use weir_core::algorithm::Op;

use crate::log::{CounterName, ScriptEvent};

/// The scripts that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckedScript {
    Decisions,
    Counters,
    Places,
    Others,
}

/// Names of scripts in the log, and a piece of the text by which each is known.
const NAMES: [(&str, &str); 4] = [
    ("leases", "local function show_sample()"),
    ("counters", "local function decide(op, cost, times, at, most, count)"),
    ("places", "if ask ~= 'take' then"),
    ("decisions", "local function judge_at_most("),
];

/// The name of a script by its text.
pub(crate) fn name_of(text: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(text);
    NAMES.iter().find(|(_, piece)| text.contains(piece)).map_or("other", |(name, _)| name)
}

/// The kind of a script by its name.
pub(super) fn kind_of(name: &str) -> CheckedScript {
    match name {
        "decisions" => CheckedScript::Decisions,
        "counters" => CheckedScript::Counters,
        "places" => CheckedScript::Places,
        _ => CheckedScript::Others,
    }
}

/// A decision as a script was asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedDecision {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) counter: CounterName,
    pub(super) op: Op,
    pub(super) costs: Vec<u64>,
}

/// The decisions of a script call, as `decisions/encode.rs` of the store writes them. `None` for what this simulation
/// does not ask.
pub(super) fn decisions_of(script: &ScriptEvent) -> Option<Vec<AskedDecision>> {
    let (packed, declared) = script.arguments.split_last()?;
    let mut keys = if script.keys.is_empty() { declared.iter() } else { script.keys.iter() };
    let mut numbers =
        packed.chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap_or_default()));
    let mut next = || numbers.next().map(|number| number as u64);
    let (_now, groups, _repeats) = (next()?, next()?, next()?);
    let mut decisions = Vec::new();
    for _ in 0..groups {
        let [limits, count, each, listed, op, _max_wait] =
            [next()?, next()?, next()?, next()?, next()?, next()?];
        for _ in 0..limits * 8 {
            next()?;
        }
        let costs: Option<Vec<u64>> = (0..listed).map(|_| next()).collect();
        let mut costs = costs?.into_iter().cycle();
        for _ in 0..count {
            let keys: Vec<_> = keys.by_ref().take(limits as usize).cloned().collect();
            let counter = counter_of(keys.first()?)?;
            let costs = costs.by_ref().take(each as usize).collect();
            decisions.push(AskedDecision { keys, counter, op: op_of(op)?, costs });
        }
    }
    Some(decisions)
}

/// Of a key such as `weir:{…}Bstrategy:limit|Cme`.
pub(super) fn counter_of(key: &[u8]) -> Option<CounterName> {
    let key = std::str::from_utf8(key).ok()?;
    let (_, name) = key.split_once('}')?;
    let strategy = name.get(1..)?.split(':').next()?.to_owned();
    let consumer = name.rsplit_once("|C")?.1.to_owned();
    Some(CounterName { strategy, consumer })
}

fn op_of(code: u64) -> Option<Op> {
    match code {
        1 => Some(Op::Charge),
        2 => Some(Op::Peek),
        _ => None,
    }
}
