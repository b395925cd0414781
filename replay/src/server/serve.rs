//! Connections: from TCP or Unix sockets to the service, until it is told to stop.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service as _;

use super::admission::Admission;
use super::housekeeping;
use super::service::Service;
use super::shard::Shard;
use super::unary;
use crate::limits::REQUEST_SLACK_BYTES;
use crate::proto::replay_server::ReplayServer;

/// Bytes of one request that may be on their way before somebody reads them, and of all requests of a connection.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
const FRAME_BYTES: u32 = 256 << 10;
const STREAMS_MAX: u32 = 1024;
/// A connection whose other end does not answer for so long is closed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What is under way when the shard stops has so long to end.
const GRACE: Duration = Duration::from_secs(3);

/// Where a shard listens: `HOST:PORT` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A socket of this machine.
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

/// A socket that listens. That of a path is removed with it.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A socket of this machine.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens; port 0 is any that is free. A socket that a process has left behind is replaced.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?)),
            Address::Unix(path) => {
                if tokio::net::UnixStream::connect(path).await.is_err_and(|error| is_left_behind(&error)) {
                    std::fs::remove_file(path)?;
                }
                Ok(Self::Unix(UnixListener::bind(path)?, path.clone()))
            }
        }
    }

    /// Where it really listens.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            remove_socket(path);
        }
    }
}

fn remove_socket(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!("cannot remove {}: {error}", path.display());
    }
}

fn is_left_behind(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Serves until `stop` is done; then ends what waits, lets the rest end, and writes a snapshot if there is a directory.
///
/// # Errors
/// The last snapshot could not be written.
pub async fn serve(
    shard: Arc<Shard>,
    listeners: Vec<Listener>,
    stop: impl Future<Output = ()>,
) -> Result<(), super::ShardError> {
    let connections = Arc::new(Connections {
        graceful: GracefulShutdown::new(),
        places: Arc::new(Semaphore::new(shard.config.connections_max)),
        admission: Admission {
            memory: Arc::clone(&shard.receiving),
            memory_bytes: shard.plan.receiving,
            message_max_bytes: shard.config.item_max_bytes + REQUEST_SLACK_BYTES,
        },
        inserts: Service(Arc::clone(&shard)),
        service: ReplayServer::new(Service(Arc::clone(&shard)))
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX),
    });
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        tasks.spawn(accept(listener, Arc::clone(&connections)));
    }
    tasks.spawn(housekeeping::write_snapshots(Arc::clone(&shard)));
    stop.await;
    shard.stop();
    // Drops the listeners.
    tasks.shutdown().await;
    if let Some(connections) = Arc::into_inner(connections)
        && tokio::time::timeout(GRACE, connections.graceful.shutdown()).await.is_err()
    {
        tracing::warn!("some connections did not end within {GRACE:?}");
    }
    if shard.store.is_some() {
        let snapshot = shard.snapshot().await?;
        tracing::info!("{} items in {}", snapshot.items, snapshot.path.display());
    }
    Ok(())
}

/// What all connections share.
struct Connections {
    graceful: GracefulShutdown,
    places: Arc<Semaphore>,
    admission: Admission,
    inserts: Service,
    service: ReplayServer<Service>,
}

async fn accept(listener: Listener, connections: Arc<Connections>) {
    loop {
        // Who finds no place waits in the kernel's queue.
        let Ok(place) = Arc::clone(&connections.places).acquire_owned().await else { return };
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!("no TCP_NODELAY: {error}");
                }
                connections.start(stream, place);
            }),
            Listener::Unix(listener, _) => {
                listener.accept().await.map(|(stream, _)| connections.start(stream, place))
            }
        };
        if let Err(error) = accepted {
            // Too many open files, as a rule: others have to close theirs.
            tracing::warn!("no connection accepted: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Connections {
    fn start(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        place: OwnedSemaphorePermit,
    ) {
        let (inserts, service) = (self.inserts.clone(), self.service.clone());
        let admission = self.admission.clone();
        let answer = service_fn(move |request: http::Request<Incoming>| {
            let (inserts, mut service) = (inserts.clone(), service.clone());
            let (parts, body) = request.into_parts();
            let (body, share) = admission.admit(body);
            let request = http::Request::from_parts(parts, body);
            async move {
                let answer = if request.uri().path() == unary::INSERT_PATH {
                    Ok(unary::answer(inserts, request).await)
                } else {
                    service.call(request).await
                };
                drop(share);
                answer
            }
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(STREAMS_MAX)
            .keep_alive_interval(Some(KEEP_ALIVE))
            .keep_alive_timeout(KEEP_ALIVE)
            .serve_connection(TokioIo::new(stream), answer);
        let connection = self.graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended: {error}");
            }
            drop(place);
        });
    }
}
