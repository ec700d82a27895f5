//! The `concurrency` of a strategy: the number of permits, and the source of the limit.

use weir_core::key::MAX_PART;
use weir_core::strategy::{
    AdaptiveRule, AimdRule, ConcurrencyError, ConcurrencyNumbers, ConcurrencyRule, ControllerRule,
    Gradient2Rule, LONGEST_TTL, LimitSource, MAX_ADAPTIVE_LIMIT, MAX_PARTITIONS, Partitions, ProbeRule,
    SamplingRule, Scope, VegasRule, is_attribute_name,
};
use weir_units::{CEILING, Micros};

use super::errors::MistakeReport;
use super::fields::{KeyedValue, Mapping};
use super::quantities::{duration, duration_within};
use super::scopes::scope;
use super::values::Digits;
use super::values::{Scalar, choice, digits, integer, integer_within, quote, text, text_within, within};

/// Fixed-point scale: fractions are read as thousandths, so that they are exact.
const WHOLE: u64 = 1000;

/// Upper bound of parameters that are counted in samples.
const MAX_SAMPLES: usize = 1_000_000;

/// Upper bound of a controller's durations.
const LONGEST_WAIT: Micros = Micros::from_secs(24 * 3600);

const DEFAULT_TTL: Micros = Micros::from_secs(30);
const DEFAULT_MAX_TTL: Micros = Micros::from_secs(3600);
const DEFAULT_IDLE: Micros = Micros::from_secs(600);

/// The controller of an adaptive limit, as the file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ControllerKind {
    Aimd,
    Vegas,
    Gradient2,
}

/// Keys that only some controllers have.
const KEYS_OF: [(&str, &[ControllerKind]); 7] = [
    ("backoff", &[ControllerKind::Aimd]),
    ("timeout", &[ControllerKind::Aimd]),
    ("smoothing", &[ControllerKind::Vegas, ControllerKind::Gradient2]),
    ("probe", &[ControllerKind::Vegas]),
    ("queue", &[ControllerKind::Gradient2]),
    ("long_window", &[ControllerKind::Gradient2]),
    ("tolerance", &[ControllerKind::Gradient2]),
];

/// Keys of every adaptive limit.
const ADAPTIVE_KEYS: [&str; 5] = ["initial", "min", "max", "sampling", "idle"];

/// Returns the keys that only adaptive limits have.
pub(super) fn adaptive_keys() -> impl Iterator<Item = &'static str> {
    KEYS_OF.into_iter().map(|(key, _)| key).chain(ADAPTIVE_KEYS)
}

/// Reads the section: the scope and the rule.
pub(super) fn concurrency(
    entry: &KeyedValue<'_>,
    report: &mut MistakeReport,
) -> Option<(Scope, ConcurrencyRule)> {
    let mut fields = Mapping::new(&entry.value, report);
    let per = fields.require("per", "say what has permits of its own, such as [resource, consumer]", report);
    let scope = per.and_then(|per| scope(&per, report));
    let source = source(&mut fields, report);
    let ttl = |s: Scalar<'_>| duration_within(s, Micros(1), LONGEST_TTL);
    let max_ttl = fields.read("max_ttl", report, ttl);
    let own_ttl = fields.read("ttl", report, ttl);
    let max_weight = fields.read("max_weight", report, |s| within(integer(s)?, 1, CEILING - 1));
    let partitions = partitions(&mut fields, report);
    let max_ttl = max_ttl.unwrap_or(DEFAULT_MAX_TTL);
    let numbers = ConcurrencyNumbers {
        source: source.clone().unwrap_or(LimitSource::Fixed(CEILING - 1)),
        ttl: own_ttl.unwrap_or(DEFAULT_TTL.min(max_ttl)),
        max_ttl,
        max_weight,
        partitions: partitions.clone().flatten(),
    };
    let rule = ConcurrencyRule::new(numbers).map_err(|ConcurrencyError { field, value, bound }| {
        fields.report(field, report, format!("{value} {bound}"));
    });
    fields.finish(report);
    // Without a source a placeholder was checked, so that other mistakes are reported, too.
    source?;
    partitions?;
    Some((scope?, rule.ok()?))
}

