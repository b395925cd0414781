//! Pointers of a cell to the latest versions. While the cell queries upstream, it serves stale pointers up to a maximum
//! age.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::names::Names;
use super::{CellOptions, refusal_of};
use crate::client::sources::Sources;
use crate::client::{ModelError, Wanted};
use crate::counters::Counters;
use crate::http::refusal::Refusal;
use crate::{Manifest, ModelName};

/// The pause between an upstream error and the next query. The discovery of a new version can be delayed by this much.
const WATCH_PAUSE: Duration = Duration::from_millis(250);
/// Maximum time for which the cell asks upstream to hold a request that waits for a new version.
const WATCH_WAIT_MAX: Duration = Duration::from_secs(10);

/// A pointer that the cell can serve, and the time since the pointer was last known to be the latest.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Manifest of the version; `None` if no version is newer than the one that the reader already has.
    pub(super) manifest: Option<Manifest>,
    pub(super) age: Duration,
}

/// Pointers to the latest versions of all requested models.
#[derive(Debug)]
pub(super) struct Pointers {
    sources: Arc<Sources>,
    options: CellOptions,
    counters: Arc<Counters>,
    names: Arc<Mutex<Names>>,
}

/// State of one model.
#[derive(Debug)]
pub(super) struct Pointer {
    name: ModelName,
    state: watch::Sender<State>,
    /// Lock held by the task that queries upstream.
    asking: tokio::sync::Mutex<()>,
    is_watched: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct State {
    manifest: Option<Manifest>,
    /// Time at which the pointer was last known to be the latest. It precedes `answered_at`, the time at which the
    /// response arrived.
    as_of: Option<Instant>,
    answered_at: Option<Instant>,
    failure: Option<ModelError>,
    wanted_at: Option<Instant>,
    /// Whether this model's name has been displaced by another one.
    is_displaced: bool,
}

impl Pointer {
    fn new(name: &ModelName) -> Self {
        Self {
            name: name.clone(),
            state: watch::Sender::default(),
            asking: tokio::sync::Mutex::default(),
            is_watched: AtomicBool::default(),
        }
    }

    pub(super) fn name(&self) -> &ModelName {
        &self.name
    }

    /// Returns whether any reader is waiting for a newer version.
    pub(super) fn has_readers(&self) -> bool {
        self.state.receiver_count() > 0
    }

    pub(super) fn wanted_at(&self) -> Option<Instant> {
        self.state.borrow().wanted_at
    }

    /// Returns whether a reader is waiting, or has requested the pointer within `idle`.
    pub(super) fn is_wanted(&self, idle: Duration) -> bool {
        self.has_readers() || self.wanted_at().is_some_and(|at| at.elapsed() < idle)
    }
}

impl State {
    /// Returns the pointer and its age if it is no older than `age_max`.
    fn within(&self, age_max: Duration) -> Option<(Manifest, Duration)> {
        let age = self.as_of?.elapsed();
        (age <= age_max).then(|| self.manifest.clone().map(|manifest| (manifest, age)))?
    }
}

impl Pointers {
    pub(super) fn new(sources: Arc<Sources>, options: CellOptions, counters: Arc<Counters>) -> Self {
        Self { sources, options, counters, names: Arc::default() }
    }

    /// Returns the numbers of known and unknown names.
    pub(super) fn lens(&self) -> (usize, usize) {
        let names = lock(&self.names);
        (names.known_len(), names.unknown_len())
    }

    /// Returns the latest version. If the pointer is fresh, or stale but no older than the maximum age, returns it
    /// immediately. Otherwise, waits for upstream's response.
    pub(super) async fn latest(&self, name: &ModelName) -> Result<Known, Refusal> {
        let pointer = self.pointer(name);
        let known = pointer.state.borrow().within(self.options.model_age_max);
        if let Some((manifest, age)) = known {
            if age > self.options.pointer_fresh {
                Counters::add(&self.counters.stale_pointers_served, 1);
                self.refresh_beside(&pointer);
            }
            return Ok(Known { manifest: Some(manifest), age });
        }
        self.refresher().refresh(&pointer).await;
        self.judge(&pointer)
    }

    /// Returns the latest version as soon as it is newer than `after`. If this takes longer than `wait`, returns no
    /// manifest.
    pub(super) async fn newer(
        &self,
        name: &ModelName,
        after: Option<u64>,
        wait: Duration,
    ) -> Result<Known, Refusal> {
        let end = Instant::now() + wait;
        let pointer = self.pointer(name);
        let mut state = pointer.state.subscribe();
        self.watch(&pointer);
        loop {
            let known = state.borrow_and_update().within(self.options.model_age_max);
            let is_newer = |manifest: &Manifest| after.is_none_or(|after| manifest.version > after);
            if let Some((manifest, age)) = known.filter(|(manifest, _)| is_newer(manifest)) {
                return Ok(Known { manifest: Some(manifest), age });
            }
            if state.borrow().is_displaced {
                let limit = self.options.unknown_names_max;
                return Err(Refusal::Busy { what: "names that upstream does not have", limit });
            }
            if timeout_at(end, state.changed()).await.is_err() {
                // A timeout proves that there is no newer version only if the pointer is recent enough.
                return self.judge(&pointer).map(|Known { age, .. }| Known { manifest: None, age });
            }
        }
    }

