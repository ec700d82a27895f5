//! Dials a node: TCP or a Unix socket, TLS if configured, AUTH and SELECT, with the socket options that decisions need.
//!
//! The redis crate can dial too, but it reads the system's certificates again for every TLS connection, and
//! its errors show an unknown server's reply to `AUTH`, which may repeat the password.

mod error;

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisResult, Value};
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;
use weir_config::{Login, RedisConfig};

pub(super) use self::error::ConnectError;
use super::connection_counts::CountedConnection;
use super::context::LinkContext;
use super::fault::as_written;
use super::surroundings::Dialer;
use super::topology::Address;
use crate::tls;

/// TCP keepalive. Middleboxes drop idle connections silently. The probes keep an idle connection alive, and a
/// dead peer is detected within half a minute.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(15))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);

/// A connection to one node. Clones share it; it is closed with the last one.
#[derive(Clone)]
pub(super) struct Connection {
    multiplexed: MultiplexedConnection,
    /// Receiver whose sender is dropped when the connection ends.
    ended: watch::Receiver<()>,
    _driver: Arc<Driver>,
    /// Set when it is logged in; it counts the connection until that is dropped.
    #[allow(dead_code)]
    counted: Option<Arc<CountedConnection>>,
}

/// The connection's I/O task, aborted on drop: with a frozen server it would never end by itself.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.multiplexed.req_packed_command(command).await?.extract_error()
    }

    /// Sends a pipeline, and returns the last command's reply.
    pub(super) async fn send_all(&mut self, commands: &Pipeline) -> RedisResult<Value> {
        let last = commands.len().saturating_sub(1);
        let replies = self.multiplexed.req_packed_commands(commands, last, 1).await?;
        replies.into_iter().next().unwrap_or(Value::Nil).extract_error()
    }

    /// Sends a pipeline, and returns all replies, including error replies.
    pub(super) async fn send_each(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.multiplexed.req_packed_commands(commands, 0, commands.len()).await
    }

    /// True if the server or a middlebox has closed the connection.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.has_changed().is_err()
    }

    /// Resolves when the server or a middlebox has closed the connection.
    pub(super) async fn closed(&self) {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

/// Kind of server at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedisPeer {
    Redis,
    /// A sentinel has a login of its own, and no databases.
    Sentinel,
}

impl RedisPeer {
    fn login(self, config: &RedisConfig) -> Option<&Login> {
        match self {
            Self::Redis => config.login.as_ref(),
            Self::Sentinel => config.sentinel.as_ref()?.login.as_ref(),
        }
    }

    fn database(self, config: &RedisConfig) -> u32 {
        if self == Self::Redis { config.database } else { 0 }
    }
}

/// Opens a connection to the node at `address`.
pub(super) async fn connect(
    address: &Address,
    context: &LinkContext,
    peer: RedisPeer,
) -> Result<Connection, ConnectError> {
    let mut connection = open(address, context, peer).await?;
    connection.counted = Some(context.connections.open());
    Ok(connection)
}

async fn open(address: &Address, context: &LinkContext, peer: RedisPeer) -> Result<Connection, ConnectError> {
    let Some(command) = peer.login(&context.config).and_then(|login| login.password.command()) else {
        return dial_in_time(address, context, peer, None).await;
    };
    // The command has a time of its own: `connect_timeout` is meant for a round trip.
    let passwords = match peer {
        RedisPeer::Redis => &context.passwords.own,
        RedisPeer::Sentinel => &context.passwords.sentinels,
    };
    let password = passwords.get(command).await?;
    let dialled = dial_in_time(address, context, peer, Some(&password.text)).await;
    match dialled {
        Err(error) if error.refuses_password() => {
            passwords.refused(&password).await;
            if password.is_new {
                return Err(error);
            }
            // It has expired. The next one may do.
            let password = passwords.get(command).await?;
            dial_in_time(address, context, peer, Some(&password.text)).await
        }
        other => other,
    }
}

async fn dial_in_time(
    address: &Address,
    context: &LinkContext,
    peer: RedisPeer,
    printed: Option<&str>,
) -> Result<Connection, ConnectError> {
    let within = context.config.connect_timeout;
    // One timeout for all steps: a server may accept the connection and never answer.
    let dialled = tokio::time::timeout(within.into(), dial(address, context, peer, printed)).await;
    dialled.unwrap_or(Err(ConnectError::Silent { within, tls: context.config.tls.is_some() }))
}

