//! The learner's server, which serves a store and, if permitted, accepts models from other processes.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Handler, Listen, Origin, Patience, Reserved, Server, ServerOptions, metrics};
use crate::counters::Counters;
use crate::http::body::Body;
use crate::http::object::{self, Content};
use crate::http::pointer::{self, Freshness};
use crate::http::refusal::Refusal;
use crate::http::route::{PointerQuery, Route, check_method};
use crate::limits::{MODEL_AGE_MAX, POINTER_FRESH, UPLOADS_MAX};
use crate::store::{Found, PublishError};
use crate::{ModelName, ModelStore};

/// Clients that may publish over HTTP, with `PUT /models/NAME/VERSION`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishFrom {
    /// No client may publish over HTTP. Only the process of the learner can publish, directly through the store.
    Nobody,
    /// Clients that connect to a Unix socket of the server may publish.
    #[default]
    UnixSockets,
    /// Any client that can reach the server may publish.
    Everywhere,
}

impl FromStr for PublishFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nobody" => Ok(Self::Nobody),
            "unix" => Ok(Self::UnixSockets),
            "everywhere" => Ok(Self::Everywhere),
            _ => Err(format!("publish-from is {text:?}, expected nobody, unix or everywhere")),
        }
    }
}

/// Options of the learner's server.
#[derive(Clone, Debug)]
pub struct LearnerOptions {
    /// Options of the HTTP server.
    pub server: ServerOptions,
    /// Clients that may publish over HTTP.
    pub publish_from: PublishFrom,
    /// Time, in whole seconds, for which caches may use a stale pointer while they revalidate the pointer or cannot
    /// reach the learner.
    pub stale: Duration,
}

impl Default for LearnerOptions {
    fn default() -> Self {
        Self { server: ServerOptions::default(), publish_from: PublishFrom::default(), stale: MODEL_AGE_MAX }
    }
}

/// Serves a store.
///
/// # Errors
/// Fails if the server cannot listen on an address; the error names the address.
pub async fn serve(store: Arc<ModelStore>, listen: &[Listen], options: LearnerOptions) -> io::Result<Server> {
    serve_at(store, Reserved::all(listen)?, options).await
}

/// Serves like [`serve`], but on addresses that are already reserved.
pub(crate) async fn serve_at(
    store: Arc<ModelStore>,
    reserved: Vec<Reserved>,
    options: LearnerOptions,
) -> io::Result<Server> {
    let learner = Learner {
        store,
        publish_from: options.publish_from,
        freshness: Freshness { fresh: POINTER_FRESH, stale: options.stale },
        patience: options.server.patience,
        uploads: Semaphore::new(UPLOADS_MAX),
        counters: Arc::default(),
    };
    Server::start(Arc::new(learner), reserved, options.server).await
}

struct Learner {
    store: Arc<ModelStore>,
    publish_from: PublishFrom,
    freshness: Freshness,
    patience: Patience,
    uploads: Semaphore,
    counters: Arc<Counters>,
}

