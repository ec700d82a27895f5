//! The listening socket: a TCP port, or a Unix socket and its file.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Once;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use weir_config::ListenAddress;
use weir_grpc::PeerAddress;

use crate::tls::HandshakeSlot;

/// Backlog: connections that may wait to be accepted. The kernel may allow fewer.
const BACKLOG: i32 = 4096;

/// The kernel has no IPv6.
const EAFNOSUPPORT: i32 = 97;
/// No interface has an address of IPv6.
const EADDRNOTAVAIL: i32 = 99;

/// A listening socket.
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix socket, with its file.
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket. It is removed when this is dropped, unless another file has taken its place.
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

pub(super) enum Accepted {
    /// Over TLS it has the place of its handshake.
    Tcp(TcpStream, Option<HandshakeSlot>),
    Unix(UnixStream),
}

impl Listener {
    /// Listens on `address`. The file of a Unix socket gets `mode`. A stale socket file, which no process listens
    /// on, is replaced.
    pub fn bind(address: &ListenAddress, mode: u32) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => listen_tcp(*address).map(Self::Tcp),
            ListenAddress::Unix(path) => {
                remove_if_stale(path)?;
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.bind(&SockAddr::unix(path)?)?;
                let file = SocketFile::new(path)?;
                // The mode is set before the socket listens, so before clients can connect.
                fs::set_permissions(path, Permissions::from_mode(mode))?;
                socket.listen(BACKLOG)?;
                Ok(Self::Unix(socket.into(), file))
            }
        }
    }

    /// Prepares it for an event loop. Accepted sockets inherit that they send at once: Nagle's algorithm would hold each small
    /// response until the one before is acknowledged, for 40 ms.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                SockRef::from(listener).set_tcp_nodelay(true)?;
                listener.set_nonblocking(true)
            }
            Self::Unix(listener, _) => listener.set_nonblocking(true),
        }
    }

    /// Returns the bound address, with the port that the system has picked.
    pub fn local_address(&self) -> io::Result<ListenAddress> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(ListenAddress::Tcp),
            Self::Unix(_, file) => Ok(ListenAddress::Unix(file.path.clone())),
        }
    }
}

/// Listens on a TCP port. `[::]` is all addresses of both families, whatever the system's default; where the kernel has no
/// IPv6, it is all of IPv4.
pub fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        return listen_on(address);
    }
    match listen_on(address) {
        Err(error) if matches!(error.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL)) => {
            // Once for all ports.
            static SAID: Once = Once::new();
            SAID.call_once(|| tracing::warn!("IPv6 is unavailable; listening on all IPv4 addresses"));
            listen_on(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()))
        }
        listener => listener,
    }
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // After a restart all clients reconnect at once.
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Removes a socket file that no process listens on. Any other file of this name is an error.
fn remove_if_stale(path: &Path) -> io::Result<()> {
    let refused = |kind, why: &str| Err(io::Error::new(kind, why.to_owned()));
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return refused(
            ErrorKind::AlreadyExists,
            "the file that has this name is not a socket; remove it, or choose another path",
        );
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Non-blocking: a listener with a full backlog must not block the start.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "replacing a socket that nobody listens on");
            fs::remove_file(path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => refused(
            ErrorKind::PermissionDenied,
            "there is a socket of another user, who may still listen on it; remove it, or choose another path",
        ),
        _ => refused(
            ErrorKind::AddrInUse,
            "another process listens on this socket; stop it, or choose another path",
        ),
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |found: fs::Metadata| (found.dev(), found.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket file");
        }
    }
}

impl Accepted {
    /// Returns the client's address, or its user id.
    pub(super) fn peer_address(&self) -> PeerAddress {
        match self {
            Self::Tcp(stream, _) => stream.peer_addr().map_or(PeerAddress::Unknown, PeerAddress::Tcp),
            Self::Unix(stream) => {
                let credentials = rustix::net::sockopt::socket_peercred(stream);
                PeerAddress::Unix { uid: credentials.ok().map(|peer| peer.uid.as_raw()) }
            }
        }
    }
}

impl AsRawFd for Accepted {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream, _) => stream.as_fd().as_raw_fd(),
            Self::Unix(stream) => stream.as_fd().as_raw_fd(),
        }
    }
}

/// The peer of a connection. A Unix socket's client has no address.
pub(super) struct ConnectedPeer(pub(super) Option<SocketAddr>);

impl std::fmt::Display for ConnectedPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("a Unix socket"),
        }
    }
}
