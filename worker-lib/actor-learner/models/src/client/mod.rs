//! Client that actors use to read models.

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

/// Maximum number of attempts to read a model. A read is repeated if the version disappears or the received bytes fail
/// verification.
const READ_ATTEMPTS: u32 = 4;

/// Timeouts of a client.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Timeout for opening a connection.
    pub connect: Duration,
    /// Timeout for the head of a response and for each further piece of its body. When it expires, the client tries
    /// another source.
    pub stall: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { connect: CONNECT_TIMEOUT, stall: SOURCE_STALL_TIMEOUT }
    }
}

/// Credentials of a client, and the CAs that it trusts. By default, a client has no credentials and cannot use TLS.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Token sent with each request.
    pub token: Option<Token>,
    /// TLS configuration for `https://` endpoints.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::TlsClient>,
}

/// Options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Timeouts.
    pub times: Times,
    /// Credentials sent to the sources.
    pub credentials: Credentials,
    /// Method for verifying the received bytes.
    pub verification: Verification,
    /// Maximum size of a model, in bytes.
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

/// Receiver of a model's bytes as they arrive.
pub trait Sink: Send {
    /// Begins a model. Bytes that were received before this call must be discarded.
    fn begin(&mut self, manifest: &Manifest);

    /// Receives the next bytes.
    fn take(&mut self, bytes: Bytes);
}

/// Model that was read.
#[derive(Clone, Debug)]
pub struct Model {
    /// Metadata of the model. The bytes have been verified against it.
    pub manifest: Manifest,
    /// Bytes of the model.
    pub bytes: Bytes,
    /// Time between receiving the manifest of the version and receiving the last byte of the model.
    pub latency: Duration,
}

/// Statistics of a client since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientStats {
    /// Number of models read.
    pub models: u64,
    /// Total size of the models that were read, in bytes.
    pub model_bytes: u64,
    /// Number of downloads that were interrupted and then resumed, possibly from another source.
    pub resumes: u64,
    /// Number of downloads that were repeated because the received bytes failed verification.
    pub wrong_bytes: u64,
}

/// Client that reads the versions of a model from cells, and from the learner if the cells fail.
#[derive(Debug)]
pub struct ModelClient {
    name: ModelName,
    sources: Arc<Sources>,
    options: ClientOptions,
    current: Option<Manifest>,
    /// Time at which the current version was last known to be the latest.
    as_of: Option<Instant>,
    stats: ClientStats,
}

impl ModelClient {
    /// Creates a client that has not read any version yet. `endpoints` lists the preferred endpoints first and the
    /// learner last.
    ///
    /// # Errors
    /// Fails if there are no endpoints, or if one is `https://` and there is no [`Credentials::tls`].
    pub fn new(name: ModelName, endpoints: &[Endpoint], options: ClientOptions) -> Result<Self, ModelError> {
        let sources = Arc::new(Sources::new(endpoints, options.times, &options.credentials)?);
        Ok(Self { name, sources, options, current: None, as_of: None, stats: ClientStats::default() })
    }

    /// Returns the manifest of the version that was read last, if any.
    pub fn current(&self) -> Option<&Manifest> {
        self.current.as_ref()
    }

    /// Returns the time since the current version was last known to be the latest. This is an upper bound on the
    /// staleness of the version.
    pub fn model_age(&self) -> Option<Duration> {
        self.as_of.map(|as_of| as_of.elapsed())
    }

    /// Returns the statistics of the client.
    pub fn stats(&self) -> ClientStats {
        self.stats
    }

    /// Returns the manifest of the latest version.
    ///
    /// # Errors
    /// Returns the error of the preferred source if no source answers.
    pub async fn latest(&mut self) -> Result<Manifest, ModelError> {
        let pointer = self.sources.latest(&self.name, Wanted::default()).await?;
        self.note(&pointer);
        pointer.manifest.ok_or_else(|| ModelError::BadAnswer {
            source_name: self.name.to_string(),
            what: "the response does not contain the manifest of the latest version".to_owned(),
        })
    }

    /// Reads the latest version if it is newer than the current one.
    ///
    /// # Errors
    /// Fails if no source has the version.
    pub async fn poll(&mut self) -> Result<Option<Model>, ModelError> {
        self.read(Wanted::default()).await
    }

    /// Waits until there is a version that is newer than the current one, and reads it. Waits for at most `wait` or
    /// [`WAIT_MAX`], whichever is shorter.
    ///
    /// # Errors
    /// Fails if no source has the version.
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
                // The learner no longer keeps this version, because it has published too many newer ones in the
                // meantime.
                Err(ModelError::NotFound { .. }) if attempt < READ_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads one version into a sink, and returns the time that the read took. The version does not become the current
    /// one.
    ///
    /// # Errors
    /// Fails if no source delivers the bytes that the manifest describes. The caller must then discard the bytes in the
    /// sink.
    pub async fn fetch(&mut self, manifest: &Manifest, sink: &mut dyn Sink) -> Result<Duration, ModelError> {
        let limit_bytes = self.options.len_max_bytes;
        if manifest.len_bytes > limit_bytes {
            let (source_name, len_bytes) = (self.name.to_string(), manifest.len_bytes);
            return Err(ModelError::TooLarge { source_name, len_bytes, limit_bytes });
        }
        let begin = Instant::now();
        for attempt in 1.. {
            match self.try_fetch(manifest, sink).await {
                // From now on, ask the source of the wrong bytes last.
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

    /// Records a pointer. If the pointer names no newer version, the current version is known to have been the latest
    /// at the pointer's `as_of` time.
    fn note(&mut self, pointer: &Pointer) {
        let Some(current) = &self.current else { return };
        if pointer.manifest.as_ref().is_none_or(|latest| latest.version == current.version) {
            self.as_of = self.as_of.max(Some(pointer.as_of));
        }
    }
}

/// Publishes a version to a learner that accepts models from other processes.
///
/// # Errors
/// Returns the error of the learner.
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
        what: format!("invalid manifest: {error}"),
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
