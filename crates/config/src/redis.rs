//! The `store.redis` section: where Redis is, who we are to it, and how long we wait.

use weir_core::key::{MAX_SHARDS, Namespace, Placements};
use weir_units::Micros;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::login::{self, login};
use super::nodes::Nodes;
use super::overrides::ConfigOverrides;
use super::quantities::duration_within;
use super::secret::missing;
use super::values::{Scalar, boolean, choice, integer_within, text_within};
use super::{ClientFiles, Identity, RedisConfig, Sentinel, Topology};

const SHORTEST_WAIT: Micros = Micros::from_millis(1);
const LONGEST_WAIT: Micros = Micros::from_secs(60);

/// The most decisions that may wait for one node. Each holds memory, and its caller's patience.
pub(super) const MAX_WAITING: usize = 1_000_000;

/// The longest name of a master, in bytes.
pub(super) const MAX_NAME: usize = 256;

/// Settings that mean nothing to the memory store.
pub(super) const SETTINGS: [&str; 14] = [
    "topology",
    "deadline",
    "connect_timeout",
    "max_waiting",
    "redis_username",
    "redis_password",
    "redis_password_file",
    "redis_ca_file",
    "redis_cert_file",
    "redis_key_file",
    "redis_master_name",
    "redis_sentinel_username",
    "redis_sentinel_password",
    "redis_sentinel_password_file",
];

/// The section with the settings that go before it.
pub(super) fn redis(
    mut fields: Mapping<'_>,
    settings: &ConfigOverrides,
    namespace: Namespace,
    report: &mut MistakeReport,
) -> RedisConfig {
    let default = RedisConfig::default();
    let nodes = Nodes::read(&mut fields, settings.of("store"), report);
    let wait = |s: Scalar<'_>| duration_within(s, SHORTEST_WAIT, LONGEST_WAIT);
    let waiting = |s: Scalar<'_>| integer_within(s, 1, MAX_WAITING);
    let mut chosen = |name, report: &mut MistakeReport| fields.choose(name, settings.of(name), report, wait);
    let deadline = chosen("deadline", report).unwrap_or(default.deadline);
    let connect_timeout = chosen("connect_timeout", report).unwrap_or(default.connect_timeout);
    let max_waiting = fields.choose("max_waiting", settings.of("max_waiting"), report, waiting);
    let age = |s: Scalar<'_>| duration_within(s, Micros::ZERO, LONGEST_WAIT);
    let denials_max_age = fields.read("denials_max_age", report, age);
    let coalesce = fields.read("coalesce", report, boolean);
    let topology = topology(&mut fields, settings, &nodes, report);
    let own = login(&mut fields, &login::OWN, settings, report);
    let named = nodes.login(&fields, report);
    if named.is_some() && own.is_some() {
        nodes.report(
            &fields,
            report,
            "they name a user or password, and `username` or `password` is set too",
        );
    }
    if named.is_some() && topology == Some(Topology::Sentinel) {
        let reason = "the addresses are sentinels': write `username` and `password` for Redis itself, and \
                      `sentinel_username` and `sentinel_password` for them";
        nodes.report(&fields, report, reason);
    }
    let shards = shards(&mut fields, topology, report);
    let tls = tls(&mut fields, &nodes, settings, report);
    let sentinel = sentinel(&mut fields, topology, settings, report);
    fields.finish(report);
    RedisConfig {
        namespace,
        placements: shards.map_or_else(Placements::default, Placements::among),
        nodes: nodes.bare(),
        topology: topology.unwrap_or(default.topology),
        deadline,
        connect_timeout,
        max_waiting: max_waiting.unwrap_or(default.max_waiting),
        denials_max_age: denials_max_age.unwrap_or(default.denials_max_age),
        coalesce: coalesce.unwrap_or(default.coalesce),
        login: own.or(named),
        tls,
        sentinel,
    }
}

