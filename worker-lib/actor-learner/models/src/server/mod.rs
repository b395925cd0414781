//! HTTP/1.1 server with limits, for learners and cells.

pub(crate) mod learner;
mod listen;
mod paced;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
#[cfg(feature = "tls")]
use tokio::time::timeout;

pub use listen::Listen;
pub use paced::Patience;

use crate::Token;
use crate::counters::{Counters, Stats};
use crate::http::body::Body;
use crate::http::refusal::Refusal;
#[cfg(feature = "tls")]
use crate::limits::HANDSHAKE_TIMEOUT;
use crate::limits::{CONNECTION_BUFFER_LEN_BYTES, CONNECTIONS_MAX, HEADER_TIMEOUT, REFUSALS_MAX};
use listen::Listener;
pub(crate) use listen::Reserved;
use paced::{Pace, Paced};

/// Pause after a failure to accept a connection, for example because no file descriptor is available.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Access control of a server. By default, no token is required and connections are unencrypted.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Token required of clients that publish, if publishing is permitted.
    pub publish: Option<Token>,
    /// Token required of clients that read models or counters.
    pub read: Option<Token>,
    /// TLS configuration of TCP connections. Unix sockets are never encrypted.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::TlsServer>,
}

impl Access {
    fn check(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let (token, what) = match *request.method() {
            Method::PUT => (&self.publish, "publishing"),
            _ => (&self.read, "reading"),
        };
        match token {
            Some(token) if !token.is_shown(request.headers()) => Err(Refusal::Unauthorized { what }),
            _ => Ok(()),
        }
    }
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Maximum number of concurrent connections. Any further connection is answered with status 503.
    pub connections_max: usize,
    /// Timeout for the head of a request, and idle timeout of a connection.
    pub header_timeout: Duration,
    /// Limits on slow readers.
    pub patience: Patience,
    /// Access control.
    pub access: Access,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let patience = Patience::default();
        let (connections_max, header_timeout) = (CONNECTIONS_MAX, HEADER_TIMEOUT);
        Self { connections_max, header_timeout, patience, access: Access::default() }
    }
}

/// Origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Tcp,
    Unix,
}

/// Handler of requests.
pub(crate) trait Handler: Send + Sync + 'static {
    fn answer(
        &self,
        request: Request<Incoming>,
        origin: Origin,
    ) -> impl Future<Output = Result<Response<Body>, Refusal>> + Send;

    fn counters(&self) -> &Arc<Counters>;
}

/// Server that runs as tasks of the calling runtime. Dropping it stops the server and closes all of its connections.
#[derive(Debug)]
pub struct Server {
    listens: Vec<Listen>,
    tasks: Vec<JoinHandle<()>>,
    counters: Arc<Counters>,
}

impl Server {
    /// Listens on all of the given addresses. Fails if it cannot listen on one of them.
    pub(crate) async fn start<H: Handler>(
        handler: Arc<H>,
        reserved: Vec<Reserved>,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let counters = Arc::clone(handler.counters());
        let shared = Arc::new(Shared {
            handler,
            connections: Arc::new(Semaphore::new(options.connections_max)),
            options,
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
        });
        let mut listeners = Vec::new();
        for reserved in reserved {
            listeners.push(reserved.listen().await?);
        }
        let listens = listeners.iter().map(Listener::at).collect::<io::Result<_>>()?;
        let accept = |listener| tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { listens, tasks: listeners.into_iter().map(accept).collect(), counters })
    }

    /// Returns the addresses on which the server listens, in the requested order and with the actual ports.
    pub fn listens(&self) -> &[Listen] {
        &self.listens
    }

    /// Returns the statistics of the server.
    pub fn stats(&self) -> Stats {
        self.counters.stats()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

struct Shared<H> {
    handler: Arc<H>,
    options: ServerOptions,
    connections: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

async fn accept<H: Handler>(listener: Listener, shared: Arc<Shared<H>>) {
    // When this task ends, it drops the set of tasks, which closes all connections.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                // Disable Nagle's algorithm, which would delay small responses such as pointers.
                let _ = stream.set_nodelay(true);
                spawn(&mut connections, &shared, |slot| serve_tcp(stream, Arc::clone(&shared), slot));
            }),
            Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                spawn(&mut connections, &shared, |slot| {
                    serve(stream, Origin::Unix, Arc::clone(&shared), slot)
                });
            }),
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Starts to serve a connection if a slot is free.
fn spawn<H: Handler, F: Future<Output = ()> + Send + 'static>(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared<H>>,
    serve: impl FnOnce(ConnectionSlot) -> F,
) {
    if let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() {
        connections.spawn(serve(ConnectionSlot::Served(permit)));
        return;
    }
    Counters::add(&shared.handler.counters().connections_refused, 1);
    if let Ok(permit) = Arc::clone(&shared.refusals).try_acquire_owned() {
        connections.spawn(serve(ConnectionSlot::Refused(permit)));
    }
}

