//! Dialling a node: TCP, TLS if configured, and our login, with the settings that decisions need.
//!
//! The library dials too, but it reads the system's certificates again for every TLS connection, and
//! shows an unknown server's reply to `AUTH`, which may repeat the password.

mod error;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisResult, Value};
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;
use weir_config::{Login, RedisConfig};

pub(super) use self::error::ConnectError;
use super::topology::Address;
use crate::tls;

/// What lies between drops silent connections without a notice: the system asks the
/// other end often enough to be remembered, and finds out within half a minute if it is gone.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(15))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);

/// A connection to one node. All clones share it; it is closed with the last.
#[derive(Clone)]
pub(super) struct Connection {
    multiplexed: MultiplexedConnection,
    /// Its sender goes when the line has ended.
    ended: watch::Receiver<()>,
    _driver: Arc<Driver>,
}

/// The task that reads and writes. It would wait for a frozen server as long as that is frozen.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// One command and its reply.
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.multiplexed.req_packed_command(command).await?.extract_error()
    }

    /// Commands of which only the last one's reply matters.
    pub(super) async fn send_all(&mut self, commands: &Pipeline) -> RedisResult<Value> {
        let last = commands.len().saturating_sub(1);
        let replies = self.multiplexed.req_packed_commands(commands, last, 1).await?;
        replies.into_iter().next().unwrap_or(Value::Nil).extract_error()
    }

    /// Commands and all of their replies, errors among them.
    pub(super) async fn send_each(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.multiplexed.req_packed_commands(commands, 0, commands.len()).await
    }

    /// Until the server, or what lies between, has closed it.
    pub(super) async fn closed(&self) {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

/// A connection to the node at `address` as `login`, or why there is none.
pub(super) async fn connect(
    address: &Address,
    config: &RedisConfig,
    login: Option<&Login>,
) -> Result<Connection, ConnectError> {
    let within = config.connect_timeout;
    // One bound for all of it: a server may accept and then say nothing.
    let dialled = tokio::time::timeout(within.into(), dial(address, config, login)).await;
    dialled.unwrap_or(Err(ConnectError::Silent { within, tls: config.tls.is_some() }))
}

async fn dial(
    address: &Address,
    config: &RedisConfig,
    login: Option<&Login>,
) -> Result<Connection, ConnectError> {
    let stream = TcpStream::connect((&*address.host, address.port)).await?;
    // A request is one small packet.
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE)?;
    let mut connection = match &config.tls {
        None => over(stream).await?,
        Some(files) => {
            let connector = TlsConnector::from(tls::load(files)?);
            let name = ServerName::try_from(address.host.to_string())?;
            over(connector.connect(name, stream).await.map_err(ConnectError::Handshake)?).await?
        }
    };
    match login {
        Some(login) => log_in(&mut connection, login).await?,
        None => greet(&mut connection).await?,
    }
    Ok(connection)
}

/// No time-out of the library's own, because each call brings its own and a second one that ended
/// earlier would invite a second charge; no commands of its own, because access lists may forbid them.
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
    Ok(Connection { multiplexed, ended, _driver: driver })
}

/// A frozen server accepts connections too: only one that answers is there. What it answers is for the
/// first call to judge, but where nothing will ever pass.
async fn greet(connection: &mut Connection) -> Result<(), ConnectError> {
    match connection.send(&redis::cmd("PING")).await {
        Err(error) if error.code() == Some("NOAUTH") => Err(ConnectError::NoPassword),
        Err(error) if !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
            Err(ConnectError::Refused(error))
        }
        _ => Ok(()),
    }
}

/// The password is the one that its file holds now, so that a new one needs no restart.
async fn log_in(connection: &mut Connection, login: &Login) -> Result<(), ConnectError> {
    let password = password(login).await?;
    let mut command = redis::cmd("AUTH");
    command.arg(login.username.as_deref()).arg(password);
    match connection.send(&command).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.code() {
            Some("WRONGPASS") => ConnectError::WrongPassword,
            Some(code) => ConnectError::LoginRefused { code: code.to_owned() },
            None => ConnectError::Refused(error),
        }),
    }
}

/// Read apart from the runtime: a file of a volume that hangs must not hold decisions up.
async fn password(login: &Login) -> Result<String, ConnectError> {
    let secret = login.password.clone();
    let read = tokio::task::spawn_blocking(move || secret.read().map(Cow::into_owned)).await?;
    Ok(read?)
}
