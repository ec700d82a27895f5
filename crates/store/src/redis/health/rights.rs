//! The call that looks for missing ACL rights of all capabilities in use, in one round. `docs/redis.md` lists the rights.

use std::collections::BTreeSet;

use redis::{RedisError, Value};

use crate::redis::connect::Connection;
use crate::redis::decisions;
use crate::redis::lua_files::RIGHTS;
use crate::scripts::{COMMON, Right, ScriptSpec, Uses};

/// The text before the missing rights in a reason.
pub(super) const WITHOUT: &str = "NOPERM this user has no right to ";

const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";

/// A capability, and why the node lacks it, if it does.
pub(super) type FoundCapability = (&'static ScriptSpec, Option<String>);

/// Returns one entry for each capability of `specs`, with all of its missing rights. An error is one of the call itself.
pub(super) async fn check(
    connection: &mut Connection,
    specs: &[&'static ScriptSpec],
    key: &[u8],
) -> Result<Vec<FoundCapability>, RedisError> {
    let tried = rights_of(specs.iter().copied());
    // EVAL instead of EVALSHA, which the charge uses: EVAL is a right, too.
    let mut command = redis::cmd("EVAL");
    command.arg(RIGHTS).arg(1).arg(key);
    for (_, tried) in &tried {
        command.arg(*tried);
    }
    let Value::Array(numbers) = connection.send(&command).await? else { return Ok(Vec::new()) };
    let named = numbers.iter().filter_map(|number| match number {
        Value::Int(number) => tried.get(usize::try_from(*number).ok()?.checked_sub(1)?),
        _ => None,
    });
    let missing: BTreeSet<&str> = named.map(|(name, _)| *name).collect();
    let mut found: Vec<FoundCapability> = Vec::new();
    for spec in specs {
        if found.iter().all(|(known, _)| known.name != spec.name) {
            let own = rights_of(specs.iter().copied().filter(|other| other.name == spec.name));
            let lacks = own.iter().map(|(name, _)| *name).filter(|name| missing.contains(name));
            let lacks = list(lacks);
            found.push((spec, (!lacks.is_empty()).then(|| format!("{WITHOUT}{lacks}"))));
        }
    }
    if let Some(reason) = found.iter_mut().find_map(|(_, lacks)| lacks.as_mut()) {
        // Nothing is exercised without these rights, so the last one would be found when the others are granted.
        let answer = connection.send(redis::cmd("EVALSHA").arg(NO_SCRIPT).arg(0)).await;
        if answer.is_err_and(|error| error.code() == Some("NOPERM")) {
            reason.push_str(" +evalsha");
        }
    }
    Ok(found)
}

/// Returns what decisions need of a node, if any are made, and then what features need.
pub(super) fn specs(uses: &Uses) -> impl Iterator<Item = &'static ScriptSpec> {
    let decisions = uses.decides().then(|| decisions::needed(|engine| uses.has(engine)));
    decisions.into_iter().flatten().chain(uses.features.iter().copied())
}

/// Returns all rights of `specs` but those of keys, in the syntax of `ACL SETUSER`.
pub(super) fn needed(specs: impl Iterator<Item = &'static ScriptSpec>) -> String {
    let rights = rights_of(specs);
    list(["evalsha", "eval"].into_iter().chain(rights.iter().map(|(name, _)| *name)))
}

fn rights_of(specs: impl Iterator<Item = &'static ScriptSpec>) -> Vec<Right> {
    let mut names = BTreeSet::new();
    let all = COMMON.iter().chain(specs.flat_map(|spec| spec.rights));
    all.filter(|(name, _)| names.insert(*name)).copied().collect()
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::Uses;
    use weir_core::algorithm::EngineKind;

    /// Compares with the list of the documentation, in any order.
    #[test]
    fn the_documentation_lists_the_rights_of_decisions() {
        // At run time: the image is built without docs/.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md");
        let document = &*std::fs::read_to_string(path).unwrap();
        let mut lists = document.split('`').filter(|text| text.contains(" +evalsha"));
        let listed: BTreeSet<&str> = lists.next().unwrap().split(' ').skip(1).collect();
        let all: Uses = EngineKind::ALL.into_iter().collect();
        assert_eq!(needed(specs(&all)).split(' ').collect::<BTreeSet<&str>>(), listed);
    }
}
