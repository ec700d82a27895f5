//! `weir simulate --replay`: replays the calls of a decision log against another configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::simulation::{
    CostByName, EarlierLines, LoggedDecision, LoggedDecisions, ReplayResult, ReplayedAnswer,
    ReplayedDifference, ReplayedStrategy, read_decision_log, replay,
};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use weir_core::strategy::Rules;

use super::super::say;
use super::text::aligned;
use super::{SimulateArgs, SimulationOutput, text_of};

/// Maximum number of differing decisions shown.
const EXAMPLES: usize = 10;

const HEADER: [&str; 8] = [
    "strategy",
    "compared",
    "now denied",
    "now allowed",
    "granted otherwise",
    "refused",
    "not compared",
    "not judged",
];

/// Replays the log, and formats the result.
pub(super) fn run(args: &SimulateArgs, rules: Rules) -> Result<String> {
    let mut files = Vec::new();
    for file in &args.replay {
        files.push((file.clone(), text_of(file)?));
    }
    let log = read_decision_log(&files, args.strict)?;
    for note in damage(&files, &log) {
        say(&note);
    }
    for name in &args.strategies {
        if !log.decisions.iter().any(|one| one.strategy == *name) {
            bail!("the log has no decision of a strategy `{name}`");
        }
    }
    let wanted = |name: &str| args.strategies.is_empty() || args.strategies.iter().any(|one| one == name);
    let replayed = replay(&Arc::new(rules), &log, wanted, EXAMPLES)?;
    let not_judged: u64 = replayed.strategies.values().map(|counts| counts.not_judged).sum();
    if not_judged > 0 {
        say(&format!(
            "note: {not_judged} lines cannot be judged: the store did not answer those calls, so the log does not know what they \
             charged. They are not replayed, and later decisions about the same limits may differ for that reason alone"
        ));
    }
    match args.output {
        SimulationOutput::Text => Ok(text(&files, &log, &replayed)),
        SimulationOutput::Json => json(&files, &log, &replayed),
        SimulationOutput::Csv => Ok(csv(&replayed)),
        SimulationOutput::Svg => bail!("--output svg: a replay has no picture"),
    }
}

/// Says what the log lacks.
fn damage(files: &[(PathBuf, String)], log: &LoggedDecisions) -> Vec<String> {
    let name = |file: usize| files.get(file).map_or_else(String::new, |(path, _)| path.display().to_string());
    let earlier = log.earlier.map(|EarlierLines { place: (file, line), count }| {
        format!(
            "note: {}, line {line} is not the first of its process: {count} earlier lines are in files that were not given, or \
             deleted. The replay begins with full limits, so decisions may differ until each limit would have been full again",
            name(file)
        )
    });
    let torn = log.torn.iter().map(|torn| {
        let (file, line, lost) = (name(torn.place.0), torn.place.1, torn.lost);
        format!(
            "note: {file}, line {line} is cut off, and {lost} decisions are lost there: the disk was full, or the process was \
             killed. They are not replayed, so later ones may differ from what was decided; --strict refuses such a log"
        )
    });
    earlier.into_iter().chain(torn).collect()
}

fn text(files: &[(PathBuf, String)], log: &LoggedDecisions, replayed: &ReplayResult) -> String {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    rows.extend(replayed.strategies.iter().map(|(name, counts)| {
        let numbers = numbers(counts).into_iter().map(|(_, number)| number.to_string());
        std::iter::once(name.clone()).chain(numbers).collect()
    }));
    let mut out = aligned(&rows);
    if replayed.of_requests > 0 {
        let what = "decisions of Envoy's requests are not replayed";
        let _ = writeln!(out, "\n{} {what}", replayed.of_requests);
    }
    if !replayed.examples.is_empty() {
        out.push_str("\nfirst decisions that differ\n");
    }
    for example in &replayed.examples {
        let Some(one) = log.decisions.get(example.index) else { continue };
        let _ = writeln!(
            out,
            "{}: {} {} {} cost {}: {}, now {}",
            place(files, one),
            one.strategy,
            one.resource,
            one.consumer,
            cost(one),
            said(&example.before),
            said(&example.after)
        );
    }
    out
}

