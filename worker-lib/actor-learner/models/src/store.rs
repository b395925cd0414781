//! The learner's models: immutable versions, and which is the latest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tokio::sync::watch;

use crate::limits::{NAMES_MAX, OBJECT_LEN_MAX_BYTES, VERSIONS_KEPT};
use crate::{Manifest, ModelName};

/// How much a store keeps.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Versions of each model, at least 2: the latest ones. Readers of an older one may read on.
    pub versions_kept: usize,
    /// Bytes of the largest object.
    pub object_len_max_bytes: u64,
    /// Models, each with a name of its own.
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
    /// What is known of it.
    pub manifest: Manifest,
    /// The model: all readers share them.
    pub bytes: Bytes,
}

/// Why a version is not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Versions only increase.
    #[error("version {version} of model {name} is not newer than the latest, {latest}")]
    NotNewer {
        /// The model.
        name: ModelName,
        /// The version offered.
        version: u64,
        /// The latest there is.
        latest: u64,
    },
    /// The object is larger than the store takes.
    #[error("model of {len_bytes} bytes: expected at most {limit_bytes}")]
    TooLarge {
        /// Bytes offered.
        len_bytes: u64,
        /// Bytes that are taken.
        limit_bytes: u64,
    },
    /// A model has at least one byte.
    #[error("model of 0 bytes: expected at least 1")]
    Empty,
    /// There are too many models.
    #[error("model {name} would be one more than {limit}, the most that this store keeps")]
    TooManyNames {
        /// The model offered.
        name: ModelName,
        /// Models that are kept.
        limit: usize,
    },
}

/// What a store has of a model.
#[derive(Clone, Debug)]
pub enum Found {
    /// The version.
    Object(Arc<Object>),
    /// Not this version: those that are kept.
    OtherVersions(Vec<u64>),
    /// No model of that name.
    Nothing,
}

/// The learner's models. Shared by threads; publishing is atomic.
#[derive(Debug)]
pub struct ModelStore {
    options: StoreOptions,
    models: RwLock<BTreeMap<ModelName, VecDeque<Arc<Object>>>>,
    /// How often something was published.
    published: watch::Sender<u64>,
}

impl ModelStore {
    /// Without models.
    pub fn new(options: StoreOptions) -> Self {
        let versions_kept = options.versions_kept.max(2);
        let options = StoreOptions { versions_kept, ..options };
        Self { options, models: RwLock::default(), published: watch::Sender::new(0) }
    }

    /// How much it keeps.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Makes a version the latest; the oldest one beyond [`StoreOptions::versions_kept`] goes.
    ///
    /// The same bytes under the number of the latest version are no error: an answer may have been lost.
    ///
    /// # Errors
    /// If the version is not newer, or the store is not made for it.
    pub fn publish(&self, name: &ModelName, version: u64, bytes: Bytes) -> Result<Manifest, PublishError> {
        let (len_bytes, limit_bytes) = (bytes.len() as u64, self.options.object_len_max_bytes);
        if len_bytes > limit_bytes {
            return Err(PublishError::TooLarge { len_bytes, limit_bytes });
        }
        if len_bytes == 0 {
            return Err(PublishError::Empty);
        }
        // Before the lock: readers do not wait for digests.
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

    /// The latest version.
    pub fn latest(&self, name: &ModelName) -> Option<Arc<Object>> {
        self.read().get(name)?.back().cloned()
    }

    /// A version.
    pub fn get(&self, name: &ModelName, version: u64) -> Found {
        let models = self.read();
        let Some(versions) = models.get(name) else { return Found::Nothing };
        let found = versions.iter().find(|object| object.manifest.version == version);
        found.map_or_else(
            || Found::OtherVersions(versions.iter().map(|object| object.manifest.version).collect()),
            |object| Found::Object(Arc::clone(object)),
        )
    }

    /// The latest version as soon as it is newer than `after`, or there is any if that is none.
    pub async fn newer(&self, name: &ModelName, after: Option<u64>) -> Arc<Object> {
        let mut published = self.published.subscribe();
        loop {
            published.mark_unchanged();
            let latest = self.latest(name);
            if let Some(object) = latest.filter(|object| after.is_none_or(|it| object.manifest.version > it))
            {
                return object;
            }
            published.changed().await.expect("the sender is in this store, which is borrowed");
        }
    }

    /// Names, and the bytes of all versions that are kept.
    pub fn size(&self) -> (usize, u64) {
        let models = self.read();
        let bytes = models.values().flatten().map(|object| object.manifest.len_bytes).sum();
        (models.len(), bytes)
    }

    /// Nobody panics while holding the lock; if somebody did, the models would still be whole.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<ModelName, VecDeque<Arc<Object>>>> {
        self.models.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<ModelName, VecDeque<Arc<Object>>>> {
        self.models.write().unwrap_or_else(PoisonError::into_inner)
    }
}
