//! The model cache of a cell, between the learner and the actors near it.
//!
//! A version is fetched from upstream once, regardless of the number of actors that request it, and is forwarded to all
//! of them while it arrives. The cell serves the pointer to the latest version immediately, provided that the pointer
//! does not exceed a maximum age, and refreshes the pointer in the background.

mod names;
mod objects;
mod pointers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::time::Instant;

use crate::client::sources::Sources;
use crate::client::{Credentials, Endpoint, Times};
use crate::counters::Counters;
use crate::http::body::Body;
use crate::http::object::{self, Content};
use crate::http::pointer::{self, Freshness};
use crate::http::refusal::Refusal;
use crate::http::route::{Route, check_method};
use crate::limits::{
    CELL_CAPACITY_BYTES, MODEL_AGE_MAX, NAMES_MAX, OBJECT_LEN_MAX_BYTES, POINTER_FRESH, UNKNOWN_NAMES_MAX,
    WATCH_IDLE,
};
use crate::server::{Handler, Listen, Origin, Reserved, Server, ServerOptions, metrics};
use objects::Objects;
use pointers::{Known, Pointers};

/// Options of a cell.
#[derive(Clone, Debug)]
pub struct CellOptions {
    /// Options of the HTTP server that actors read from.
    pub server: ServerOptions,
    /// Timeouts for upstream requests.
    pub times: Times,
    /// Credentials for requests to upstream.
    pub credentials: Credentials,
    /// Maximum total size of the cached models, in bytes. The least recently read models are evicted first.
    pub capacity_bytes: u64,
    /// Maximum size of a model fetched from upstream, in bytes.
    pub object_len_max_bytes: u64,
    /// Freshness lifetime of a pointer. A fresh pointer is served without a request to upstream.
    pub pointer_fresh: Duration,
    /// Maximum age of a pointer that the cell serves while it queries upstream or cannot reach it. If the pointer is
    /// older, the reader's request fails.
    pub model_age_max: Duration,
    /// Maximum number of models that the cell caches. All versions with the same name count as one model.
    pub names_max: usize,
    /// Maximum number of requested names for which upstream has no model yet. Beyond this number, a new name displaces
    /// the least recently requested one.
    pub unknown_names_max: usize,
    /// Time after which the cell stops watching a model that no reader requests.
    pub watch_idle: Duration,
}

impl Default for CellOptions {
    fn default() -> Self {
        Self {
            server: ServerOptions::default(),
            times: Times::default(),
            credentials: Credentials::default(),
            capacity_bytes: CELL_CAPACITY_BYTES,
            object_len_max_bytes: OBJECT_LEN_MAX_BYTES,
            pointer_fresh: POINTER_FRESH,
            model_age_max: MODEL_AGE_MAX,
            names_max: NAMES_MAX,
            unknown_names_max: UNKNOWN_NAMES_MAX,
            watch_idle: WATCH_IDLE,
        }
    }
}

/// Serves the models of the upstream servers, which are learners, other cells, or HTTP caches in front of them.
/// `upstream` lists the preferred servers first.
///
/// # Errors
/// Fails if there is no upstream, or if the cell cannot listen on an address; the error names the address.
pub async fn serve(upstream: &[Endpoint], listen: &[Listen], options: CellOptions) -> io::Result<Server> {
    serve_at(upstream, Reserved::all(listen)?, options).await
}

/// Serves like [`serve`], but on addresses that are already reserved.
pub(crate) async fn serve_at(
    upstream: &[Endpoint],
    reserved: Vec<Reserved>,
    options: CellOptions,
) -> io::Result<Server> {
    let sources =
        Arc::new(Sources::new(upstream, options.times, &options.credentials).map_err(io::Error::other)?);
    let counters = Arc::<Counters>::default();
    let cell = Cell {
        objects: Objects::new(Arc::clone(&sources), &options, Arc::clone(&counters)),
        freshness: Freshness { fresh: options.pointer_fresh, stale: options.model_age_max },
        pointers: Pointers::new(sources, options.clone(), Arc::clone(&counters)),
        counters,
    };
    Server::start(Arc::new(cell), reserved, options.server).await
}

struct Cell {
    objects: Objects,
    pointers: Pointers,
    freshness: Freshness,
    counters: Arc<Counters>,
}

impl Handler for Cell {
    async fn answer(&self, request: Request<Incoming>, _: Origin) -> Result<Response<Body>, Refusal> {
        check_method(request.method(), "GET, HEAD")?;
        let head = (request.method(), request.headers());
        match Route::parse(request.uri())? {
            Route::Metrics => Ok(self.metrics()),
            Route::Object { name, version } => {
                let found = self.objects.get(&name, version).await?;
                let content = Content::Arriving(Arc::clone(&found));
                object::answer(head.0, head.1, found.manifest(), content)
            }
            Route::Latest { name, query } => {
                let came = Instant::now();
                let Known { manifest, age } = match query.wait {
                    None => self.pointers.latest(&name).await?,
                    Some(wait) => self.pointers.newer(&name, query.after, wait).await?,
                };
                let answer = match manifest {
                    Some(manifest) => pointer::answer(head, query, &manifest, age, self.freshness)?,
                    None => pointer::nothing_newer(age, query, self.freshness),
                };
                Ok(pointer::held(answer, came.elapsed()))
            }
        }
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl Cell {
    fn metrics(&self) -> Response<Body> {
        let (known, unknown) = self.pointers.lens();
        self.counters.names.store(known as u64, Ordering::Relaxed);
        self.counters.names_unknown.store(unknown as u64, Ordering::Relaxed);
        self.counters.kept_bytes.store(self.objects.kept_bytes(), Ordering::Relaxed);
        metrics(&self.counters)
    }
}

/// Converts the error of an upstream request to the refusal that is sent to the reader.
fn refusal_of(error: &crate::client::ModelError, name: &crate::ModelName) -> Refusal {
    use crate::client::ModelError;
    match error {
        ModelError::NotFound { .. } => Refusal::UnknownModel(name.clone()),
        ModelError::TooLarge { len_bytes, limit_bytes, .. } => {
            Refusal::SourceTooLarge { len_bytes: *len_bytes, limit_bytes: *limit_bytes }
        }
        error => Refusal::SourceFailed(error.to_string()),
    }
}
