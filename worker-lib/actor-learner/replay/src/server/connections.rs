//! Connection handling: limits, idle timeouts and authentication.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tonic::Status;
use tower_service::Service as _;

use super::admission::Admission;
use super::service::Service;
use super::shard::Shard;
use super::token::Token;
use super::unary;
use crate::limits::{FIRST_REQUEST_MS, IDLE_MS, REQUEST_SLACK_BYTES};
use crate::proto::replay_server::ReplayServer;

/// Flow-control windows, in bytes. One limits the unread data of a request; the other limits the unread data of all
/// requests on a connection.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
const FRAME_BYTES: u32 = 256 << 10;
const STREAMS_MAX: u32 = 1024;
/// Keep-alive timeout. If the peer does not answer within this time, the connection is closed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// State shared by all connections.
pub(super) struct Connections {
    places: Arc<Semaphore>,
    places_max: usize,
    closing: watch::Sender<bool>,
    requests: Requests,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

/// Request handler of a connection.
#[derive(Clone)]
struct Requests {
    admission: Admission,
    inserts: Service,
    service: ReplayServer<Service>,
    token: Option<Token>,
}

/// Time of the last request on a connection.
struct Activity {
    opened: Instant,
    /// Time of the last request, in milliseconds since `opened`, plus 1; 0 if no request has arrived yet.
    last: AtomicU64,
}

impl Activity {
    fn note(&self) {
        self.last.store(self.opened.elapsed().as_millis() as u64 + 1, Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.last.load(Relaxed) > 0
    }

    /// Returns the time at which the connection exceeds its idle timeout if no further request arrives.
    fn deadline(&self) -> Instant {
        match self.last.load(Relaxed) {
            0 => self.opened + Duration::from_millis(FIRST_REQUEST_MS),
            last => self.opened + Duration::from_millis(last - 1 + IDLE_MS),
        }
    }
}

impl Connections {
    pub(super) fn new(shard: &Arc<Shard>) -> Self {
        let requests = Requests {
            admission: Admission {
                memory: Arc::clone(&shard.receiving),
                memory_bytes: shard.plan.receiving,
                message_max_bytes: shard.config.item_max_bytes + REQUEST_SLACK_BYTES,
            },
            inserts: Service(Arc::clone(shard)),
            service: ReplayServer::new(Service(Arc::clone(shard)))
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX),
            token: shard.config.token.clone(),
        };
        let places_max = shard.config.connections_max;
        let places = Arc::new(Semaphore::new(places_max));
        Self {
            places,
            places_max,
            closing: watch::channel(false).0,
            requests,
            #[cfg(feature = "tls")]
            tls: shard.config.tls.as_ref().map(super::tls::ServerTls::acceptor),
        }
    }

    /// Waits for a free connection slot. In the meantime, new connections wait in the kernel's queue.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Asks all connections to complete their requests in flight, and waits until they have done so.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        // This cannot fail, because the semaphore is never closed.
        let _ = self.places.acquire_many(self.places_max as u32).await;
    }

    /// Serves a TCP connection. If TLS is enabled, performs the handshake first.
    #[cfg(feature = "tls")]
    pub(super) fn start_tcp(self: &Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        let Some(acceptor) = &self.tls else { return self.start(stream, place) };
        let (handshake, connections) = (acceptor.accept(stream), Arc::clone(self));
        let mut closing = self.closing.subscribe();
        tokio::spawn(async move {
            let wait = Duration::from_millis(FIRST_REQUEST_MS);
            tokio::select! {
                done = tokio::time::timeout(wait, handshake) => match done {
                    Ok(Ok(stream)) => connections.start(stream, place),
                    Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
                    Err(_) => tracing::debug!("a TLS handshake took longer than {wait:?}"),
                },
                _ = closing.wait_for(|closing| *closing) => {}
            }
        });
    }

    /// Serves a TCP connection.
    #[cfg(not(feature = "tls"))]
    pub(super) fn start_tcp(self: &Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        self.start(stream, place);
    }

    pub(super) fn start(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        place: OwnedSemaphorePermit,
    ) {
        let activity = Arc::new(Activity { opened: Instant::now(), last: AtomicU64::new(0) });
        let (requests, noted) = (self.requests.clone(), Arc::clone(&activity));
        let answer = service_fn(move |request| {
            let (requests, noted) = (requests.clone(), Arc::clone(&noted));
            async move { requests.answer(request, &noted).await }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(STREAMS_MAX)
            .keep_alive_interval(Some(KEEP_ALIVE))
            .keep_alive_timeout(KEEP_ALIVE)
            .serve_connection(TokioIo::new(stream), answer);
        let mut closing = self.closing.subscribe();
        tokio::spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let mut is_ending = false;
            loop {
                tokio::select! {
                    ended = connection.as_mut() => {
                        ended.unwrap_or_else(|error| tracing::debug!("a connection ended: {error}"));
                        break;
                    }
                    // An error means that the sender was dropped together with the shard.
                    _ = closing.wait_for(|closing| *closing), if !is_ending => {
                        if !activity.has_begun() {
                            break;
                        }
                        is_ending = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    () = tokio::time::sleep_until(activity.deadline()), if !is_ending => {
                        if Instant::now() < activity.deadline() {
                            continue;
                        }
                        tracing::debug!("closing a connection that was idle for too long");
                        if !activity.has_begun() {
                            break;
                        }
                        // A client that is still active reconnects. Requests in flight are allowed to complete.
                        is_ending = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
            drop(place);
        });
    }
}

impl Requests {
    async fn answer(
        mut self,
        request: Request<Incoming>,
        activity: &Activity,
    ) -> Result<http::Response<tonic::body::Body>, std::convert::Infallible> {
        if let Some(token) = &self.token
            && !token.is_in(request.headers())
        {
            let status = Status::unauthenticated(
                "the request has no valid token, expected the one in the shard's --token-file",
            );
            return Ok(status.into_http());
        }
        activity.note();
        let (parts, body) = request.into_parts();
        let (body, share) = self.admission.admit(body);
        let request = Request::from_parts(parts, body);
        let answer = if request.uri().path() == unary::INSERT_PATH {
            Ok(unary::answer(self.inserts, request).await)
        } else {
            self.service.call(request).await
        };
        drop(share);
        answer
    }
}

#[cfg(test)]
mod tests;
