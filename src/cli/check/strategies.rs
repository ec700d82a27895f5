//! Notes of `weir check` on valid strategies: required inputs, probable mistakes, memory.

use weir_config::Config;
use weir_core::algorithm::{Algorithm, Engine};
use weir_core::strategy::Strategy;

use super::super::explanation;

/// A state above this size is worth a note: Redis reads or moves it whole now and then.
const LARGE_STATE: usize = 4096;

/// Most remarks of one run.
const MAX_REMARKS: usize = 1000;

/// Names of attributes that people take for the caller's name.
const CONSUMERS: [&str; 8] =
    ["user", "user_id", "userid", "client", "client_id", "caller", "account", "customer"];

/// Something to know of a strategy, or of a limit.
pub(super) struct Remark {
    /// True if it is probably not meant.
    is_warning: bool,
    text: String,
}

impl Remark {
    fn note(text: String) -> Self {
        Self { is_warning: false, text }
    }

    fn warning(text: String) -> Self {
        Self { is_warning: true, text }
    }

    /// Returns the line of the note, for a file.
    pub(super) fn line(&self, file: &str) -> String {
        let kind = if self.is_warning { "warning" } else { "note" };
        format!("{kind}: {file}: {}", self.text)
    }
}

/// Returns what is to be said of all strategies, within a bound.
pub(super) fn remarks(config: &Config) -> Vec<Remark> {
    let strategies = config.rules.strategies().iter().flat_map(|strategy| of_strategy(strategy));
    let mut remarks: Vec<Remark> =
        both_lists(config).into_iter().chain(strategies).take(MAX_REMARKS + 1).collect();
    if remarks.len() > MAX_REMARKS {
        remarks.truncate(MAX_REMARKS);
        remarks
            .push(Remark::note(format!("there is more to say; these are the first {MAX_REMARKS} remarks")));
    }
    remarks
}

fn of_strategy(strategy: &Strategy) -> Vec<Remark> {
    let name = strategy.name();
    let mut remarks: Vec<Remark> = attributes(strategy).into_iter().collect();
    for (behind, front) in strategy.unreachable_limits() {
        remarks.push(Remark::warning(format!(
            "strategy `{name}`: limit `{}` is never reached by calls, because `{}` denies first",
            behind.name, front.name
        )));
    }
    for limit in strategy.limits() {
        let bytes = explanation::largest_state(&limit.algorithm);
        if bytes > LARGE_STATE {
            let engine = limit.algorithm.engine().name();
            remarks.push(Remark::note(format!(
                "strategy `{name}`, limit `{}`: a key on Redis can reach {bytes} bytes ({engine}): {}",
                limit.name,
                smaller(&limit.algorithm)
            )));
        }
    }
    for (limit, bound) in explanation::local::bounds(strategy) {
        remarks
            .push(Remark::note(format!("strategy `{name}`, limit `{}`, without Redis: {bound}", limit.name)));
    }
    let approximate = explanation::approximate::lines(strategy).into_iter();
    remarks.extend(approximate.map(|about| Remark::note(format!("strategy `{name}`, approximate: {about}"))));
    remarks.extend(
        explanation::approximate::warning(strategy)
            .map(|about| Remark::warning(format!("strategy `{name}`, {about}"))),
    );
    let local = explanation::local::lines(strategy).into_iter();
    remarks.extend(local.map(|about| Remark::note(format!("strategy `{name}`: {about}"))));
    remarks
}

/// The attributes that its callers send, and a word on one that stands for the consumer.
fn attributes(strategy: &Strategy) -> Option<Remark> {
    let mut names: Vec<&str> = strategy.needed_attributes().iter().map(|needed| &*needed.attribute).collect();
    names.sort_unstable();
    names.dedup();
    let shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let (name, shown) = (strategy.name(), shown.join(", "));
    if let Some(other) = names.iter().find(|name| CONSUMERS.contains(*name)) {
        return Some(Remark::warning(format!(
            "strategy `{name}`: callers must send the attributes {shown}; if `{other}` is who calls, write `consumer`, \
             which every request has"
        )));
    }
    (!names.is_empty())
        .then(|| Remark::note(format!("strategy `{name}`: callers must send the attributes {shown}")))
}

/// Consumers who are on both lists for all strategies: the deny list goes before.
fn both_lists(config: &Config) -> Option<Remark> {
    let both = config.rules.access().on_both_lists();
    let first = both.first()?;
    let others = match both.len() - 1 {
        0 => String::new(),
        count => format!(", and {count} others,"),
    };
    Some(Remark::warning(format!("access: `{first}`{others} is on both lists, and so denied")))
}

/// Returns the changes that make such a state smaller.
fn smaller(algorithm: &Algorithm) -> &'static str {
    match algorithm.engine() {
        Engine::Slots(_) => "fewer `buckets` take fewer",
        _ => "a token_bucket or a bucketed_window takes fewer",
    }
}
