//! The `store.redis` section: addresses, credentials, TLS and timeouts.

use weir_core::key::{Namespace, Placements};

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::given::Outside;
use super::login::{self, login};
use super::nodes::Nodes;
use super::overrides::ConfigOverrides;
use super::report_given::report_given;
use super::secret::missing;
use super::table::{RedisConfig, redis as redis_keys, store as store_keys};
use super::{ClientFiles, Identity, Sentinel, Topology};

/// Reads the section, with the settings that override it.
pub(super) fn redis(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    namespace: Namespace,
    report: &mut MistakeReport,
) -> RedisConfig {
    let nodes = Nodes::read(&mut fields, overrides.given.get(&store_keys::STORE), report);
    let redis = RedisConfig::read(&mut fields, &overrides.given, report);
    let topology = topology(&mut fields, overrides, &nodes, report);
    let own = login(&mut fields, &login::OWN, overrides, report);
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
    let database = database(&mut fields, &redis, (&nodes, topology), overrides, report);
    if nodes.has_socket() && topology.is_some_and(|topology| topology != Topology::Single) {
        nodes.report(&fields, report, "a Unix socket is for `topology: single` only");
    }
    let shards = shards(&mut fields, topology, overrides, report);
    let (tls, check_host_name) = tls(&mut fields, &nodes, overrides, report);
    let sentinel = sentinel(&mut fields, topology, overrides, report);
    fields.finish(report);
    RedisConfig {
        namespace,
        placements: shards.map_or_else(Placements::default, Placements::among),
        nodes: nodes.bare(),
        topology: topology.unwrap_or_default(),
        login: own.or(named),
        tls,
        check_host_name,
        database,
        sentinel,
        ..redis
    }
}

/// Reads the topology. `None` after a mistake, so that the default does not cause follow-up mistakes.
fn topology(
    fields: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    nodes: &Nodes<'_>,
    report: &mut MistakeReport,
) -> Option<Topology> {
    let outside = overrides.given.get(&redis_keys::TOPOLOGY.outside);
    let given = outside.text.is_some() || fields.take("topology").is_some();
    let chosen = fields.setting(&redis_keys::TOPOLOGY, &overrides.given, report);
    let chosen = if given { chosen? } else { redis_keys::TOPOLOGY.default };
    if chosen == Topology::Single && nodes.count() > 1 {
        let reason = format!(
            "{} addresses are given, but `topology: single` has one; say `topology: cluster` if they are \
             one cluster",
            nodes.count()
        );
        let given =
            [outside, overrides.given.get(&store_keys::STORE)].into_iter().find(|given| given.text.is_some());
        match given {
            Some(given) => given.report(&fields.path_of("topology"), report, reason),
            None => fields.report("nodes", report, reason),
        }
    }
    Some(chosen)
}

