//! Cached objects of a cell, each fetched from upstream once.

use std::sync::Arc;

use moka::future::Cache;
use moka::policy::EvictionPolicy;

use super::{CellOptions, refusal_of};
use crate::arriving::{Arriving, Filler};
use crate::client::ModelError;
use crate::client::download::Download;
use crate::client::sources::Sources;
use crate::counters::Counters;
use crate::http::refusal::Refusal;
use crate::{ModelName, Verification};

type Key = (ModelName, u64);

/// Unit in which the cache measures object sizes, in bytes. In this unit, the size of any object fits into the cache's
/// 32-bit weights.
const WEIGHT_UNIT_BYTES: u64 = 1024;

/// Objects that the cell has received or is fetching.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    cache: Cache<Key, Arc<Arriving>>,
    sources: Arc<Sources>,
    len_max_bytes: u64,
    counters: Arc<Counters>,
}

impl Objects {
    pub(super) fn new(sources: Arc<Sources>, options: &CellOptions, counters: Arc<Counters>) -> Self {
        let weight = |_: &Key, object: &Arc<Arriving>| {
            let units = object.manifest().len_bytes.div_ceil(WEIGHT_UNIT_BYTES);
            u32::try_from(units).unwrap_or(u32::MAX)
        };
        let cache = Cache::builder()
            .max_capacity(options.capacity_bytes / WEIGHT_UNIT_BYTES)
            .weigher(weight)
            // Evict the least recently used versions. The default policy would keep a new version only after it had
            // been requested more often than the old ones.
            .eviction_policy(EvictionPolicy::lru())
            .build();
        let len_max_bytes = options.object_len_max_bytes.min(options.capacity_bytes);
        Self { cache, sources, len_max_bytes, counters }
    }

    /// Returns an object as soon as its length is known. Concurrent requests for the same object share one upstream
    /// request.
    pub(super) async fn get(&self, name: &ModelName, version: u64) -> Result<Arc<Arriving>, Refusal> {
        let key = (name.clone(), version);
        let found = self.cache.try_get_with(key, self.fetch(name, version)).await;
        found.map_err(|error| match error.as_ref() {
            ModelError::NotFound { .. } => {
                Refusal::UnknownVersion { name: name.clone(), version, kept: Vec::new() }
            }
            error => refusal_of(error, name),
        })
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.cache.weighted_size() * WEIGHT_UNIT_BYTES
    }

    /// Starts fetching an object. Returns when its length is known; the bytes arrive in the background.
    async fn fetch(&self, name: &ModelName, version: u64) -> Result<Arc<Arriving>, ModelError> {
        Counters::add(&self.counters.fetches, 1);
        let begun = Download::begin(&self.sources, name, version, None, Verification::Crc32c).await;
        let download = begun.and_then(|download| self.check_len(download));
        let download = download.inspect_err(|_| Counters::add(&self.counters.fetches_failed, 1))?;
        let object = Arc::new(Arriving::new(download.manifest().clone()));
        tokio::spawn(self.clone().fill((name.clone(), version), download, Arc::clone(&object)));
        Ok(object)
    }

    fn check_len(&self, download: Download) -> Result<Download, ModelError> {
        let (len_bytes, limit_bytes) = (download.manifest().len_bytes, self.len_max_bytes);
        if len_bytes <= limit_bytes {
            return Ok(download);
        }
        Err(ModelError::TooLarge { source_name: "upstream".to_owned(), len_bytes, limit_bytes })
    }

    async fn fill(self, key: Key, mut download: Download, object: Arc<Arriving>) {
        let mut filler = Filler::new(Arc::clone(&object));
        let error = loop {
            match download.next().await {
                Ok(Some(bytes)) => {
                    Counters::add(&self.counters.fetched_bytes, bytes.len() as u64);
                    filler.write(&bytes);
                }
                Ok(None) => return filler.finish(),
                Err(error) => break error,
            }
        };
        tracing::warn!(model = %key.0, version = key.1, %error, "the download of an object failed");
        Counters::add(&self.counters.fetches_failed, 1);
        // Invalidate the entry first, so that a reader that is asked to retry does not find it.
        self.cache.invalidate(&key).await;
        object.fail(error.to_string());
    }
}
