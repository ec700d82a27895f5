//! The `authorize` section: rules that allow callers to do something.

use weir_core::key::MAX_PART;

use super::callers::{CallerPattern, caller_pattern};
use super::errors::{MistakeReport, Position};
use super::fields::{Mapping, NamedNode};
use super::rights::{AccessRight, RIGHTS, RightSet, RuleList};
use super::values::{Scalar, choice, quote, text_within};

/// The most rules.
pub(super) const MAX_RULES: usize = 10_000;

/// The entry of `consumers` that stands for the caller's own name.
const OWN_NAME: &str = "$caller";

/// One rule. Rules only allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizeRule {
    /// The callers that the rule names.
    pub callers: Vec<CallerPattern>,
    /// Their rights.
    pub may: RightSet,
    /// The resources, if not all.
    pub resources: Option<Vec<ListEntry>>,
    /// The strategies, if not all.
    pub strategies: Option<Vec<ListEntry>>,
    /// The consumers, if not all.
    pub consumers: Option<Vec<ListEntry>>,
    /// The queues, if not all.
    pub queues: Option<Vec<ListEntry>>,
    /// The domains of Envoy's requests, if not all.
    pub envoy_domains: Option<Vec<ListEntry>>,
    /// The place of the rule in the files.
    pub place: Position,
}

/// An entry of a rule's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEntry {
    /// One name.
    Exact(Box<str>),
    /// All names with this prefix.
    Prefix(Box<str>),
    /// The caller's own name; in `consumers` only.
    Caller,
}

/// Reads the rules; `None` without the section.
pub(super) fn authorize(
    root: &mut Mapping<'_>,
    issuers: &[String],
    report: &mut MistakeReport,
) -> Option<Vec<AuthorizeRule>> {
    let section = root.take("authorize")?;
    let items = section.items(report).unwrap_or_default();
    if items.len() > MAX_RULES {
        section.report(report, format!("has {} rules: at most {MAX_RULES}", items.len()));
        return Some(Vec::new());
    }
    Some(items.iter().filter_map(|item| rule(item, issuers, report)).collect())
}

fn rule(item: &NamedNode<'_>, issuers: &[String], report: &mut MistakeReport) -> Option<AuthorizeRule> {
    let mut fields = Mapping::new(item, report);
    let callers = fields.require("callers", "list the names of callers, such as [token:shop]", report);
    let callers = callers.and_then(|value| {
        let items = some_items(&value, report)?;
        let read = |s: Scalar<'_>| caller_pattern(s.text, issuers);
        Some(items.iter().filter_map(|item| item.read(report, read)).collect())
    });
    let may = fields.require("may", "list rights, such as [decide]", report);
    let may = may.and_then(|value| {
        let items = some_items(&value, report)?;
        let rights = RIGHTS.each_ref().map(|row| (row.name, row.right));
        Some(items.iter().filter_map(|item| item.read(report, |s| choice(s, &rights))).collect::<RightSet>())
    });
    let [resources, strategies, consumers, queues, envoy_domains] =
        RuleList::ALL.map(|which| list(&mut fields, which, report));
    let given = [&resources, &strategies, &consumers, &queues, &envoy_domains].map(Option::is_some);
    if let Some(may) = may {
        check_bounds(&fields, may, given, report);
    }
    fields.finish(report);
    let (callers, may, place) = (callers?, may?, item.at());
    Some(AuthorizeRule { callers, may, resources, strategies, consumers, queues, envoy_domains, place })
}

/// A right that none of the rule's lists bounds would be held without bounds, which nobody expects of such a rule.
fn check_bounds(fields: &Mapping<'_>, may: RightSet, given: [bool; 5], report: &mut MistakeReport) {
    let has = |list: RuleList| given[list as usize];
    if !RuleList::ALL.into_iter().any(has) {
        return;
    }
    for row in RIGHTS.iter().filter(|row| may.has(row.right)) {
        let with_envoy =
            row.right == AccessRight::Refund && may.has(AccessRight::Envoy) && has(RuleList::EnvoyDomains);
        if with_envoy || row.lists.iter().any(|list| has(*list)) {
            continue;
        }
        let lists: Vec<&str> = row.lists.iter().map(|list| list.key()).collect();
        let bounds = if lists.is_empty() { "nothing".to_owned() } else { lists.join(", ") };
        let name = row.name;
        fields.report(
            "may",
            report,
            format!("the lists of this rule do not bound `{name}`, which {bounds} can bound; write a second rule for it"),
        );
    }
}

fn list(fields: &mut Mapping<'_>, which: RuleList, report: &mut MistakeReport) -> Option<Vec<ListEntry>> {
    let value = fields.take(which.key())?;
    let items = some_items(&value, report).unwrap_or_default();
    // A mistaken list must not turn into an absent one, which means all.
    Some(items.iter().filter_map(|item| item.read(report, |s| entry(s, which))).collect())
}

fn entry(scalar: Scalar<'_>, which: RuleList) -> Result<ListEntry, String> {
    let text = text_within(scalar, MAX_PART)?;
    if text == OWN_NAME && which == RuleList::Consumers {
        return Ok(ListEntry::Caller);
    }
    if text.starts_with('$') {
        return Err(format!("{} stands for no name; only `consumers` can have {OWN_NAME}", quote(&text)));
    }
    match text.strip_suffix('*') {
        Some(prefix) if prefix.contains('*') => {
            Err(format!("{}: a * can stand only at the end of a pattern", quote(&text)))
        }
        Some(prefix) => Ok(ListEntry::Prefix(prefix.into())),
        None if text.contains('*') => {
            Err(format!("{}: a * can stand only at the end of a pattern", quote(&text)))
        }
        None => Ok(ListEntry::Exact(text.into())),
    }
}

fn some_items<'t>(value: &NamedNode<'t>, report: &mut MistakeReport) -> Option<Vec<NamedNode<'t>>> {
    let items = value.items(report)?;
    if items.is_empty() && !value.is_cut() {
        value.report(report, "must not be empty");
    }
    Some(items)
}