/// Returns the database: the setting's, or that of the addresses.
fn database(
    fields: &mut Mapping<'_>,
    redis: &RedisConfig,
    (nodes, topology): (&Nodes<'_>, Option<Topology>),
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> u32 {
    let outside = overrides.given.get(&Outside::Flag("redis_database"));
    let given = outside.text.is_some() || fields.take("database").is_some();
    let named = nodes.database(fields, report);
    let mistake = |report: &mut MistakeReport, reason: &str| match (given, outside.text) {
        (true, Some(_)) => outside.report(&fields.path_of("database"), report, reason.to_owned()),
        (true, None) => fields.report("database", report, reason),
        _ => nodes.report(fields, report, reason),
    };
    match named {
        Some(_) if topology == Some(Topology::Sentinel) => {
            nodes.report(
                fields,
                report,
                "the addresses are sentinels', which have no databases: write `database`",
            );
        }
        Some(named) if given && named != redis.database => {
            mistake(report, "the addresses name another database");
        }
        _ => {}
    }
    let database = if given { redis.database } else { named.unwrap_or_default() };
    if database != 0 && topology == Some(Topology::Cluster) {
        mistake(report, &format!("{database} is not possible: a cluster has only database 0"));
    }
    database
}

/// Reads the number of shards of the cluster, if it is given.
fn shards(
    fields: &mut Mapping<'_>,
    topology: Option<Topology>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<u16> {
    let given = fields.take("shards").is_some();
    let shards = fields.value(redis_keys::SHARDS, &overrides.given, report);
    if given && topology.is_some_and(|topology| topology != Topology::Cluster) {
        fields.report("shards", report, "is for `topology: cluster` only");
    }
    shards
}

/// Reads the certificate files, if the addresses use TLS. They are validated now, so that a mistake is reported at
/// startup; every connection reads them again.
fn tls(
    fields: &mut Mapping<'_>,
    nodes: &Nodes<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> (Option<ClientFiles>, bool) {
    let wanted = nodes.tls(fields, report);
    let mut section = fields.section("tls", report);
    let before = report.len();
    let ca_file = section.value(redis_keys::CA_FILE, &overrides.given, report);
    let cert_file = section.value(redis_keys::CERT_FILE, &overrides.given, report);
    let key_file = section.value(redis_keys::KEY_FILE, &overrides.given, report);
    let check_host_name = section.value(redis_keys::CHECK_HOST_NAME, &overrides.given, report);
    let given = section.is_present()
        || !check_host_name
        || ca_file.is_some()
        || cert_file.is_some()
        || key_file.is_some();
    if given && !wanted && nodes.count() > 0 {
        fields.report("tls", report, "the addresses are not encrypted: write rediss:// for TLS");
    }
    let files = [("ca_file", &ca_file), ("cert_file", &cert_file), ("key_file", &key_file)];
    let files = files.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)));
    let missing: Vec<(&str, String)> =
        files.filter_map(|(name, path)| Some((name, missing(path)?))).collect();
    let wrong = |name: &str, reason: &str, section: &Mapping<'_>, report: &mut MistakeReport| {
        let outside = [redis_keys::CA_FILE, redis_keys::CERT_FILE, redis_keys::KEY_FILE];
        let outside = outside.into_iter().find(|entry| entry.key == name).map(|entry| entry.outside);
        report_given((name, &outside.unwrap_or(Outside::No)), reason, section, overrides, report);
    };
    let identity = match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Some(Identity { cert_file, key_file }),
        (None, None) => None,
        (Some(_), None) => {
            wrong("cert_file", "has no `key_file`", &section, report);
            None
        }
        (None, Some(_)) => {
            wrong("key_file", "has no `cert_file`", &section, report);
            None
        }
    };
    let files = ClientFiles { ca_file, identity };
    if wanted && report.len() == before {
        for (name, reason) in &missing {
            report.missing(|report| wrong(name, reason, &section, report));
        }
        if missing.is_empty()
            && let Some(check) = overrides.tls_check
            && let Err(error) = check(&files)
        {
            wrong(error.file, &error.reason, &section, report);
        }
    }
    section.finish(report);
    (wanted.then_some(files), check_host_name)
}

/// Reads the settings of the sentinels, if there are any.
fn sentinel(
    fields: &mut Mapping<'_>,
    topology: Option<Topology>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<Sentinel> {
    let outside = overrides.given.get(&redis_keys::MASTER_NAME.outside);
    let given = outside.text.is_some() || fields.take("master_name").is_some();
    let master_name = fields.value(redis_keys::MASTER_NAME, &overrides.given, report);
    let login = login(fields, &login::SENTINEL, overrides, report);
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

impl RedisConfig {
    /// Assumed number of nodes of a cluster, however many seeds are configured.
    const CLUSTER_NODES: usize = 16;

    /// Returns the number of open files that the connections of `workers` workers need. Each worker has one to every
    /// node, and so has the monitor; a new one may be opened before the one that it replaces is closed. Besides, each
    /// worker has one timer for calls in flight, and one for callers that wait for the next call.
    #[must_use]
    pub fn open_files(&self, workers: usize) -> usize {
        let nodes = match self.topology {
            Topology::Single | Topology::Sentinel => self.nodes.len(),
            Topology::Cluster => self.nodes.len().max(Self::CLUSTER_NODES),
        };
        2 * (workers + 1) * nodes + 2 * workers
    }
}
