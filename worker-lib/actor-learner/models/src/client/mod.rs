//! What actors read models with.

pub mod blocking;
pub(crate) mod download;
mod error;
mod pointer;
mod source;
pub(crate) mod sources;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use tokio::time::Instant;

pub use error::ModelError;
pub use pointer::Pointer;
pub use source::Endpoint;

use crate::limits::{CONNECT_TIMEOUT, OBJECT_LEN_MAX_BYTES, SOURCE_STALL_TIMEOUT, WAIT_MAX};
use crate::{Manifest, ModelName, Token, Verification};
use download::Download;
pub(crate) use pointer::Wanted;
use sources::Sources;

/// Times that a version may vanish, or come with wrong bytes, before a client gives up.
const READ_ATTEMPTS: u32 = 4;

/// How long sources are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Opening a connection may take so long.
    pub connect: Duration,
    /// An answer's head, or the next piece of its body, may take so long before another source is tried.
    pub stall: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { connect: CONNECT_TIMEOUT, stall: SOURCE_STALL_TIMEOUT }
    }
}

/// What a client shows, and whom it believes. By default it shows nothing, and cannot use TLS.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Shown with each request.
    pub token: Option<Token>,
    /// For endpoints that begin with `https://`.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::TlsClient>,
}

/// What a client wants.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long sources are waited for.
    pub times: Times,
    /// What sources are shown.
    pub credentials: Credentials,
    /// What of the bytes is compared.
    pub verification: Verification,
    /// Bytes of the largest model that is taken.
    pub len_max_bytes: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            times: Times::default(),
            credentials: Credentials::default(),
            verification: Verification::default(),
            len_max_bytes: OBJECT_LEN_MAX_BYTES,
        }
    }
}

/// Takes a model as it arrives.
pub trait Sink: Send {
    /// A model begins: what has come of one before is void.
    fn begin(&mut self, manifest: &Manifest);

    /// The bytes that follow.
    fn take(&mut self, bytes: Bytes);
}

/// A model that was read.
#[derive(Clone, Debug)]
pub struct Model {
    /// What is known of it. Its bytes have been compared with that.
    pub manifest: Manifest,
    /// The model.
    pub bytes: Bytes,
    /// How long it took to read it, once its version was known.
    pub latency: Duration,
}

/// What a client has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientStats {
    /// Models that were read.
    pub models: u64,
    /// Their bytes.
    pub model_bytes: u64,
    /// Downloads that were interrupted and went on, maybe elsewhere.
    pub resumes: u64,
    /// Downloads that came with wrong bytes and began again.
    pub wrong_bytes: u64,
}

/// Reads a model's versions from cells, and from the learner if these fail.
#[derive(Debug)]
pub struct ModelClient {
    name: ModelName,
    sources: Arc<Sources>,
    options: ClientOptions,
    current: Option<Manifest>,
    /// When the current version was certainly the latest.
    as_of: Option<Instant>,
    stats: ClientStats,
}

impl ModelClient {
    /// A client that has no version yet; the preferred endpoints come first, the learner last.
    ///
    /// # Errors
    /// Without endpoints, or if one is `https://` and there is no [`Credentials::tls`].
    pub fn new(name: ModelName, endpoints: &[Endpoint], options: ClientOptions) -> Result<Self, ModelError> {
        let sources = Arc::new(Sources::new(endpoints, options.times, &options.credentials)?);
        Ok(Self { name, sources, options, current: None, as_of: None, stats: ClientStats::default() })
    }

    /// The version that was read last.
    pub fn current(&self) -> Option<&Manifest> {
        self.current.as_ref()
    }

    /// How long ago the current version was certainly the latest: an upper bound on how stale it is.
    pub fn model_age(&self) -> Option<Duration> {
        self.as_of.map(|as_of| as_of.elapsed())
    }

    /// What it has done.
    pub fn stats(&self) -> ClientStats {
        self.stats
    }

    /// Which version is the latest.
    ///
    /// # Errors
    /// That of the preferred source, if no source answers.
    pub async fn latest(&mut self) -> Result<Manifest, ModelError> {
        let pointer = self.sources.latest(&self.name, Wanted::default()).await?;
        self.note(&pointer);
        pointer.manifest.ok_or_else(|| ModelError::BadAnswer {
            source_name: self.name.to_string(),
            what: "no version, although we did not wait".to_owned(),
        })
    }

