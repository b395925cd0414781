//! Addresses and listening sockets of a shard.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

/// Maximum length of the queue of connections that have not been accepted yet. It equals tokio's default.
const BACKLOG: u32 = 1024;

/// Address to listen on: `IP:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP address.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let address = text.parse().map(Self::Tcp);
        address.map_err(|_| format!("address is {text:?}, expected IP:PORT or unix:PATH"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Address on which a shard can listen later. A TCP port is already bound, so no privilege is needed to start
/// listening. Connections are refused until the shard listens.
#[derive(Debug)]
pub enum Reserved {
    /// Bound TCP socket.
    Tcp(TcpSocket),
    /// Path of a Unix socket, which is created later.
    Unix(PathBuf),
}

impl Reserved {
    /// Binds the port of a TCP address. Does not need a runtime.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn new(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                socket.set_reuseaddr(true)?;
                socket.bind(*address)?;
                Ok(Self::Tcp(socket))
            }
            Address::Unix(path) => Ok(Self::Unix(path.clone())),
        }
    }

    /// Starts to listen. Replaces a Unix socket that another process left behind. Does not replace other kinds of
    /// files.
    ///
    /// # Errors
    /// Returns the errors of the operating system, or fails if another file exists at the path.
    pub async fn listen(self) -> io::Result<Listener> {
        match self {
            Self::Tcp(socket) => Ok(Listener::Tcp(socket.listen(BACKLOG)?)),
            Self::Unix(path) => {
                make_room(&path).await?;
                let listener = UnixListener::bind(&path)?;
                let identity = identity(&path);
                Ok(Listener::Unix(listener, SocketFile { path, identity }))
            }
        }
    }
}

/// Listening socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP socket.
    Tcp(TcpListener),
    /// Unix socket.
    Unix(UnixListener, SocketFile),
}

/// File of a Unix socket. When this value is dropped, the file is removed, unless it has been replaced by another file.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    identity: Option<(u64, u64)>,
}

impl Listener {
    /// Binds an address and listens on it. Port 0 selects any free port. Replaces a Unix socket that another process
    /// left behind. Does not replace other kinds of files.
    ///
    /// # Errors
    /// Returns the errors of the operating system, or fails if another file exists at the path.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        Reserved::new(address)?.listen().await
    }

    /// Returns the actual address, with the port that was selected.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_none() || identity(&self.path) != self.identity {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes a socket on which no process listens.
async fn make_room(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        let text = format!(
            "{} exists and is not a socket, expected an unused path: choose another path or remove the file",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        // If a process listens on the socket, the later call that binds it fails with a suitable error.
        _ => Ok(()),
    }
}
