//! The settings that differ between two configurations.

use super::feature_section::changes as section_changes;
use super::table::{Applies, SettingChange, TlsConfig};
use super::{Config, StoreConfig};

impl Config {
    /// Returns the settings that differ in `next`. Strategies and the rest of the rules are no settings.
    #[must_use]
    pub fn setting_changes(&self, next: &Self) -> Vec<SettingChange> {
        let mut changes = Vec::new();
        self.server.changes(&next.server, "server", &mut changes);
        self.server.limits.changes(&next.server.limits, "server.limits", &mut changes);
        tls_changes("server.tls", (&self.server.tls, &next.server.tls), &mut changes);
        tls_changes("server.control_tls", (&self.server.control_tls, &next.server.control_tls), &mut changes);
        tls_changes("server.admin_tls", (&self.server.admin_tls, &next.server.admin_tls), &mut changes);
        self.store_changes(next, &mut changes);
        self.messages.changes(&next.messages, "messages", &mut changes);
        section_changes(&self.sections, &next.sections, &mut changes);
        let (server, other) = (&self.server, &next.server);
        let whole = [
            ("server.identity", server.identity != other.identity),
            ("server.admin_open", server.admin_open != other.admin_open),
            ("server.admin_hosts", server.admin_hosts != other.admin_hosts),
            ("store.key_secret", self.key_secret != next.key_secret),
            ("store.namespace", self.namespace != next.namespace),
            ("log.decisions", self.decision_log != next.decision_log),
        ];
        let whole = whole.into_iter().filter(|(_, differs)| *differs);
        changes.extend(whole.map(|(path, _)| SettingChange::whole(path, Applies::AtRestart)));
        if self.authorize != next.authorize {
            // Whether calls are checked at all is decided at the start.
            let is_checked = self.has_identity() && next.has_identity();
            let applies = if is_checked { Applies::AtReload } else { Applies::AtRestart };
            changes.push(SettingChange::whole("authorize", applies));
        }
        changes
    }

    fn store_changes(&self, next: &Self, changes: &mut Vec<SettingChange>) {
        let mut whole = |path, differs: bool| {
            if differs {
                changes.push(SettingChange::whole(path, Applies::AtRestart));
            }
        };
        match (&self.store, &next.store) {
            (StoreConfig::Memory(one), StoreConfig::Memory(other)) => {
                one.changes(other, "store.memory", changes);
            }
            (StoreConfig::Redis(one), StoreConfig::Redis(other)) => {
                whole("groups", one.placements != other.placements);
                whole("store.redis.nodes", (&one.nodes, one.topology) != (&other.nodes, other.topology));
                whole("store.redis.login", one.login != other.login);
                whole(
                    "store.redis.tls",
                    (&one.tls, one.check_host_name) != (&other.tls, other.check_host_name),
                );
                whole("store.redis.sentinel", one.sentinel != other.sentinel);
                one.changes(other, "store.redis", changes);
            }
            _ => whole("store", true),
        }
    }
}

fn tls_changes(
    section: &str,
    (one, next): (&Option<TlsConfig>, &Option<TlsConfig>),
    changes: &mut Vec<SettingChange>,
) {
    let (Some(one), Some(next)) = (one, next) else {
        if one != next {
            changes.push(SettingChange::whole(section, Applies::AtRestart));
        }
        return;
    };
    for (key, differs) in
        [("cert_file", one.cert_file != next.cert_file), ("key_file", one.key_file != next.key_file)]
    {
        if differs {
            changes.push(SettingChange::whole(&format!("{section}.{key}"), Applies::AtRestart));
        }
    }
    one.changes(next, section, changes);
    one.client_crl.changes(&next.client_crl, &format!("{section}.client_crl"), changes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConfigOverrides;

    const STRATEGIES: &str =
        "strategies: { s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }\n";

    fn parsed(text: &str) -> Config {
        Config::parse(&format!("{STRATEGIES}{text}"), "weir.yaml", &ConfigOverrides::default()).unwrap()
    }

    #[test]
    fn a_change_is_named_with_both_values_unless_it_may_be_a_secret() {
        let before = parsed("server: { workers: 2 }\nstore: { memory: { budget: 64MiB } }\n");
        let after = parsed(
            "server: { workers: 3, drain_delay: 1s, inline_limits: true }\n\
             store: { key_secret: '00112233445566778899aabbccddeeff' }\n",
        );
        let changes = before.setting_changes(&after);
        let texts: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let expected = [
            "server.workers: 2 -> 3",
            "server.inline_limits: false -> true",
            "server.drain_delay: 5s -> 1s",
            "store.memory.budget: 64MiB -> 512MiB",
            "store.key_secret: changed",
        ];
        assert_eq!(texts, expected);
        let at_reload = changes.iter().filter(|change| change.applies == Applies::AtReload);
        let at_reload: Vec<&str> = at_reload.map(|change| change.path.as_str()).collect();
        assert_eq!(at_reload, ["server.inline_limits"]);
        assert_eq!(before.setting_changes(&before.clone()), []);
        let redis = parsed("store: { redis: { nodes: ['redis://127.0.0.1:6379'] } }\n");
        let changes = before.setting_changes(&redis);
        assert!(changes.iter().any(|change| change.to_string() == "store: changed"), "{changes:?}");
    }
}
