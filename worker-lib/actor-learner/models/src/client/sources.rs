//! Requests to the sources, in order of preference, until one of them answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::timeout;

use super::source::{Connection, Endpoint, Source};
use super::{Credentials, ModelError, Times};
use crate::Token;
use crate::http::refusal::ErrorAnswer;
use crate::limits::SMALL_ANSWER_LEN_MAX_BYTES;

/// Cells and learners, the preferred ones first.
#[derive(Debug)]
pub(crate) struct Sources {
    all: Vec<Source>,
    times: Times,
    /// Authorization header of each request.
    authorization: Option<HeaderValue>,
}

/// Response whose head has been received, but whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Index of the source that sent the response.
    pub(crate) at: usize,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    connection: Connection,
}

impl Sources {
    pub(crate) fn new(
        endpoints: &[Endpoint],
        times: Times,
        credentials: &Credentials,
    ) -> Result<Self, ModelError> {
        if endpoints.is_empty() {
            return Err(ModelError::NoSources);
        }
        let all = endpoints.iter().map(|endpoint| Source::new(endpoint.clone(), credentials));
        let authorization = credentials.token.as_ref().map(Token::header);
        Ok(Self { all: all.collect::<Result<_, _>>()?, times, authorization })
    }

    pub(crate) fn name(&self, at: usize) -> String {
        self.all[at].name()
    }

    /// Returns the indices of the sources in order of preference. Sources that have recently failed come last.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.all.len()).collect();
        order.sort_by_key(|at| self.all[*at].is_avoided());
        order
    }

    /// Avoids a source for a while if the source is at fault for the error.
    pub(crate) fn judge(&self, at: usize, error: &ModelError) {
        if error.is_sick() {
            tracing::debug!(%error, "a source failed");
            self.all[at].punish();
        }
    }

    /// Sends a request to one source, and returns the response when its head has arrived. The timeout is the usual one
    /// plus `wait`. Fails if the status of the response is not a success.
    pub(crate) async fn ask(
        &self,
        at: usize,
        path: &str,
        fields: &[(HeaderName, &str)],
        wait: Duration,
    ) -> Result<Answer, ModelError> {
        let source_name = self.name(at);
        let mut request = self.request(at, Method::GET, path, Bytes::new())?;
        for (name, value) in fields {
            let what = || format!("header {name} cannot have the value {value:?}");
            let value = HeaderValue::from_str(value)
                .map_err(|_| ModelError::BadAnswer { source_name: source_name.clone(), what: what() })?;
            request.headers_mut().insert(name, value);
        }
        let answer = self.exchange(at, request, wait).await?;
        if answer.status.is_success() {
            self.all[at].forgive();
            return Ok(answer);
        }
        let status = answer.status;
        let text = self.read_small(answer).await?;
        let message = serde_json::from_slice::<ErrorAnswer>(&text)
            .map_or_else(|_| String::from_utf8_lossy(&text).chars().take(200).collect(), |it| it.message);
        Err(match status {
            StatusCode::NOT_FOUND | StatusCode::PRECONDITION_FAILED => {
                ModelError::NotFound { source_name, message }
            }
            _ => ModelError::Refused { source_name, status, message },
        })
    }

    /// Uploads an object to a source.
    pub(crate) async fn put(&self, at: usize, path: &str, bytes: Bytes) -> Result<Bytes, ModelError> {
        let request = self.request(at, Method::PUT, path, bytes)?;
        let answer = self.exchange(at, request, self.times.stall).await?;
        let (source_name, status) = (self.name(at), answer.status);
        let text = self.read_small(answer).await?;
        if status.is_success() {
            return Ok(text);
        }
        let message = serde_json::from_slice::<ErrorAnswer>(&text).map(|it| it.message).unwrap_or_default();
        Err(ModelError::Refused { source_name, status, message })
    }

    fn request(
        &self,
        at: usize,
        method: Method,
        path: &str,
        bytes: Bytes,
    ) -> Result<Request<Full<Bytes>>, ModelError> {
        let mut built = Request::builder().method(method).uri(path).header(HOST, self.all[at].host());
        if let Some(authorization) = &self.authorization {
            built = built.header(AUTHORIZATION, authorization);
        }
        let built = built.body(Full::new(bytes));
        built.map_err(|error| ModelError::BadAnswer { source_name: self.name(at), what: error.to_string() })
    }

    async fn exchange(
        &self,
        at: usize,
        request: Request<Full<Bytes>>,
        wait: Duration,
    ) -> Result<Answer, ModelError> {
        let waited = self.times.connect + self.times.stall + wait;
        let sent = timeout(waited, self.all[at].send(request, self.times.connect)).await;
        let stalled = |_| ModelError::Stalled { source_name: self.name(at), waited };
        let (response, connection): (Response<Incoming>, _) = sent.map_err(stalled)??;
        let (head, body) = response.into_parts();
        Ok(Answer { at, status: head.status, headers: head.headers, body, connection })
    }

    /// Returns the next bytes of a response; `None` at its end.
    pub(crate) async fn next(&self, answer: &mut Answer) -> Result<Option<Bytes>, ModelError> {
        let waited = self.times.stall;
        let source_name = || self.name(answer.at);
        loop {
            let frame = timeout(waited, answer.body.frame()).await;
            let frame = frame.map_err(|_| ModelError::Stalled { source_name: source_name(), waited })?;
            let Some(frame) = frame else { return Ok(None) };
            let broken = |error: hyper::Error| ModelError::Unreachable {
                source_name: source_name(),
                reason: error.to_string(),
            };
            if let Ok(bytes) = frame.map_err(broken)?.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Returns the connection of a completely read response to the pool, so that it can be reused.
    pub(crate) fn finish(&self, answer: Answer) {
        self.all[answer.at].keep(answer.connection);
    }

    /// Reads the whole body of a pointer response or an error response.
    pub(crate) async fn read_small(&self, mut answer: Answer) -> Result<Bytes, ModelError> {
        let mut text = BytesMut::new();
        while let Some(bytes) = self.next(&mut answer).await? {
            if text.len() + bytes.len() > SMALL_ANSWER_LEN_MAX_BYTES {
                let what = format!("the response is longer than {SMALL_ANSWER_LEN_MAX_BYTES} bytes");
                return Err(ModelError::BadAnswer { source_name: self.name(answer.at), what });
            }
            text.extend_from_slice(&bytes);
        }
        self.finish(answer);
        Ok(text.freeze())
    }
}
