//! `weir check --redis-acl`: the line that gives Weir's user on Redis all rights that a configuration needs.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_config::{Checked, Config, RedisConfig, StoreConfig};
use weir_core::algorithm::EngineKind;
use weir_node::app;
use weir_store::redis::acl_line;
use weir_store::scripts::Uses;

use super::super::settings::no_overrides;
use super::super::{print, printed, say};
use super::envoy::{self, EnvoyArgs};
use crate::features::FEATURES;

/// Prints the line, and nothing else, to standard output.
pub(super) fn run(paths: &[PathBuf], of_envoy: &EnvoyArgs) -> ExitCode {
    match line(paths, of_envoy) {
        Ok((line, notes)) => {
            notes.iter().for_each(|note| say(&format!("note: {note}")));
            printed(print(&format!("{line}\n")))
        }
        Err(errors) => {
            errors.iter().for_each(|error| say(error));
            ExitCode::FAILURE
        }
    }
}

fn line(paths: &[PathBuf], of_envoy: &EnvoyArgs) -> Result<(String, Vec<String>), Vec<String>> {
    let Checked { config, sections, .. } = Config::check_all(paths, &no_overrides());
    let mut config = config.map_err(|errors| vec![errors.to_string()])?;
    let StoreConfig::Redis(redis) = config.store.clone() else {
        return Err(vec!["error: this configuration has no `store.redis`, so there is no user".to_owned()]);
    };
    let rules = envoy::part(&sections, of_envoy).map_err(|errors| vec![errors])?;
    // Such limits are not in files, and may be of any algorithm.
    let is_open = config.rules.inline_limits().is_some() || envoy::is_open(&sections);
    let uses = app::uses(&mut config, rules, FEATURES).map_err(|error| vec![error.to_string()])?;
    let all = is_open.then(|| EngineKind::ALL.into_iter().collect::<Uses>());
    Ok((acl_line(&redis, &uses.and(&all.unwrap_or_default())), notes(&redis)))
}

/// Returns the notes on rights that the line leaves to the reader.
fn notes(redis: &RedisConfig) -> Vec<String> {
    let named = redis.login.as_ref().is_some_and(|login| login.username.is_some());
    let mut notes = vec!["a new user also needs a password: ACL SETUSER NAME >PASSWORD".to_owned()];
    if !named {
        notes.push("`store.redis.username` is not set: Weir logs in as `default` until it is".to_owned());
    }
    notes
}