/// The topology; `None` if it is mistaken, which is reported once and not taken for the default one.
fn topology(
    fields: &mut Mapping<'_>,
    settings: &ConfigOverrides,
    nodes: &Nodes<'_>,
    report: &mut MistakeReport,
) -> Option<Topology> {
    let words =
        [("single", Topology::Single), ("cluster", Topology::Cluster), ("sentinel", Topology::Sentinel)];
    let setting = settings.of("topology");
    let given = setting.text.is_some() || fields.take("topology").is_some();
    let chosen = fields.choose("topology", setting, report, |s| choice(s, &words));
    let chosen = if given { chosen? } else { Topology::Single };
    if chosen == Topology::Single && nodes.count() > 1 {
        let reason = format!(
            "{} addresses are given, but `topology: single` has one; say `topology: cluster` if they are \
             one cluster",
            nodes.count()
        );
        let setting = [setting, settings.of("store")].into_iter().find(|s| s.text.is_some());
        match setting {
            Some(setting) => setting.report(&fields.path_of("topology"), report, reason),
            None => fields.report("nodes", report, reason),
        }
    }
    Some(chosen)
}

/// How many shards the cluster has, where somebody says so.
fn shards(fields: &mut Mapping<'_>, topology: Option<Topology>, report: &mut MistakeReport) -> Option<u16> {
    let within = |s: Scalar<'_>| integer_within(s, 1, MAX_SHARDS.into());
    let given = fields.take("shards").is_some();
    let shards = fields.read("shards", report, within);
    if given && topology.is_some_and(|topology| topology != Topology::Cluster) {
        fields.report("shards", report, "is for `topology: cluster` only");
    }
    shards.and_then(|shards| shards.try_into().ok())
}

/// The certificates, where the addresses ask for TLS. The files are read, so that a mistake in them is
/// reported now; every connection reads them again.
fn tls(
    fields: &mut Mapping<'_>,
    nodes: &Nodes<'_>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<ClientFiles> {
    let wanted = nodes.tls(fields, report);
    let mut section = fields.section("tls", report);
    let mut file =
        |name, setting, report: &mut MistakeReport| section.choose_path(name, settings.of(setting), report);
    let before = report.len();
    let ca_file = file("ca_file", "redis_ca_file", report);
    let cert_file = file("cert_file", "redis_cert_file", report);
    let key_file = file("key_file", "redis_key_file", report);
    let given = section.is_present() || ca_file.is_some() || cert_file.is_some() || key_file.is_some();
    if given && !wanted && nodes.count() > 0 {
        fields.report("tls", report, "the addresses are not encrypted: write rediss:// for TLS");
    }
    let files = [("ca_file", &ca_file), ("cert_file", &cert_file), ("key_file", &key_file)];
    let files = files.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)));
    let missing: Vec<(&str, String)> =
        files.filter_map(|(name, path)| Some((name, missing(path)?))).collect();
    let identity = match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Some(Identity { cert_file, key_file }),
        (None, None) => None,
        (Some(_), None) => {
            section.report("cert_file", report, "has no `key_file`");
            None
        }
        (None, Some(_)) => {
            section.report("key_file", report, "has no `cert_file`");
            None
        }
    };
    let files = ClientFiles { ca_file, identity };
    if wanted && report.len() == before {
        for (name, reason) in &missing {
            report.missing(|report| section.report(name, report, reason));
        }
        if missing.is_empty()
            && let Some(check) = settings.tls_check
            && let Err(error) = check(&files)
        {
            section.report(error.file, report, error.reason);
        }
    }
    section.finish(report);
    wanted.then_some(files)
}

/// What the sentinels are asked, where there are some.
fn sentinel(
    fields: &mut Mapping<'_>,
    topology: Option<Topology>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<Sentinel> {
    let name = |s: Scalar<'_>| text_within(s, MAX_NAME);
    let setting = settings.of("redis_master_name");
    let given = setting.text.is_some() || fields.take("master_name").is_some();
    let master_name = fields.choose("master_name", setting, report, name);
    let login = login(fields, &login::SENTINEL, settings, report);
    if topology != Some(Topology::Sentinel) {
        if topology.is_some() && (given || login.is_some()) {
            let field = if given { "master_name" } else { "sentinel_password" };
            fields.report(field, report, "is for `topology: sentinel` only");
        }
        return None;
    }
    if !given && fields.is_whole() {
        fields.report("master_name", report, "is missing; name the master as the sentinels do");
    }
    Some(Sentinel { master_name: master_name?, login })
}
