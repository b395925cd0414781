//! Sources of models, which are the cells and the learner. Each source has a pool of idle connections.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::{Credentials, ModelError};
use crate::limits::{IDLE_CONNECTIONS_MAX, PENALTY, PENALTY_MAX};

/// Address of a cell or a learner: `HOST:PORT`, optionally with the prefix `http://`; `unix:PATH`; or
/// `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Host name or address, and port, without TLS.
    Tcp(String),
    /// Host name or address, and port, with TLS.
    Tls(String),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("address is {text:?}, expected HOST:PORT, https://HOST:PORT or unix:PATH");
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        let (is_tls, bare) = match text.strip_prefix("https://") {
            Some(bare) => (true, bare),
            None => (false, text.strip_prefix("http://").unwrap_or(text)),
        };
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        let is_good = |(host, port): (&str, &str)| {
            let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
            !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok()
        };
        bare.rsplit_once(':').filter(|parts| is_good(*parts)).ok_or_else(bad)?;
        Ok(if is_tls { Self::Tls(bare.to_owned()) } else { Self::Tcp(bare.to_owned()) })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Tls(address) => write!(f, "https://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Connection on which a request can be sent.
pub(crate) type Connection = SendRequest<Full<Bytes>>;

/// An endpoint and its state.
#[derive(Debug)]
pub(crate) struct Source {
    endpoint: Endpoint,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::TlsClient>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Connection>,
    /// Time until which the source is used only if all other sources fail.
    avoided_until: Option<Instant>,
    penalty: Duration,
}

impl Source {
    /// # Errors
    /// Fails if the endpoint needs TLS and the credentials have no TLS configuration.
    pub(crate) fn new(endpoint: Endpoint, credentials: &Credentials) -> Result<Self, ModelError> {
        #[cfg(feature = "tls")]
        let has_tls = credentials.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let (has_tls, _) = (false, credentials);
        if matches!(endpoint, Endpoint::Tls(_)) && !has_tls {
            return Err(ModelError::NoTls { source_name: endpoint.to_string() });
        }
        Ok(Self {
            endpoint,
            #[cfg(feature = "tls")]
            tls: credentials.tls.clone(),
            state: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> String {
        self.endpoint.to_string()
    }

    /// Returns the value of the Host header.
    pub(crate) fn host(&self) -> &str {
        match &self.endpoint {
            Endpoint::Tcp(address) | Endpoint::Tls(address) => address,
            Endpoint::Unix(_) => "localhost",
        }
    }

    pub(crate) fn is_avoided(&self) -> bool {
        self.lock().avoided_until.is_some_and(|end| Instant::now() < end)
    }

    /// Avoids the source for a while after a failure.
    pub(crate) fn punish(&self) {
        let mut state = self.lock();
        state.idle.clear();
        state.penalty = (state.penalty * 2).clamp(PENALTY, PENALTY_MAX);
        state.avoided_until = Some(Instant::now() + state.penalty);
    }

    /// Resets the penalty of the source after a success.
    pub(crate) fn forgive(&self) {
        let mut state = self.lock();
        (state.penalty, state.avoided_until) = (Duration::ZERO, None);
    }

    /// Puts a connection into the pool of idle connections. The response on the connection must have been read
    /// completely.
    pub(crate) fn keep(&self, connection: Connection) {
        let mut state = self.lock();
        if state.idle.len() < IDLE_CONNECTIONS_MAX && !connection.is_closed() {
            state.idle.push(connection);
        }
    }

    /// Sends a request over an idle connection, if one is available and still works, and otherwise over a new
    /// connection.
    ///
    /// `request` must contain the complete path. It may be sent twice, so it must be idempotent.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        connect_timeout: Duration,
    ) -> Result<(hyper::Response<Incoming>, Connection), ModelError> {
        loop {
            // This is a separate statement, so that the lock is not held during the await.
            let idle = self.lock().idle.pop();
            let Some(mut connection) = idle else { break };
            if connection.ready().await.is_ok()
                && let Ok(response) = connection.send_request(request.clone()).await
            {
                return Ok((response, connection));
            }
        }
        let mut connection = self.connect(connect_timeout).await?;
        let unreachable = |error: hyper::Error| self.unreachable(&with_cause(&error));
        connection.ready().await.map_err(unreachable)?;
        let response = connection.send_request(request).await.map_err(unreachable)?;
        Ok((response, connection))
    }

    async fn connect(&self, connect_timeout: Duration) -> Result<Connection, ModelError> {
        let connecting = async {
            match &self.endpoint {
                Endpoint::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    shake_hands(stream).await
                }
                Endpoint::Tls(address) => self.connect_tls(address).await,
                Endpoint::Unix(path) => shake_hands(UnixStream::connect(path).await?).await,
            }
        };
        let connected = timeout(connect_timeout, connecting).await;
        let connected =
            connected.map_err(|_| self.unreachable(&format!("no connection within {connect_timeout:?}")))?;
        connected.map_err(|error| self.unreachable(&error.to_string()))
    }

    #[cfg(feature = "tls")]
    async fn connect_tls(&self, address: &str) -> io::Result<Connection> {
        let Some(tls) = &self.tls else { return Err(io::ErrorKind::Unsupported.into()) };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        shake_hands(tls.connect(host, stream).await?).await
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "has the same signature as with TLS")]
    async fn connect_tls(&self, _: &str) -> io::Result<Connection> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unreachable(&self, reason: &str) -> ModelError {
        ModelError::Unreachable { source_name: self.name(), reason: reason.to_owned() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats an error together with its cause, such as the TLS alert that a server sends to reject a certificate.
fn with_cause(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
) -> io::Result<Connection> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a source ended");
        }
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_parsed() {
        for text in ["cell-1:7720", "10.0.0.1:80", "[::1]:80", "unix:/run/x", "https://a:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("http://a:1/".parse(), Ok(Endpoint::Tcp("a:1".to_owned())));
        for bad in ["", "a", "a:", ":1", "a:65536", "unix:", "https://a", "a b:1", "http://a:1/models"] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn source_penalties_grow_and_expire() {
        let source = Source::new(Endpoint::Tcp("a:1".to_owned()), &Credentials::default()).unwrap();
        let mut total = Duration::ZERO;
        for _ in 0..10 {
            source.punish();
            let begin = Instant::now();
            while source.is_avoided() {
                tokio::time::advance(Duration::from_millis(10)).await;
            }
            total += begin.elapsed();
        }
        // Penalties of 0.25, 0.5, 1, 2 and 4 seconds, then 5 seconds each.
        let expected = Duration::from_millis(7_750 + 5 * 5_000);
        assert!(total >= expected && total < expected + Duration::from_millis(200), "{total:?}");
        source.forgive();
        source.punish();
        tokio::time::advance(PENALTY).await;
        assert!(!source.is_avoided());
    }
}
