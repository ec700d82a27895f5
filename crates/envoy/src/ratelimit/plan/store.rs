//! The store: `BACKEND_TYPE` and `REDIS_*`.

use weir_config::foreign::quote;

use super::given::RatelimitGiven;
use super::mapped::Mapped;
use super::redis_user::{RedisUser, login};
use super::variables::{VariableEffect, without_secrets};

/// Longest `connect_timeout`, in microseconds.
const LONGEST_TIMEOUT: u64 = 60_000_000;
/// Shortest `connect_timeout`, in microseconds.
const SHORTEST_TIMEOUT: u64 = 1_000;

const TAKES_PRECEDENCE: VariableEffect = VariableEffect::Ignored("WEIR_STORE takes precedence");

/// Maps the variables of the store, unless it is given natively. With a file, its store counts if no address is set.
pub(super) fn store(given: &mut RatelimitGiven, mut mapped: Mapped, has_file: bool) -> Mapped {
    if given.text("BACKEND_TYPE") == Some("memcache") {
        given.wrong("BACKEND_TYPE", "memcache is not supported: Weir counts in Redis; set `redis`");
    }
    if mapped.native.has("store") {
        for line in given.lines() {
            if line.name.starts_with("REDIS_") && matches!(line.effect, VariableEffect::Mapped(_)) {
                given.explain(line.name, TAKES_PRECEDENCE);
            }
        }
        return mapped;
    }
    if has_file && !given.has("REDIS_URL") && !given.has("REDIS_SOCKET_TYPE") {
        return mapped;
    }
    let tls = given.boolean("REDIS_TLS").unwrap_or(false);
    let user = RedisUser::from_given(given, &mapped);
    match addresses(given, tls, user.is_some()) {
        Ok(nodes) => {
            mapped.set("store", "REDIS_URL", nodes.urls.join(","));
            if let Some((name, label)) = nodes.topology {
                mapped.set("topology", label, name);
            }
            if let Some(master) = nodes.master {
                mapped.set("redis_master_name", "REDIS_URL", master);
            }
            let in_address = || nodes.login.map(|login| RedisUser::Text("REDIS_URL", login));
            if let Some(user) = user.or_else(in_address) {
                user.map_to(given, &mut mapped);
            }
        }
        Err(reason) => given.wrong("REDIS_URL", reason),
    }
    if let Some((user, password)) = given.text("REDIS_SENTINEL_AUTH").map(login) {
        mapped.set_some("redis_sentinel_username", "REDIS_SENTINEL_AUTH", user);
        mapped.set("redis_sentinel_password", "REDIS_SENTINEL_AUTH", password);
    }
    for (name, setting) in [
        ("REDIS_TLS_CLIENT_CERT", "redis_cert_file"),
        ("REDIS_TLS_CLIENT_KEY", "redis_key_file"),
        ("REDIS_TLS_CACERT", "redis_ca_file"),
    ] {
        if tls {
            mapped.set_some(setting, name, given.text(name).map(str::to_owned));
        } else if given.has(name) {
            given.explain(name, VariableEffect::Ignored("REDIS_TLS is not true"));
        }
    }
    let skip = "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION";
    match given.boolean(skip) {
        Some(true) if tls => mapped.set("redis_check_host_name", skip, "false"),
        Some(_) if !tls => given.explain(skip, VariableEffect::Ignored("REDIS_TLS is not true")),
        _ => {}
    }
    if let Some(micros) = given.micros("REDIS_TIMEOUT") {
        let micros = micros.clamp(SHORTEST_TIMEOUT, LONGEST_TIMEOUT);
        mapped.set("connect_timeout", "REDIS_TIMEOUT", format!("{micros}us"));
    }
    mapped
}

/// The addresses of Redis in REDIS_URL.
#[derive(Default)]
struct Addresses {
    urls: Vec<String>,
    topology: Option<(&'static str, &'static str)>,
    master: Option<String>,
    login: Option<(Option<String>, String)>,
}

/// Reads the addresses; without the user in them, if another one takes precedence.
fn addresses(given: &RatelimitGiven, tls: bool, has_user: bool) -> Result<Addresses, String> {
    let url = given.text("REDIS_URL").unwrap_or("/var/run/nutcracker/ratelimit.sock");
    let scheme = if tls { "rediss" } else { "redis" };
    match given.text("REDIS_TYPE").unwrap_or("single") {
        "cluster" => {
            let urls = url.split(',').map(|one| with_scheme(one.trim(), scheme)).collect();
            Ok(Addresses { urls, topology: Some(("cluster", "REDIS_TYPE")), ..Addresses::default() })
        }
        "sentinel" => sentinels(url, scheme),
        _ if given.text("REDIS_SOCKET_TYPE").unwrap_or("unix") == "unix" && !url.contains("://") => {
            if tls {
                return Err(
                    "it is a Unix socket, which has no TLS: unset REDIS_TLS, or set REDIS_SOCKET_TYPE=tcp"
                        .to_owned(),
                );
            }
            if !url.starts_with('/') {
                let shown = quote(&without_secrets(url));
                return Err(format!(
                    "{shown} is not the absolute path of a Unix socket; REDIS_SOCKET_TYPE=tcp is for addresses"
                ));
            }
            Ok(Addresses { urls: vec![format!("unix:{url}")], ..Addresses::default() })
        }
        _ => single(url, scheme, has_user),
    }
}

/// `master,host:port,host:port`
fn sentinels(url: &str, scheme: &str) -> Result<Addresses, String> {
    let wrong = || "it must be MASTER,HOST:PORT,HOST:PORT with REDIS_TYPE=SENTINEL".to_owned();
    let (master, nodes) = url.split_once(',').ok_or_else(wrong)?;
    if master.contains("://") || master.trim().is_empty() {
        return Err(wrong());
    }
    let urls = nodes.split(',').map(|one| with_scheme(one.trim(), scheme)).collect();
    let topology = Some(("sentinel", "REDIS_TYPE"));
    Ok(Addresses { urls, topology, master: Some(master.trim().to_owned()), login: None })
}

/// `host:port`, or `redis://[[user]:password@]host[:port][/database][?db=&username=&password=]`
fn single(url: &str, scheme: &str, has_user: bool) -> Result<Addresses, String> {
    let Some((_, rest)) = url.split_once("://") else {
        return Ok(Addresses { urls: vec![with_scheme(url, scheme)], ..Addresses::default() });
    };
    let encrypted = if url.starts_with("rediss://") { "rediss" } else { scheme };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let rest = rest.rsplit_once('@').filter(|_| has_user).map_or(rest, |(_, rest)| rest);
    let parameter = |name: &str| {
        let found = query.split('&').filter_map(|pair| pair.split_once('='));
        found.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
    };
    let address = match parameter("db") {
        Some(database) if !rest.trim_end_matches('/').contains('/') => {
            format!("{encrypted}://{}/{database}", rest.trim_end_matches('/'))
        }
        _ => format!("{encrypted}://{rest}"),
    };
    let login = parameter("password").map(|password| (parameter("username"), password));
    Ok(Addresses { urls: vec![address], login, ..Addresses::default() })
}

fn with_scheme(address: &str, scheme: &str) -> String {
    match address.split_once("://") {
        Some((_, rest)) => format!("{scheme}://{rest}"),
        None => format!("{scheme}://{address}"),
    }
}
