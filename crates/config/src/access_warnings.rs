//! Rules, tokens and keys that are valid, and probably not meant: `weir check` tells of them.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;

use super::authorize::{AuthorizeRule, ListEntry};
use super::callers::CallerPattern;
use super::rights::AccessRight;
use super::tokens::read_tokens;
use super::values::quote;
use super::{Config, TlsConfig};

/// Bits of a file's mode with which others than the owner and the group read it.
const READABLE_BY_OTHERS: u32 = 0o004;

/// Begins the name of a caller with a token.
const TOKEN: &str = "token:";

impl Config {
    /// Returns what in the rules of access is probably not meant, a line each.
    #[must_use]
    pub fn access_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.has_identity() && self.authorize.is_none() {
            warnings.push(
                "the server has identity and no `authorize`: every caller with a credential may do everything but \
                 `control`; write rules, or one that says so"
                    .to_owned(),
            );
        }
        let tokens = self.tokens();
        for rule in self.authorize.iter().flatten() {
            let line = rule.place.line;
            warnings.extend(
                self.of_rule(rule, tokens.as_ref()).into_iter().map(|it| format!("line {line}: {it}")),
            );
        }
        warnings.extend(self.readable_keys());
        warnings
    }

    /// The names of tokens; `None` if there are no tokens, or the file has mistakes.
    fn tokens(&self) -> Option<HashSet<Box<str>>> {
        let path = self.server.identity.as_ref()?.tokens_file.as_deref()?;
        Some(read_tokens(path).ok()?.into_iter().map(|token| token.name).collect())
    }

    fn of_rule(&self, rule: &AuthorizeRule, tokens: Option<&HashSet<Box<str>>>) -> Vec<String> {
        let mut warnings = Vec::new();
        for caller in &rule.callers {
            match caller {
                CallerPattern::Exact(name) => {
                    if let (Some(token), Some(tokens)) = (name.strip_prefix(TOKEN), tokens)
                        && !tokens.contains(token)
                    {
                        warnings.push(format!("{} is no name of `tokens_file`", quote(name)));
                    }
                    if &**name == "anonymous" && rule.may.has(AccessRight::Control) {
                        warnings.push(
                            "`anonymous` has `control`: whoever reaches the port can change every limit"
                                .to_owned(),
                        );
                    }
                }
                CallerPattern::Prefix(prefix) => {
                    if let (Some(begin), Some(tokens)) = (prefix.strip_prefix(TOKEN), tokens)
                        && !tokens.iter().any(|token| token.starts_with(begin))
                    {
                        warnings
                            .push(format!("no name of `tokens_file` fits {}", quote(&format!("{prefix}*"))));
                    }
                }
            }
        }
        for entry in rule.strategies.iter().flatten().filter(|entry| !self.has_strategy(entry)) {
            let shown = match entry {
                ListEntry::Exact(name) => quote(name),
                ListEntry::Prefix(prefix) => quote(&format!("{prefix}*")),
                ListEntry::Caller => continue,
            };
            warnings.push(format!("no strategy fits {shown} of `strategies`"));
        }
        if rule.may.has(AccessRight::Usage) && rule.resources.is_some() && rule.consumers.is_some() {
            warnings.push(
                "`usage` with `resources` and `consumers` answers nothing: totals name no consumer, and lists of \
                 consumers no resource; write two rules"
                    .to_owned(),
            );
        }
        warnings
    }

    /// True if a configured strategy is in the list. `inline` stands for numbers in requests.
    fn has_strategy(&self, entry: &ListEntry) -> bool {
        let names = || self.rules.strategies().iter().map(|strategy| strategy.name()).chain(["inline"]);
        match entry {
            ListEntry::Exact(name) => names().any(|known| *known == **name),
            ListEntry::Prefix(prefix) => names().any(|known| known.starts_with(&**prefix)),
            ListEntry::Caller => true,
        }
    }

    /// Private keys that others on this machine can read.
    fn readable_keys(&self) -> Vec<String> {
        let ports = [
            ("server.tls", &self.server.tls),
            ("server.admin_tls", &self.server.admin_tls),
            ("server.control_tls", &self.server.control_tls),
        ];
        let keys = ports.into_iter().filter_map(|(section, tls)| {
            let TlsConfig { key_file, .. } = tls.as_ref()?;
            let mode = std::fs::metadata(key_file).ok()?.permissions().mode();
            (mode & READABLE_BY_OTHERS != 0).then(|| {
                let path = key_file.display();
                format!(
                    "{section}.key_file: {path} has mode {:04o}, so others can read it: chmod o-r {path}",
                    mode & 0o7777
                )
            })
        });
        keys.collect()
    }
}
