//! Store of the learner's models. It holds immutable versions, including the latest version of each model.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tokio::sync::watch;

use crate::limits::{NAMES_MAX, OBJECT_LEN_MAX_BYTES, VERSIONS_KEPT};
use crate::{Manifest, ModelName};

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Number of versions of each model to keep; at least 2, so that readers of an older version can finish reading it.
    pub versions_kept: usize,
    /// Maximum size of an object, in bytes.
    pub object_len_max_bytes: u64,
    /// Maximum number of models. All versions with the same name count as one model.
    pub names_max: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            versions_kept: VERSIONS_KEPT,
            object_len_max_bytes: OBJECT_LEN_MAX_BYTES,
            names_max: NAMES_MAX,
        }
    }
}

/// One version of a model.
#[derive(Clone, Debug)]
pub struct Object {
    /// Metadata of the version.
    pub manifest: Manifest,
    /// Bytes of the model, shared by all readers.
    pub bytes: Bytes,
}

/// Reasons why a version cannot be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The version is not greater than the latest one.
    #[error("version {version} of model {name} is not newer than the latest, {latest}")]
    NotNewer {
        /// Name of the model.
        name: ModelName,
        /// Rejected version.
        version: u64,
        /// Latest version in the store.
        latest: u64,
    },
    /// The object is larger than the store allows.
    #[error("the model is {len_bytes} bytes long, expected at most {limit_bytes}")]
    TooLarge {
        /// Size of the rejected object, in bytes.
        len_bytes: u64,
        /// Maximum size, in bytes.
        limit_bytes: u64,
    },
    /// The model is empty.
    #[error("the model is empty")]
    Empty,
    /// The store has reached its maximum number of models.
    #[error("cannot add model {name}: this store already holds its maximum of {limit} models")]
    TooManyNames {
        /// Name of the rejected model.
        name: ModelName,
        /// Maximum number of models.
        limit: usize,
    },
}

/// Result of looking up a version.
#[derive(Clone, Debug)]
pub enum Found {
    /// The requested version.
    Object(Arc<Object>),
    /// The store has no such version of the model. The variant contains the numbers of the versions that it has.
    OtherVersions(Vec<u64>),
    /// The store has no model with this name.
    Nothing,
}

/// Store of the learner's models. Threads may share it; publication is atomic.
#[derive(Debug)]
pub struct ModelStore {
    options: StoreOptions,
    models: RwLock<BTreeMap<ModelName, VecDeque<Arc<Object>>>>,
    /// Number of publications so far.
    published: watch::Sender<u64>,
}

impl ModelStore {
    /// Creates an empty store.
    pub fn new(options: StoreOptions) -> Self {
        let versions_kept = options.versions_kept.max(2);
        let options = StoreOptions { versions_kept, ..options };
        Self { options, models: RwLock::default(), published: watch::Sender::new(0) }
    }

    /// Returns the limits of the store.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Makes a version the latest one. If there are then more than [`StoreOptions::versions_kept`] versions, removes
    /// the oldest one.
    ///
    /// A repeated publication of the same bytes under the latest version number is not an error, because the response
    /// to the first attempt may have been lost.
    ///
    /// # Errors
    /// Fails if the version is not newer than the latest one, or if it exceeds a limit of the store.
    pub fn publish(&self, name: &ModelName, version: u64, bytes: Bytes) -> Result<Manifest, PublishError> {
        let (len_bytes, limit_bytes) = (bytes.len() as u64, self.options.object_len_max_bytes);
        if len_bytes > limit_bytes {
            return Err(PublishError::TooLarge { len_bytes, limit_bytes });
        }
        if len_bytes == 0 {
            return Err(PublishError::Empty);
        }
        // Compute the digests before taking the lock, so that readers do not wait for them.
        let manifest = Manifest::of(version, &bytes);
        let mut models = self.write();
        if !models.contains_key(name) && models.len() >= self.options.names_max {
            return Err(PublishError::TooManyNames { name: name.clone(), limit: self.options.names_max });
        }
        let versions = models.entry(name.clone()).or_default();
        if let Some(latest) = versions.back().map(|object| &object.manifest)
            && latest.version >= version
        {
            let is_same = latest.version == version && latest.sha256 == manifest.sha256;
            let (name, latest) = (name.clone(), latest.clone());
            let error = PublishError::NotNewer { name, version, latest: latest.version };
            return if is_same { Ok(latest) } else { Err(error) };
        }
        versions.push_back(Arc::new(Object { manifest: manifest.clone(), bytes }));
        if versions.len() > self.options.versions_kept {
            versions.pop_front();
        }
        drop(models);
        self.published.send_modify(|count| *count += 1);
        Ok(manifest)
    }

    /// Returns the latest version of a model.
    pub fn latest(&self, name: &ModelName) -> Option<Arc<Object>> {
        self.read().get(name)?.back().cloned()
    }

    /// Looks up a version of a model.
    pub fn get(&self, name: &ModelName, version: u64) -> Found {
        let models = self.read();
        let Some(versions) = models.get(name) else { return Found::Nothing };
        let found = versions.iter().find(|object| object.manifest.version == version);
        found.map_or_else(
            || Found::OtherVersions(versions.iter().map(|object| object.manifest.version).collect()),
            |object| Found::Object(Arc::clone(object)),
        )
    }

    /// Waits until the store has a version greater than `after`, or any version if `after` is `None`. Returns the
    /// latest version.
    pub async fn newer(&self, name: &ModelName, after: Option<u64>) -> Arc<Object> {
        let mut published = self.published.subscribe();
        loop {
            published.mark_unchanged();
            let latest = self.latest(name);
            if let Some(object) = latest.filter(|object| after.is_none_or(|it| object.manifest.version > it))
            {
                return object;
            }
            published.changed().await.expect("the sender must exist as long as the store");
        }
    }

    /// Returns the number of models, and the total size of all kept versions in bytes.
    pub fn size(&self) -> (usize, u64) {
        let models = self.read();
        let bytes = models.values().flatten().map(|object| object.manifest.len_bytes).sum();
        (models.len(), bytes)
    }

    /// Acquires the lock for reading. Poisoning is ignored, because the models are consistent at all times.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<ModelName, VecDeque<Arc<Object>>>> {
        self.models.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<ModelName, VecDeque<Arc<Object>>>> {
        self.models.write().unwrap_or_else(PoisonError::into_inner)
    }
}
