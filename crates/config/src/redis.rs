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

/// The section while it is read.
struct RedisReader<'r, 't> {
    fields: Mapping<'t>,
    overrides: &'r ConfigOverrides,
    report: &'r mut MistakeReport,
    nodes: Nodes<'r>,
    /// The topology; `None` after a mistake, so that the default does not cause follow-up mistakes.
    topology: Option<Topology>,
}

/// Reads the section, with the settings that override it.
pub(super) fn redis(
    mut fields: Mapping<'_>,
    overrides: &ConfigOverrides,
    namespace: Namespace,
    report: &mut MistakeReport,
) -> RedisConfig {
    let nodes = Nodes::read(&mut fields, overrides.given.get(&store_keys::STORE), report);
    let redis = RedisConfig::read(&mut fields, &overrides.given, report);
    let mut reader = RedisReader { fields, overrides, report, nodes, topology: None };
    reader.topology = reader.topology();
    let topology = reader.topology;
    let own = login(&mut reader.fields, &login::OWN, overrides, reader.report);
    let named = reader.nodes.login(&reader.fields, reader.report);
    if named.is_some() && own.is_some() {
        reader.report_nodes("they name a user or password, and `username` or `password` is set too");
    }
    if named.is_some() && topology == Some(Topology::Sentinel) {
        reader.report_nodes(
            "the addresses are sentinels': write `username` and `password` for Redis itself, and \
             `sentinel_username` and `sentinel_password` for them",
        );
    }
    let database = reader.database(redis.database);
    if reader.nodes.has_socket() && topology.is_some_and(|topology| topology != Topology::Single) {
        reader.report_nodes("a Unix socket is for `topology: single` only");
    }
    let shards = reader.shards();
    let (tls, check_host_name) = reader.tls();
    let sentinel = reader.sentinel();
    reader.fields.finish(reader.report);
    RedisConfig {
        namespace,
        placements: shards.map_or_else(Placements::default, Placements::among),
        nodes: reader.nodes.bare(),
        topology: topology.unwrap_or_default(),
        login: own.or(named),
        tls,
        check_host_name,
        database,
        sentinel,
        ..redis
    }
}

impl RedisReader<'_, '_> {
    /// Reports a mistake of the addresses.
    fn report_nodes(&mut self, reason: &str) {
        self.nodes.report(&self.fields, self.report, reason);
    }

    /// Reads the topology.
    fn topology(&mut self) -> Option<Topology> {
        let given = &self.overrides.given;
        let outside = given.get(&redis_keys::TOPOLOGY.outside);
        let is_given = outside.text.is_some() || self.fields.take("topology").is_some();
        let chosen = self.fields.setting(&redis_keys::TOPOLOGY, given, self.report);
        let chosen = if is_given { chosen? } else { redis_keys::TOPOLOGY.default };
        let count = self.nodes.count();
        if chosen == Topology::Single && count > 1 {
            let reason = format!(
                "{count} addresses are given, but `topology: single` has one; say `topology: cluster` if they are \
                 one cluster"
            );
            let given = [outside, given.get(&store_keys::STORE)].into_iter().find(|it| it.text.is_some());
            match given {
                Some(given) => given.report(&self.fields.path_of("topology"), self.report, reason),
                None => self.fields.report("nodes", self.report, reason),
            }
        }
        Some(chosen)
    }

    /// Returns the database: the setting's, which is `set`, or that of the addresses.
    fn database(&mut self, set: u32) -> u32 {
        let outside = self.overrides.given.get(&Outside::Flag("redis_database"));
        let given = outside.text.is_some() || self.fields.take("database").is_some();
        let named = self.nodes.database(&self.fields, self.report);
        let mistake = |reader: &mut Self, reason: &str| match (given, outside.text) {
            (true, Some(_)) => {
                outside.report(&reader.fields.path_of("database"), reader.report, reason.to_owned());
            }
            (true, None) => reader.fields.report("database", reader.report, reason),
            _ => reader.report_nodes(reason),
        };
        match named {
            Some(_) if self.topology == Some(Topology::Sentinel) => {
                self.report_nodes("the addresses are sentinels', which have no databases: write `database`");
            }
            Some(named) if given && named != set => mistake(self, "the addresses name another database"),
            _ => {}
        }
        let database = if given { set } else { named.unwrap_or_default() };
        if database != 0 && self.topology == Some(Topology::Cluster) {
            mistake(self, &format!("{database} is not possible: a cluster has only database 0"));
        }
        database
    }

    /// Reads the number of shards of the cluster, if it is given.
    fn shards(&mut self) -> Option<u16> {
        let given = self.fields.take("shards").is_some();
        let shards = self.fields.value(redis_keys::SHARDS, &self.overrides.given, self.report);
        if given && self.topology.is_some_and(|topology| topology != Topology::Cluster) {
            self.fields.report("shards", self.report, "is for `topology: cluster` only");
        }
        shards
    }

    /// Reads the certificate files, if the addresses use TLS. They are validated now, so that a mistake is reported at
    /// startup; every connection reads them again.
    fn tls(&mut self) -> (Option<ClientFiles>, bool) {
        let wanted = self.nodes.tls(&self.fields, self.report);
        let (overrides, report) = (self.overrides, &mut *self.report);
        let mut section = self.fields.section("tls", report);
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
        if given && !wanted && self.nodes.count() > 0 {
            self.fields.report("tls", report, "the addresses are not encrypted: write rediss:// for TLS");
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
    fn sentinel(&mut self) -> Option<Sentinel> {
        let (fields, overrides, report) = (&mut self.fields, self.overrides, &mut *self.report);
        let outside = overrides.given.get(&redis_keys::MASTER_NAME.outside);
        let given = outside.text.is_some() || fields.take("master_name").is_some();
        let master_name = fields.value(redis_keys::MASTER_NAME, &overrides.given, report);
        let login = login(fields, &login::SENTINEL, overrides, report);
        if self.topology != Some(Topology::Sentinel) {
            if self.topology.is_some() && (given || login.is_some()) {
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