    /// Reads the latest version, if it is newer than the current one.
    ///
    /// # Errors
    /// If no source has it.
    pub async fn poll(&mut self) -> Result<Option<Model>, ModelError> {
        self.read(Wanted::default()).await
    }

    /// Waits up to so long, at most [`WAIT_MAX`], for a version that is newer than the current one, and reads it.
    ///
    /// # Errors
    /// If no source has it.
    pub async fn wait_newer(&mut self, wait: Duration) -> Result<Option<Model>, ModelError> {
        let after = self.current.as_ref().map(|manifest| manifest.version);
        self.read(Wanted { after, wait: Some(wait.min(WAIT_MAX)) }).await
    }

    async fn read(&mut self, wanted: Wanted) -> Result<Option<Model>, ModelError> {
        for attempt in 1.. {
            let pointer = self.sources.latest(&self.name, wanted).await?;
            self.note(&pointer);
            let is_newer = |it: &Manifest| self.current.as_ref().is_none_or(|now| it.version > now.version);
            let Some(manifest) = pointer.manifest.filter(is_newer) else { return Ok(None) };
            let mut buffer = Buffer::default();
            match self.fetch(&manifest, &mut buffer).await {
                Ok(latency) => {
                    self.current = Some(manifest.clone());
                    self.as_of = Some(pointer.as_of);
                    return Ok(Some(Model { manifest, bytes: buffer.0.freeze(), latency }));
                }
                // While we read, the learner has gone on by more versions than it keeps.
                Err(ModelError::NotFound { .. }) if attempt < READ_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads one version into a sink, and returns how long that took. It does not become the current one.
    ///
    /// # Errors
    /// If no source has these bytes to the end. What the sink has got is void then.
    pub async fn fetch(&mut self, manifest: &Manifest, sink: &mut dyn Sink) -> Result<Duration, ModelError> {
        let limit_bytes = self.options.len_max_bytes;
        if manifest.len_bytes > limit_bytes {
            let (source_name, len_bytes) = (self.name.to_string(), manifest.len_bytes);
            return Err(ModelError::TooLarge { source_name, len_bytes, limit_bytes });
        }
        let begin = Instant::now();
        for attempt in 1.. {
            match self.try_fetch(manifest, sink).await {
                // The source that was wrong is asked last now.
                Err(ModelError::WrongBytes { .. }) if attempt < READ_ATTEMPTS => self.stats.wrong_bytes += 1,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.stats.models += 1;
        self.stats.model_bytes += manifest.len_bytes;
        Ok(begin.elapsed())
    }

    async fn try_fetch(&mut self, manifest: &Manifest, sink: &mut dyn Sink) -> Result<(), ModelError> {
        let (version, verification) = (manifest.version, self.options.verification);
        let begun = Download::begin(&self.sources, &self.name, version, Some(manifest), verification).await;
        let mut download = begun?;
        sink.begin(manifest);
        loop {
            match download.next().await {
                Ok(Some(bytes)) => sink.take(bytes),
                ended => {
                    self.stats.resumes += u64::from(download.resumes);
                    return ended.map(|_| ());
                }
            }
        }
    }

    /// The current version is as fresh as the word that there is no newer one.
    fn note(&mut self, pointer: &Pointer) {
        let Some(current) = &self.current else { return };
        if pointer.manifest.as_ref().is_none_or(|latest| latest.version == current.version) {
            self.as_of = self.as_of.max(Some(pointer.as_of));
        }
    }
}

/// Publishes a version at a learner that takes models from other processes.
///
/// # Errors
/// What the learner says.
pub async fn publish(
    learner: &Endpoint,
    name: &ModelName,
    version: u64,
    bytes: Bytes,
    options: &ClientOptions,
) -> Result<Manifest, ModelError> {
    let sources = Sources::new(std::slice::from_ref(learner), options.times, &options.credentials)?;
    let answer = sources.put(0, &format!("/models/{name}/{version}"), bytes).await?;
    serde_json::from_slice(&answer).map_err(|error| ModelError::BadAnswer {
        source_name: learner.to_string(),
        what: format!("no manifest: {error}"),
    })
}

#[derive(Debug, Default)]
struct Buffer(BytesMut);

impl Sink for Buffer {
    fn begin(&mut self, manifest: &Manifest) {
        self.0.clear();
        self.0.reserve(manifest.len_bytes as usize);
    }

    fn take(&mut self, bytes: Bytes) {
        self.0.extend_from_slice(&bytes);
    }
}
