//! Dialling a node, with the settings that decisions need.

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _};

use super::topology::Address;
use crate::config::RedisConfig;

/// A connection to the node at `address`, or why there is none. NODELAY, because a request is one
/// small packet; no time-out of the library's own, because each call brings its own and a second one
/// that ended earlier would invite a second charge.
pub(super) async fn connect(
    address: &Address,
    config: &RedisConfig,
) -> Result<MultiplexedConnection, String> {
    let info = ConnectionAddr::Tcp(address.host.to_string(), address.port)
        .into_connection_info()
        .map_err(|error| error.to_string())?
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let client = Client::open(info).map_err(|error| error.to_string())?;
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(config.connect_timeout.into()))
        .set_response_timeout(None);
    let dialled = client.get_multiplexed_async_connection_with_config(&settings);
    // The library's time-out covers the socket, not a server that accepts and then says nothing.
    match tokio::time::timeout(config.connect_timeout.into(), dialled).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {}", config.connect_timeout)),
    }
}