async fn dial(
    address: &Address,
    context: &LinkContext,
    peer: RedisPeer,
    printed: Option<&str>,
) -> Result<Connection, ConnectError> {
    let config = &context.config;
    let mut connection = match (&context.surroundings.dialer, address.socket()) {
        (Dialer::Given(dialer), _) => over(dialer.dial(&address.host, address.port).await?).await?,
        (Dialer::Sockets, Some(path)) => over(UnixStream::connect(path).await?).await?,
        (Dialer::Sockets, None) => over_tcp(address, config).await?,
    };
    match peer.login(config) {
        Some(login) => log_in(&mut connection, login, printed).await?,
        None => greet(&mut connection).await?,
    }
    match peer.database(config) {
        0 => {}
        database => select(&mut connection, database).await?,
    }
    Ok(connection)
}

async fn over_tcp(address: &Address, config: &RedisConfig) -> Result<Connection, ConnectError> {
    let stream = TcpStream::connect((&*address.host, address.port)).await?;
    // A request is one small packet.
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE)?;
    let Some(files) = &config.tls else { return over(stream).await };
    let connector = TlsConnector::from(tls::client(files, config.check_host_name)?);
    let name = ServerName::try_from(address.host.to_string())?;
    over(connector.connect(name, stream).await.map_err(ConnectError::Handshake)?).await
}

/// Builds the multiplexed connection. The redis crate's own timeouts are off: each call has its own, and a second,
/// earlier one would invite a second charge. Its own commands are off too, because ACLs may forbid them.
async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Connection, ConnectError> {
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let settings = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let made = MultiplexedConnection::new_with_config(&info, stream, settings).await;
    let (multiplexed, driver) = made.map_err(ConnectError::Refused)?;
    let (end, ended) = watch::channel(());
    let driver = async move {
        driver.await;
        drop(end);
    };
    let driver = Arc::new(Driver(tokio::spawn(driver).abort_handle()));
    Ok(Connection { multiplexed, ended, _driver: driver, counted: None })
}

/// Sends a PING, because a frozen server accepts connections too. An error reply passes, and the first call judges
/// it, unless it is NOAUTH, with which every call would fail.
async fn greet(connection: &mut Connection) -> Result<(), ConnectError> {
    match connection.send(&redis::cmd("PING")).await {
        Err(error) if error.code() == Some("NOAUTH") => Err(ConnectError::NoPassword),
        Err(error) if !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
            Err(ConnectError::Refused(error))
        }
        _ => Ok(()),
    }
}

/// Sends AUTH. The password file is read at each login, so that a rotated password needs no restart.
async fn log_in(
    connection: &mut Connection,
    login: &Login,
    printed: Option<&str>,
) -> Result<(), ConnectError> {
    let (user, password) = match printed {
        Some(printed) => (None, printed.to_owned()),
        None => credentials(login).await?,
    };
    let mut command = redis::cmd("AUTH");
    command.arg(login.username.as_deref().or(user.as_deref())).arg(password);
    match connection.send(&command).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.code() {
            Some("WRONGPASS") => ConnectError::WrongPassword,
            Some(code) => ConnectError::LoginRefused { code: code.to_owned() },
            None => ConnectError::Refused(error),
        }),
    }
}

/// Sends SELECT. In another database than ours, limits would be those of somebody else.
async fn select(connection: &mut Connection, database: u32) -> Result<(), ConnectError> {
    match connection.send(redis::cmd("SELECT").arg(database)).await {
        Ok(_) => Ok(()),
        Err(error) if error.code().is_some() => {
            Err(ConnectError::Database { database, reason: as_written(&error) })
        }
        Err(error) => Err(ConnectError::Refused(error)),
    }
}

/// Reads the password on a blocking thread: a file on a hanging volume must not delay decisions. The file may name the
/// user too.
async fn credentials(login: &Login) -> Result<(Option<String>, String), ConnectError> {
    let secret = login.password.clone();
    let read = move || secret.read_login().map(|(user, password)| (user, password.into_owned()));
    Ok(tokio::task::spawn_blocking(read).await??)
}
