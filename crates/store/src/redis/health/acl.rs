//! The line that gives a Redis user all rights that a configuration needs.

use weir_config::{RedisConfig, Topology};

use super::rights::{self, specs};
use super::rules::COMPARISON;
use crate::redis::decisions::DECISIONS;
use crate::scripts::Uses;

/// The user where the configuration names none. Weir logs in as `default` then, whose rights this line must not change.
const USER: &str = "weir";

/// Returns the `ACL SETUSER` of a user who may do what `uses` needs on `config`, and nothing else. It sets no password.
pub fn acl_line(config: &RedisConfig, uses: &Uses) -> String {
    let user = config.login.as_ref().and_then(|login| login.username.as_deref()).unwrap_or(USER);
    // Probes of nodes write plain values whatever is in use.
    let besides = [&DECISIONS, &COMPARISON];
    let rights = rights::needed(specs(uses).chain(besides));
    let of_topology = match config.topology {
        Topology::Single => "",
        Topology::Sentinel => " +role",
        Topology::Cluster => " +cluster|slots +cluster|countkeysinslot +asking",
    };
    let of_database = if config.database == 0 { "" } else { " +select" };
    format!("ACL SETUSER {user} on ~{}:* +ping +info {rights}{of_topology}{of_database}", config.namespace)
}
