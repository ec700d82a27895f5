//! Master discovery: a sentinel names the master, and the server itself must confirm it.
//!
//! A partitioned sentinel still names the old master, and a master that was just demoted still accepts connections.
//! Only a server whose `ROLE` is master gets decisions.

use redis::Value;

use super::Watcher;
use crate::redis::connect::{Connection, RedisPeer, connect};
use crate::redis::topology::{Address, SlotMap};

/// Queries one sentinel for the master, and makes it the owner of every slot.
///
/// The sentinel that led a failover knows of it seconds before the others do, so after an error the watcher queries
/// the next one at once. An address that failed is not tried again for each sentinel.
pub(super) async fn ask(watcher: &mut Watcher<'_>, sentinel: &mut Connection) -> Result<(), String> {
    let address = named(watcher, sentinel).await?;
    if watcher.no_master.as_ref() == Some(&address) {
        return Err(format!("it names {address} as the master, which does not answer as one"));
    }
    match verify(watcher, &address).await {
        Ok(connection) => {
            watcher.context.topology.replace(SlotMap::of_one(address.clone()));
            watcher.master = Some((address, connection));
            Ok(())
        }
        Err(why) => {
            watcher.no_master = Some(address.clone());
            Err(format!("it names {address} as the master: {why}"))
        }
    }
}

/// Returns a connection to the server at `address`, if it is a master and runs decisions.
async fn verify(watcher: &mut Watcher<'_>, address: &Address) -> Result<Connection, String> {
    let mut connection = match watcher.master.take().filter(|(known, _)| known == address) {
        Some((_, connection)) => connection,
        None => connect(address, watcher.context, RedisPeer::Redis).await?,
    };
    let role = watcher.ask_for(&mut connection, &redis::cmd("ROLE")).await?;
    if !is_master(&role) {
        return Err("it is a replica; the sentinels have not agreed yet".to_owned());
    }
    watcher.decides(&mut connection).await?;
    Ok(connection)
}

async fn named(watcher: &Watcher<'_>, sentinel: &mut Connection) -> Result<Address, String> {
    let name = watcher.context.config.sentinel.as_ref().map(|sentinel| sentinel.master_name.as_str());
    let name = name.ok_or("no name of a master is configured")?;
    let reply =
        watcher.ask_for(sentinel, redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name)).await?;
    address_in(&reply).ok_or_else(|| format!("the sentinel knows no master {name:?}"))
}

fn address_in(reply: &Value) -> Option<Address> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(host), Value::BulkString(port)] = parts.as_slice() else { return None };
    let (host, port) = (std::str::from_utf8(host).ok()?, std::str::from_utf8(port).ok()?);
    Some(Address::new(host, port.parse().ok()?))
}

fn is_master(role: &Value) -> bool {
    let Value::Array(parts) = role else { return false };
    matches!(parts.first(), Some(Value::BulkString(role)) if role == b"master")
}