/// Serves a TCP connection. If TLS is enabled, performs the handshake first.
async fn serve_tcp<H: Handler>(stream: TcpStream, shared: Arc<Shared<H>>, slot: ConnectionSlot) {
    #[cfg(feature = "tls")]
    if let Some(tls) = &shared.options.access.tls {
        match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => return serve(stream, Origin::Tcp, shared, slot).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
        Counters::add(&shared.handler.counters().handshakes_failed, 1);
        return;
    }
    serve(stream, Origin::Tcp, shared, slot).await;
}

/// Slot that a connection holds while it is open.
enum ConnectionSlot {
    Served(#[expect(dead_code, reason = "dropping it frees the slot")] OwnedSemaphorePermit),
    Refused(#[expect(dead_code, reason = "dropping it frees the slot")] OwnedSemaphorePermit),
}

async fn serve<H: Handler, S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    origin: Origin,
    shared: Arc<Shared<H>>,
    slot: ConnectionSlot,
) {
    let counters = Arc::clone(shared.handler.counters());
    let _open = Open::new(&counters);
    let pace = Arc::new(Pace::new(shared.options.patience));
    let stream = TokioIo::new(Paced::new(stream, Arc::clone(&pace), Arc::clone(&counters)));
    let is_refused = matches!(slot, ConnectionSlot::Refused(_));
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, pace) = (Arc::clone(&shared), Arc::clone(&pace));
        async move {
            let mut response = if is_refused {
                refuse_connection(shared.options.connections_max)
            } else {
                answer(&shared, request, origin).await
            };
            pace.begin(response.body().size_hint().exact().unwrap_or_default());
            if is_refused {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.options.header_timeout)
        .max_buf_size(CONNECTION_BUFFER_LEN_BYTES)
        .serve_connection(stream, service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
    drop(slot);
}

fn refuse_connection(limit: usize) -> Response<Body> {
    Refusal::Busy { what: "connections", limit }.answer()
}

async fn answer<H: Handler>(
    shared: &Shared<H>,
    request: Request<Incoming>,
    origin: Origin,
) -> Response<Body> {
    let counters = shared.handler.counters();
    Counters::add(&counters.requests, 1);
    let answered = match shared.options.access.check(&request) {
        Ok(()) => shared.handler.answer(request, origin).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| {
        Counters::add(&counters.refusals, 1);
        refusal.answer()
    })
}

/// Returns the counters as a response.
pub(crate) fn metrics(counters: &Counters) -> Response<Body> {
    let mut response = Response::new(Body::Ready(Bytes::from(counters.stats().text())));
    let text = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

/// Guard that counts a connection as open until the guard is dropped.
struct Open<'a>(&'a Counters);

impl<'a> Open<'a> {
    fn new(counters: &'a Counters) -> Self {
        Counters::add(&counters.connections, 1);
        Self(counters)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