fn source(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<LimitSource> {
    let adaptive = fields.take("adaptive");
    let kinds = [
        ("aimd", ControllerKind::Aimd),
        ("vegas", ControllerKind::Vegas),
        ("gradient2", ControllerKind::Gradient2),
    ];
    let kind = adaptive.as_ref().map(|value| value.read(report, |s| choice(s, &kinds)));
    match kind {
        None => {
            misplaced(fields, adaptive_keys(), "only a limit that is `adaptive` has it", report);
            let limit =
                fields.require("limit", "say how many permits there are, or make it `adaptive`", report);
            limit?.read(report, |s| within(integer(s)?, 0, CEILING - 1)).map(LimitSource::Fixed)
        }
        Some(kind) => {
            misplaced(
                fields,
                ["limit"].into_iter(),
                "an adaptive limit has `initial`, `min` and `max`",
                report,
            );
            adaptive_rule(fields, kind, report).map(LimitSource::Adaptive)
        }
    }
}

fn misplaced(
    fields: &mut Mapping<'_>,
    keys: impl Iterator<Item = &'static str>,
    why: &str,
    report: &mut MistakeReport,
) {
    for key in keys {
        if let Some(entry) = fields.take_entry(key) {
            entry.report(report, format!("cannot stand here: {why}"));
        }
    }
}

/// Reads an adaptive limit. All fields are read before any is required, so that one mistake does not hide another.
fn adaptive_rule(
    fields: &mut Mapping<'_>,
    kind: Option<ControllerKind>,
    report: &mut MistakeReport,
) -> Option<AdaptiveRule> {
    let limit = |s: Scalar<'_>| within(integer(s)?, 1, MAX_ADAPTIVE_LIMIT);
    let [initial, min, max] = ["initial", "min", "max"].map(|name| fields.read(name, report, limit));
    let sampling = fields.take_entry("sampling").map(|entry| sampling(&entry, report));
    let idle = fields.read("idle", report, |s| within(duration(s)?, Micros::ZERO, LONGEST_WAIT));
    let others = KEYS_OF.into_iter().filter(|(_, of)| kind.is_some_and(|kind| !of.contains(&kind)));
    misplaced(fields, others.map(|(key, _)| key), "another controller has it", report);
    let kind = kind?;
    let (least, most) = match kind {
        ControllerKind::Aimd | ControllerKind::Gradient2 => (20, 200),
        ControllerKind::Vegas => (1, 1000),
    };
    // Defaults adapt to the values that are given.
    let max = max.unwrap_or_else(|| most.max(min.unwrap_or(1)).max(initial.unwrap_or(1)));
    let min = min.unwrap_or_else(|| least.min(max).min(initial.unwrap_or(max)));
    let initial = initial.unwrap_or_else(|| 20.clamp(min.min(max), max));
    let controller = controller(fields, kind, report);
    let idle = idle.unwrap_or(DEFAULT_IDLE);
    let sampling = sampling.map_or(Some(None), |rule| rule.map(Some));
    Some(AdaptiveRule { initial, min, max, controller: controller?, sampling: sampling?, idle })
}

fn controller(
    fields: &mut Mapping<'_>,
    kind: ControllerKind,
    report: &mut MistakeReport,
) -> Option<ControllerRule> {
    let part = |s: Scalar<'_>| thousandths(s, 1, WHOLE);
    let count = |s: Scalar<'_>| integer_within(s, 1, MAX_SAMPLES);
    // A reported mistake fails the whole configuration, so any placeholder value will do.
    match kind {
        ControllerKind::Aimd => {
            let backoff = fields.read("backoff", report, |s| thousandths(s, 1, WHOLE - 1)).unwrap_or(900);
            let timeout = |s: Scalar<'_>| duration_within(s, Micros(1), LONGEST_WAIT);
            let timeout = fields.read("timeout", report, timeout).unwrap_or(Micros::from_secs(5));
            Some(ControllerRule::Aimd(AimdRule { backoff: fraction(backoff), timeout }))
        }
        ControllerKind::Vegas => {
            let smoothing = fraction(fields.read("smoothing", report, part).unwrap_or(WHOLE));
            let probe = fields.read("probe", report, count).unwrap_or(30) as f64;
            let probe = ProbeRule::PerPermit(probe);
            Some(ControllerRule::Vegas(VegasRule { smoothing, alpha: None, beta: None, probe }))
        }
        ControllerKind::Gradient2 => {
            let smoothing = fraction(fields.read("smoothing", report, part).unwrap_or(200));
            let queue = fields.read("queue", report, count).unwrap_or(4) as f64;
            let long_window = fields.read("long_window", report, count).unwrap_or(600) as f64;
            let tolerance = |s: Scalar<'_>| thousandths(s, WHOLE, 100 * WHOLE);
            let tolerance = fraction(fields.read("tolerance", report, tolerance).unwrap_or(1500));
            Some(ControllerRule::Gradient2(Gradient2Rule { smoothing, queue, long_window, tolerance }))
        }
    }
}

fn sampling(entry: &KeyedValue<'_>, report: &mut MistakeReport) -> Option<SamplingRule> {
    let mut fields = Mapping::new(&entry.value, report);
    let window = fields.read("window", report, |s| duration_within(s, Micros(1), LONGEST_WAIT));
    let samples = fields.read("samples", report, |s| integer_within(s, 1, MAX_SAMPLES));
    fields.finish(report);
    let (window, samples) = (window.unwrap_or(Micros::from_secs(1)), samples.unwrap_or(10));
    Some(SamplingRule { window, samples: samples as u64 })
}

/// Reads the partitions: `Some(None)` if there are none, `None` after a mistake.
fn partitions(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Option<Partitions>> {
    let Some(entry) = fields.take_entry("partitions") else { return Some(None) };
    let mut fields = Mapping::new(&entry.value, report);
    let by = fields.require("by", "name the attribute that the shares are for", report);
    let by = by.and_then(|by| by.read(report, attribute));
    let section = fields.require("shares", "give each value of the attribute its part of the limit", report);
    let shares = section.as_ref().and_then(|section| {
        let entries = section.entries(report)?;
        if entries.is_empty() || entries.len() > MAX_PARTITIONS {
            let reason = format!("has {} entries: it must have 1 to {MAX_PARTITIONS}", entries.len());
            section.report(report, reason);
        }
        let share = |entry: &KeyedValue<'_>| {
            let name = text_within(Scalar { text: entry.name, quoted: true }, MAX_PART);
            let name = name.map_err(|reason| entry.report(report, reason)).ok();
            let share = entry.value.read(report, |s| thousandths(s, 0, WHOLE));
            Some((name?.into(), share?))
        };
        let shares: Option<Vec<(Box<str>, u64)>> = entries.iter().map(share).collect();
        let shares = shares?;
        let sum: u64 = shares.iter().map(|(_, share)| share).sum();
        if sum > WHOLE {
            section.report(report, format!("the shares add up to {}: at most 1", shown(sum)));
        }
        Some(shares)
    });
    fields.finish(report);
    Some(Some(Partitions::new(&by?, shares?)))
}

fn attribute(s: Scalar<'_>) -> Result<String, String> {
    let name = text(s)?;
    if is_attribute_name(&name) {
        return Ok(name);
    }
    Err(format!(
        "{} is no name of an attribute: it must be 1 to 64 of the characters a-z 0-9 _ -, and begin with a letter",
        quote(&name)
    ))
}

/// Reads a decimal number with at most three fractional digits, from `min` to `max` thousandths.
fn thousandths(s: Scalar<'_>, min: u64, max: u64) -> Result<u64, String> {
    let parsed = || {
        let (whole, part) = s.text.split_once('.').unwrap_or((s.text, "0"));
        let places = u32::try_from(part.len()).ok().filter(|places| (1..=3).contains(places))?;
        let (Digits::Number(whole), Digits::Number(part)) = (digits(whole), digits(part)) else {
            return None;
        };
        whole.checked_mul(WHOLE)?.checked_add(part * 10_u64.pow(3 - places))
    };
    let bounds = format!("it must be from {} to {}, in steps of 0.001", shown(min), shown(max));
    match parsed() {
        Some(number) if (min..=max).contains(&number) && !s.quoted => Ok(number),
        Some(_) if s.quoted => Err(format!("{} is text because of its quotes; write it bare", quote(s.text))),
        Some(_) => Err(format!("{} is out of bounds: {bounds}", s.text)),
        None => Err(format!("{} is no number of this kind: {bounds}", quote(s.text))),
    }
}

/// Formats thousandths as a decimal number.
fn shown(number: u64) -> String {
    fraction(number).to_string()
}

fn fraction(number: u64) -> f64 {
    number as f64 / WHOLE as f64
}
