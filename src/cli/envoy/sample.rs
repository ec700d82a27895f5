//! What commands say of Envoy's files beside what they say of strategies.

use weir_config::Config;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::rules::{Descriptor, Matcher};
use weir_envoy::settings::EnvoyConfig;

use crate::cli::quoted::quoted;

/// Returns nothing: `weir check` says it last.
pub(crate) fn summary(_: &Config) -> Option<String> {
    None
}

/// Returns nothing: settings are compared elsewhere, and rules are in files of their own.
pub(crate) fn changes(_: &Config, _: &Config) -> Vec<String> {
    Vec::new()
}

/// Returns a command for a descriptor. If the files have mistakes, the service does not start and reports them.
pub(crate) fn example(config: &Config) -> Option<String> {
    let EnvoyConfig { config, merge_domains, .. } = EnvoyConfig::from_config(config);
    let files = EnvoyFiles::load(config.as_deref()?, merge_domains).ok()?;
    let (domain, entries) = files
        .domains
        .iter()
        .find_map(|(domain, descriptors)| Some((domain, ruled(descriptors)?)))
        // If no rule has a concrete value, use a descriptor that no rule matches, which is answered too.
        .or_else(|| Some((&files.domains.first()?.0, vec![("key".to_owned(), "value".to_owned())])))?;
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let list = match entries.iter().any(|entry| entry.contains(',')) {
        false => quoted(&entries.join(",")),
        true => {
            entries.iter().map(|entry| format!("--entry {}", quoted(entry))).collect::<Vec<_>>().join(" ")
        }
    };
    Some(format!("allow --envoy {} {list}", quoted(domain)))
}

/// Returns entries that match the first rule with concrete keys and values.
fn ruled(descriptors: &[Descriptor]) -> Option<Vec<(String, String)>> {
    descriptors.iter().find_map(|descriptor| {
        let entry = entry(descriptor)?;
        let below = match descriptor.rule {
            Some(_) => Vec::new(),
            None => ruled(&descriptor.descriptors)?,
        };
        Some(std::iter::once(entry).chain(below).collect())
    })
}

fn entry(descriptor: &Descriptor) -> Option<(String, String)> {
    let Descriptor { key, matcher, .. } = descriptor;
    let value = match matcher {
        _ if key.contains('*') => return None,
        Matcher::Any => "example".to_owned(),
        Matcher::Exact(text) => text.to_string(),
        Matcher::Glob(glob) => glob.to_string().replace('*', ""),
        Matcher::Cidr(networks) => networks.first()?.to_string().split('/').next()?.to_owned(),
        Matcher::Regex(_) => return None,
    };
    (!key.contains('=') && !key.is_empty()).then(|| (key.to_string(), value))
}