/// Returns the counts of a strategy with their JSON names, in the order of [`HEADER`].
fn numbers(counts: &ReplayedStrategy) -> [(&'static str, u64); 7] {
    [
        ("compared", counts.compared),
        ("now_denied", counts.now_denied),
        ("now_allowed", counts.now_allowed),
        ("granted_otherwise", counts.granted_otherwise),
        ("refused", counts.refused),
        ("not_compared", counts.not_compared),
        ("not_judged", counts.not_judged),
    ]
}

fn place(files: &[(PathBuf, String)], one: &LoggedDecision) -> String {
    let (file, line) = one.place;
    match files {
        [_] => format!("line {line}"),
        _ => files.get(file).map_or_else(String::new, |(path, _)| format!("{}:{line}", path.display())),
    }
}

/// The cost of a call, or its costs by name as `--cost` has them.
fn cost(one: &LoggedDecision) -> String {
    let named = one.costs.iter().map(|CostByName { name, cost, at_least }| match at_least {
        Some(least) => format!("{name}={cost},{least}"),
        None => format!("{name}={cost}"),
    });
    if one.costs.is_empty() { one.cost.to_string() } else { named.collect::<Vec<_>>().join(" ") }
}

fn said(ReplayedAnswer { allowed, granted, granted_by }: &ReplayedAnswer) -> String {
    let named = || granted_by.iter().map(|(name, granted)| format!("{name}={granted}"));
    match (allowed, granted_by.is_empty()) {
        (false, _) => "denied".to_owned(),
        (true, true) => format!("allowed {granted}"),
        (true, false) => format!("allowed {}", named().collect::<Vec<_>>().join(" ")),
    }
}

fn json(files: &[(PathBuf, String)], log: &LoggedDecisions, replayed: &ReplayResult) -> Result<String> {
    let rows = replayed.strategies.iter().map(|(name, counts)| {
        let mut row = json!({ "strategy": name });
        for (key, number) in numbers(counts) {
            row[key] = number.into();
        }
        row
    });
    let example = |one: &ReplayedDifference| {
        let logged = log.decisions.get(one.index)?;
        Some(json!({
            "place": place(files, logged),
            "time_us": logged.time.0,
            "strategy": logged.strategy,
            "resource": logged.resource,
            "consumer": logged.consumer,
            "cost": logged.cost,
            "costs": logged.costs.iter().map(|cost| {
                (cost.name.clone(), json!({ "cost": cost.cost, "at_least": cost.at_least }))
            }).collect::<BTreeMap<_, _>>(),
            "before": answer(&one.before),
            "after": answer(&one.after),
        }))
    };
    let all = json!({
        "decisions": log.decisions.len(),
        "of_requests": replayed.of_requests,
        "earlier_lines": log.earlier.map_or(0, |earlier| earlier.count),
        "strategies": rows.collect::<Vec<_>>(),
        "examples": replayed.examples.iter().filter_map(example).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn answer(ReplayedAnswer { allowed, granted, granted_by }: &ReplayedAnswer) -> Value {
    let by: BTreeMap<_, _> = granted_by.iter().cloned().collect();
    json!({ "allowed": allowed, "granted": granted, "granted_by_limit": by })
}

fn csv(replayed: &ReplayResult) -> String {
    let names = numbers(&ReplayedStrategy::default()).map(|(name, _)| name);
    let mut out = format!("strategy,{}\n", names.join(","));
    for (name, counts) in &replayed.strategies {
        // Names contain neither commas nor quotes.
        let numbers = numbers(counts).map(|(_, number)| number.to_string());
        let _ = writeln!(out, "{name},{}", numbers.join(","));
    }
    out
}
