//! Listening addresses of a server: TCP and Unix sockets.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

/// Maximum length of the queue of connections that have not been accepted yet. It equals tokio's default.
const BACKLOG: u32 = 1024;

/// Address to listen on: `ADDRESS:PORT`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// TCP address; port 0 selects any free port.
    Tcp(SocketAddr),
    /// Path of a Unix socket; a stale socket is replaced.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        text.parse().map(Self::Tcp).map_err(|_| format!("{text:?}: expected ADDRESS:PORT or unix:PATH"))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Address on which a server can listen later. A TCP port is already bound, so no privilege is needed to start
/// listening. Connections are refused until the server listens.
#[derive(Debug)]
pub(crate) enum Reserved {
    Tcp(TcpSocket, SocketAddr),
    Unix(PathBuf),
}

impl Reserved {
    /// Binds the ports of the TCP addresses. Does not need a runtime.
    ///
    /// # Errors
    /// Returns an error that names the address.
    pub(crate) fn all(listens: &[Listen]) -> io::Result<Vec<Self>> {
        listens.iter().map(|listen| Self::new(listen).map_err(|error| named(listen, &error))).collect()
    }

    fn new(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => {
                let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                socket.set_reuseaddr(true)?;
                socket.bind(*address)?;
                Ok(Self::Tcp(socket, *address))
            }
            Listen::Unix(path) => Ok(Self::Unix(path.clone())),
        }
    }

    /// # Errors
    /// Returns an error that names the address.
    pub(crate) async fn listen(self) -> io::Result<Listener> {
        match self {
            Self::Tcp(socket, address) => {
                let listener =
                    socket.listen(BACKLOG).map_err(|error| named(&Listen::Tcp(address), &error))?;
                Ok(Listener::Tcp(listener))
            }
            Self::Unix(path) => {
                let refused = |error| named(&Listen::Unix(path.clone()), &error);
                remove_leftover(&path).await.map_err(refused)?;
                let listener = UnixListener::bind(&path).map_err(refused)?;
                Ok(Listener::Unix(listener, SocketFile(path)))
            }
        }
    }
}

fn named(listen: &Listen, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"))
}

/// Listening socket. If it is a Unix socket, its file is removed when this value is dropped.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// File of a Unix socket. It is removed when the listener is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Returns the address of the socket.
    pub(crate) fn at(&self) -> io::Result<Listen> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Listen::Tcp),
            Self::Unix(_, file) => Ok(Listen::Unix(file.0.clone())),
        }
    }
}

/// Removes a stale socket on which no process listens. Does not remove files of other kinds.
async fn remove_leftover(path: &Path) -> io::Result<()> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process is listening on this socket"));
    }
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket { std::fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bind(listen: &Listen) -> io::Result<Listener> {
        Reserved::new(listen)?.listen().await
    }

    #[test]
    fn listen_addresses_are_parsed() {
        for text in ["127.0.0.1:80", "[::1]:0", "unix:/run/models"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for bad in ["", "unix:", "localhost:80", "127.0.0.1", ":80"] {
            assert!(bad.parse::<Listen>().is_err(), "{bad:?}");
        }
    }

    #[tokio::test]
    async fn only_a_stale_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let listen = Listen::Unix(directory.path().join("socket"));
        let first = bind(&listen).await.unwrap();
        assert_eq!(bind(&listen).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        bind(&listen).await.unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        assert!(bind(&Listen::Unix(file.clone())).await.is_err());
        assert_eq!(std::fs::read_to_string(file).unwrap(), "precious");
    }
}