impl Handler for Learner {
    async fn answer(&self, request: Request<Incoming>, origin: Origin) -> Result<Response<Body>, Refusal> {
        let route = Route::parse(request.uri())?;
        if let (&Method::PUT, Route::Object { name, version }) = (request.method(), &route) {
            return self.publish(name, *version, request.into_body(), origin).await;
        }
        check_method(request.method(), "GET, HEAD, PUT")?;
        let head = (request.method(), request.headers());
        match route {
            Route::Metrics => Ok(self.metrics()),
            Route::Object { name, version } => match self.store.get(&name, version) {
                Found::Object(found) => {
                    object::answer(head.0, head.1, &found.manifest, Content::Ready(found.bytes.clone()))
                }
                Found::OtherVersions(kept) => Err(Refusal::UnknownVersion { name, version, kept }),
                Found::Nothing => Err(Refusal::UnknownModel(name)),
            },
            Route::Latest { name, query } => {
                let came = Instant::now();
                let Some(found) = self.latest(&name, query).await? else {
                    let answer = pointer::nothing_newer(Duration::ZERO, query, self.freshness);
                    return Ok(pointer::held(answer, came.elapsed()));
                };
                let answer = pointer::answer(head, query, &found, Duration::ZERO, self.freshness)?;
                Ok(pointer::held(answer, came.elapsed()))
            }
        }
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl Learner {
    /// Returns the pointer that a reader requests. Returns `None` if the model exists, but no newer version appeared
    /// during the wait.
    async fn latest(
        &self,
        name: &ModelName,
        query: PointerQuery,
    ) -> Result<Option<crate::Manifest>, Refusal> {
        let unknown = || Refusal::UnknownModel(name.clone());
        let Some(wait) = query.wait else {
            let found = self.store.latest(name).ok_or_else(unknown)?;
            return Ok(Some(found.manifest.clone()));
        };
        match timeout(wait, self.store.newer(name, query.after)).await {
            Ok(found) => Ok(Some(found.manifest.clone())),
            Err(_) => self.store.latest(name).map(|_| None).ok_or_else(unknown),
        }
    }

    async fn publish(
        &self,
        name: &ModelName,
        version: u64,
        body: Incoming,
        origin: Origin,
    ) -> Result<Response<Body>, Refusal> {
        let is_allowed = match self.publish_from {
            PublishFrom::Nobody => false,
            PublishFrom::UnixSockets => origin == Origin::Unix,
            PublishFrom::Everywhere => true,
        };
        if !is_allowed {
            return Err(Refusal::PublishForbidden);
        }
        let busy = Refusal::Busy { what: "uploads", limit: UPLOADS_MAX };
        let _permit = self.uploads.try_acquire().map_err(|_| busy)?;
        let bytes = self.receive(body).await?;
        let (store, name) = (Arc::clone(&self.store), name.clone());
        // Computing the digests of a large model here would delay the readers that this thread serves.
        let published = tokio::task::spawn_blocking(move || store.publish(&name, version, bytes)).await;
        let manifest = published.map_err(|error| Refusal::UploadBroken(error.to_string()))??;
        let json = serde_json::to_vec(&manifest).expect("strings and numbers can be serialized as JSON");
        let mut response = Response::new(Body::Ready(Bytes::from(json)));
        *response.status_mut() = StatusCode::CREATED;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    /// Receives a request body, which must not be longer than the maximum size of an object.
    async fn receive(&self, mut body: Incoming) -> Result<Bytes, Refusal> {
        let limit_bytes = self.store.options().object_len_max_bytes;
        let too_large = |len_bytes| PublishError::TooLarge { len_bytes, limit_bytes };
        // If the length of a body is not declared, it is checked while the body arrives.
        let announced = body.size_hint().upper().unwrap_or(limit_bytes);
        if announced > limit_bytes {
            return Err(too_large(announced).into());
        }
        let stall = self.patience.stall;
        let end = Instant::now() + self.patience.allowance(announced);
        let mut bytes = BytesMut::with_capacity(body.size_hint().exact().unwrap_or_default() as usize);
        loop {
            let frame = timeout_at(end.min(Instant::now() + stall), body.frame()).await;
            let frame = frame.map_err(|_| Refusal::UploadStalled(stall))?;
            let Some(frame) = frame else { return Ok(bytes.freeze()) };
            let frame = frame.map_err(|error| Refusal::UploadBroken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            let len_bytes = (bytes.len() + data.len()) as u64;
            if len_bytes > limit_bytes {
                return Err(too_large(len_bytes).into());
            }
            bytes.extend_from_slice(&data);
        }
    }

    fn metrics(&self) -> Response<Body> {
        let (names, bytes) = self.store.size();
        self.counters.names.store(names as u64, Ordering::Relaxed);
        self.counters.kept_bytes.store(bytes, Ordering::Relaxed);
        metrics(&self.counters)
    }
}