    /// Returns the pointer. If it is missing or too old, returns the reason as a refusal.
    fn judge(&self, pointer: &Pointer) -> Result<Known, Refusal> {
        let state = pointer.state.borrow().clone();
        let limit = self.options.model_age_max;
        if let Some((manifest, age)) = state.within(limit) {
            return Ok(Known { manifest: Some(manifest), age });
        }
        match (state.as_of, state.failure) {
            (Some(as_of), error) if !matches!(error, Some(ModelError::NotFound { .. })) => {
                let reason = error.map_or_else(|| "no response yet".to_owned(), |error| error.to_string());
                Err(Refusal::too_old(&pointer.name, as_of.elapsed(), limit, &reason))
            }
            (_, Some(error)) => Err(refusal_of(&error, &pointer.name)),
            (_, None) => Err(Refusal::SourceFailed("no response yet".to_owned())),
        }
    }

    /// Returns the entry of a model. Creates the entry if necessary.
    fn pointer(&self, name: &ModelName) -> Arc<Pointer> {
        let mut names = lock(&self.names);
        let known = names.get(name).map(Arc::clone);
        let (pointer, displaced) = known.map_or_else(
            || {
                let pointer = Arc::new(Pointer::new(name));
                let displaced = names.add(&pointer, self.options.unknown_names_max);
                (pointer, displaced)
            },
            |pointer| (pointer, None),
        );
        pointer.state.send_if_modified(|state| {
            state.wanted_at = Some(Instant::now());
            false
        });
        drop(names);
        if let Some(displaced) = displaced {
            Counters::add(&self.counters.names_displaced, 1);
            // This stops watching the displaced name, and notifies the readers that are waiting for it.
            displaced.state.send_modify(|state| state.is_displaced = true);
        }
        pointer
    }

    fn refresher(&self) -> Refresher {
        let (sources, counters) = (Arc::clone(&self.sources), Arc::clone(&self.counters));
        Refresher { sources, counters, names: Arc::clone(&self.names), options: self.options.clone() }
    }

    fn refresh_beside(&self, pointer: &Arc<Pointer>) {
        // Another task is already asking upstream.
        if pointer.asking.try_lock().is_err() {
            return;
        }
        let (refresher, pointer) = (self.refresher(), Arc::clone(pointer));
        tokio::spawn(async move { refresher.refresh(&pointer).await });
    }

    /// Starts a task that watches upstream for new versions until no reader wants them, unless such a task is already
    /// running.
    fn watch(&self, pointer: &Arc<Pointer>) {
        if !pointer.is_watched.load(Ordering::Acquire) {
            // If another task already watches the pointer, the new task ends immediately.
            tokio::spawn(self.refresher().watch(Arc::clone(pointer)));
        }
    }
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Client that sends requests to upstream from background tasks.
struct Refresher {
    sources: Arc<Sources>,
    counters: Arc<Counters>,
    names: Arc<Mutex<Names>>,
    options: CellOptions,
}

impl Refresher {
    /// Queries upstream once. If another task is already querying upstream, waits for that task and uses its result.
    async fn refresh(&self, pointer: &Arc<Pointer>) {
        let came = Instant::now();
        let _asking = pointer.asking.lock().await;
        if pointer.state.borrow().answered_at.is_some_and(|at| at >= came) {
            return;
        }
        self.ask(pointer, Wanted::default()).await;
    }

    /// Waits for new versions repeatedly until no reader wants them.
    async fn watch(self, pointer: Arc<Pointer>) {
        let is_wanted = || pointer.is_wanted(self.options.watch_idle) && !pointer.state.borrow().is_displaced;
        // Each response renews the pointer, so the wait must be shorter than the pointer's maximum age.
        let wait = WATCH_WAIT_MAX.min(self.options.model_age_max / 3);
        // A reader that arrived while this task was ending saw the pointer as still watched, so check once more.
        while is_wanted() && !pointer.is_watched.swap(true, Ordering::AcqRel) {
            while is_wanted() {
                self.ask_in_turn(&pointer, wait).await;
            }
            pointer.is_watched.store(false, Ordering::Release);
        }
    }

    /// Queries upstream once. If the pointer is no more than `wait` past its freshness lifetime, asks upstream to hold
    /// the request until a newer version appears, for at most `wait`.
    async fn ask_in_turn(&self, pointer: &Arc<Pointer>, wait: Duration) {
        let after = pointer.state.borrow().manifest.as_ref().map(|manifest| manifest.version);
        // If the pointer is unknown or too old, ask without waiting.
        let is_known = pointer.state.borrow().within(self.options.pointer_fresh + wait).is_some();
        if !self.ask(pointer, Wanted { after, wait: is_known.then_some(wait) }).await {
            sleep(WATCH_PAUSE).await;
        }
    }

    /// Queries upstream and records the response. Returns whether the query succeeded.
    async fn ask(&self, pointer: &Arc<Pointer>, wanted: Wanted) -> bool {
        Counters::add(&self.counters.pointer_requests, 1);
        let answer = self.sources.latest(&pointer.name, wanted).await;
        let is_answer = answer.is_ok();
        if is_answer {
            lock(&self.names).promote(pointer, self.options.names_max, self.options.watch_idle);
        }
        pointer.state.send_modify(|state| {
            state.answered_at = Some(Instant::now());
            match answer {
                Ok(pointer) => {
                    state.manifest = pointer.manifest.or_else(|| state.manifest.take());
                    state.as_of = Some(pointer.as_of);
                    state.failure = None;
                    state.is_displaced = false;
                }
                Err(error) => {
                    Counters::add(&self.counters.pointer_failures, 1);
                    state.failure = Some(error);
                }
            }
        });
        is_answer
    }
}
