//! Reads `envoy.all_or_none`.

use weir_config::SectionReader;
use weir_config::foreign::quote;

use crate::overlay::{AllOrNone, MAX_BY, MAX_DOMAINS, MAX_ENVOY_TEXT};

/// Reads the list of a section. `beside` are settings of the section that contradict it, if they are on.
pub(super) fn read(
    section: &mut SectionReader<'_, '_>,
    key: &'static str,
    beside: [(&'static str, bool); 3],
) -> AllOrNone {
    let mut domains: Vec<(String, Vec<String>)> = Vec::new();
    section.items(key, MAX_DOMAINS, |item| {
        let Some((domain, by)) = one(item) else { return };
        if domains.iter().any(|(other, _)| *other == domain) {
            item.report_here(format!("names the domain {} again", quote(&domain)));
        }
        domains.push((domain, by));
    });
    for (name, _) in beside.into_iter().filter(|(_, is_on)| *is_on && !domains.is_empty()) {
        let why = match name {
            "count_rejected" => "it charges denied hits, and a denied request charges nothing there",
            "stop_when_over" => "it looks before it charges, and both at once is what `all_or_none` does",
            _ => "a request is then denied only if all its descriptors are over",
        };
        section.report(key, format!("cannot stand beside `{name}: true`: {why}"));
    }
    AllOrNone::new(domains)
}

fn one(item: &mut SectionReader<'_, '_>) -> Option<(String, Vec<String>)> {
    let help = ("domain", "it is the domain of the descriptors");
    let domain = item.needed_text(help, MAX_ENVOY_TEXT, |domain| Ok(domain.to_owned()));
    let help = ("by", "give it the keys of entries, or [] for the whole request");
    let by = item.checked_texts(help, (MAX_BY, "keys"), MAX_ENVOY_TEXT, |keys, key| {
        match keys.iter().any(|other| other == key) {
            true => Err(format!("names the key {} again", quote(key))),
            false => Ok(()),
        }
    });
    Some((domain?, by?))
}
