//! The addresses of Redis, and the properties that they must agree on: TLS and credentials.

use std::collections::HashSet;

use super::Login;
use super::address::{RedisUrl, redis_url};
use super::errors::MistakeReport;
use super::fields::Mapping;
use super::given::GivenSetting;
use super::values::Scalar;

/// Maximum number of Redis addresses. A few seeds are enough for a cluster; Weir discovers the others.
pub(super) const MAX_NODES: usize = 64;

/// The addresses of the setting, or those of the file.
pub(super) struct Nodes<'s> {
    given: GivenSetting<'s>,
    urls: Vec<RedisUrl>,
}

impl<'s> Nodes<'s> {
    pub(super) fn read(
        fields: &mut Mapping<'_>,
        given: GivenSetting<'s>,
        report: &mut MistakeReport,
    ) -> Self {
        let from_file = match given.text {
            Some(_) => fields.take("nodes"),
            None => fields.require("nodes", "list addresses, such as [\"redis://127.0.0.1:6379\"]", report),
        };
        let mut urls = Vec::new();
        if let Some((value, items)) = from_file.and_then(|value| Some((value.clone(), value.items(report)?)))
        {
            if let Some(reason) = wrong_count(items.len()) {
                value.report(report, reason);
            }
            let mut seen = HashSet::new();
            for item in items.iter().take(MAX_NODES) {
                urls.extend(item.read(report, |s| once(redis_url(s)?, &mut seen)));
            }
        }
        if let Some(text) = given.text {
            let path = fields.path_of("nodes");
            let listed: Vec<&str> = text.split(',').map(str::trim).filter(|url| !url.is_empty()).collect();
            if let Some(reason) = wrong_count(listed.len()) {
                given.report(&path, report, reason);
            }
            let mut seen = HashSet::new();
            urls.clear();
            for text in listed.into_iter().take(MAX_NODES) {
                match redis_url(Scalar { text, quoted: false }).and_then(|url| once(url, &mut seen)) {
                    Ok(url) => urls.push(url),
                    Err(reason) => given.report(&path, report, reason),
                }
            }
        }
        Self { given, urls }
    }

    /// Returns the number of addresses.
    pub(super) fn count(&self) -> usize {
        self.urls.len()
    }

    /// Reports a mistake of the whole list.
    pub(super) fn report(&self, fields: &Mapping<'_>, report: &mut MistakeReport, reason: impl Into<String>) {
        match self.given.text {
            Some(_) => self.given.report(&fields.path_of("nodes"), report, reason.into()),
            None => fields.report("nodes", report, reason),
        }
    }

    /// True if they use TLS. Either all or none must, so that no traffic is unencrypted by accident.
    pub(super) fn tls(&self, fields: &Mapping<'_>, report: &mut MistakeReport) -> bool {
        let tls = self.urls.iter().filter(|url| url.tls).count();
        if tls > 0 && tls < self.urls.len() {
            self.report(fields, report, "some are redis:// and some rediss://; all of them must be the same");
        }
        tls > 0
    }

    /// Returns the credentials in the addresses.
    pub(super) fn login(&self, fields: &Mapping<'_>, report: &mut MistakeReport) -> Option<Login> {
        let mut logins = self.urls.iter().filter_map(|url| url.login.as_ref());
        let first = logins.next()?;
        if logins.any(|login| login != first) {
            self.report(fields, report, "they name different users or passwords; Weir has one");
        }
        Some(first.clone())
    }

    /// Returns the database in the addresses.
    pub(super) fn database(&self, fields: &Mapping<'_>, report: &mut MistakeReport) -> Option<u32> {
        let mut named = self.urls.iter().filter_map(|url| url.database);
        let first = named.next()?;
        if named.any(|other| other != first) {
            self.report(fields, report, "they name different databases; Weir has one");
        }
        Some(first)
    }

    /// True if one is a Unix socket.
    pub(super) fn has_socket(&self) -> bool {
        self.urls.iter().any(|url| url.bare.starts_with("unix:"))
    }

    /// Returns the addresses without credentials.
    pub(super) fn bare(self) -> Vec<String> {
        self.urls.into_iter().map(|url| url.bare).collect()
    }
}

fn wrong_count(count: usize) -> Option<String> {
    match count {
        0 => Some("names no address; give at least one, such as redis://127.0.0.1:6379".to_owned()),
        count if count > MAX_NODES => Some(format!("has {count} addresses: at most {MAX_NODES}")),
        _ => None,
    }
}

fn once(url: RedisUrl, seen: &mut HashSet<String>) -> Result<RedisUrl, String> {
    if seen.insert(url.bare.clone()) { Ok(url) } else { Err(format!("{} is listed twice", url.bare)) }
}
