//! The pointers of a cell: stale ones are served while upstream is asked, up to a bound.

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

/// After an error of upstream's; also the longest time in which a version may come unnoticed.
const WATCH_PAUSE: Duration = Duration::from_millis(250);
/// The longest that upstream is asked to wait.
const WATCH_WAIT_MAX: Duration = Duration::from_secs(10);

/// A pointer, and how long ago it was certainly the latest.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// None: nothing newer than was asked for.
    pub(super) manifest: Option<Manifest>,
    pub(super) age: Duration,
}

/// The pointers to the latest versions of all models that were asked for.
#[derive(Debug)]
pub(super) struct Pointers {
    sources: Arc<Sources>,
    options: CellOptions,
    counters: Arc<Counters>,
    names: Arc<Mutex<Names>>,
}

/// What is known of one model.
#[derive(Debug)]
pub(super) struct Pointer {
    name: ModelName,
    state: watch::Sender<State>,
    /// Held by the one who asks upstream.
    asking: tokio::sync::Mutex<()>,
    is_watched: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct State {
    manifest: Option<Manifest>,
    /// When upstream's source said so: before `answered_at`.
    as_of: Option<Instant>,
    answered_at: Option<Instant>,
    failure: Option<ModelError>,
    wanted_at: Option<Instant>,
    /// Its place was needed for another name.
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

    /// Whether somebody waits for a newer version.
    pub(super) fn has_readers(&self) -> bool {
        self.state.receiver_count() > 0
    }

    pub(super) fn wanted_at(&self) -> Option<Instant> {
        self.state.borrow().wanted_at
    }

    /// Whether somebody waits, or has asked within `idle`.
    pub(super) fn is_wanted(&self, idle: Duration) -> bool {
        self.has_readers() || self.wanted_at().is_some_and(|at| at.elapsed() < idle)
    }
}

impl State {
    /// The pointer, if it is no older than this.
    fn within(&self, age_max: Duration) -> Option<(Manifest, Duration)> {
        let age = self.as_of?.elapsed();
        (age <= age_max).then(|| self.manifest.clone().map(|manifest| (manifest, age)))?
    }
}

impl Pointers {
    pub(super) fn new(sources: Arc<Sources>, options: CellOptions, counters: Arc<Counters>) -> Self {
        Self { sources, options, counters, names: Arc::default() }
    }

    /// Names of models that upstream has, and others.
    pub(super) fn lens(&self) -> (usize, usize) {
        let names = lock(&self.names);
        (names.known_len(), names.unknown_len())
    }

    /// The latest version: at once if it is fresh, or stale within the bound; otherwise as soon as upstream
    /// has answered.
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
        self.asker().refresh(&pointer).await;
        self.judge(&pointer)
    }

    /// The latest version as soon as it is newer than `after`, or none when the time is over.
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
                // Nothing newer is good news only from a pointer that is known well enough.
                return self.judge(&pointer).map(|Known { age, .. }| Known { manifest: None, age });
            }
        }
    }

    /// What is known, or why it is not known well enough.
    fn judge(&self, pointer: &Pointer) -> Result<Known, Refusal> {
        let state = pointer.state.borrow().clone();
        let limit = self.options.model_age_max;
        if let Some((manifest, age)) = state.within(limit) {
            return Ok(Known { manifest: Some(manifest), age });
        }
        match (state.as_of, state.failure) {
            (Some(as_of), error) if !matches!(error, Some(ModelError::NotFound { .. })) => {
                let reason = error.map_or_else(|| "no answer yet".to_owned(), |error| error.to_string());
                Err(Refusal::too_old(&pointer.name, as_of.elapsed(), limit, &reason))
            }
            (_, Some(error)) => Err(refusal_of(&error, &pointer.name)),
            (_, None) => Err(Refusal::SourceFailed("no answer yet".to_owned())),
        }
    }

    /// The entry of a model.
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
            // Ends its watch, and tells its readers.
            displaced.state.send_modify(|state| state.is_displaced = true);
        }
        pointer
    }

    fn asker(&self) -> Asker {
        let (sources, counters) = (Arc::clone(&self.sources), Arc::clone(&self.counters));
        Asker { sources, counters, names: Arc::clone(&self.names), options: self.options.clone() }
    }

    fn refresh_beside(&self, pointer: &Arc<Pointer>) {
        // Somebody is at it already.
        if pointer.asking.try_lock().is_err() {
            return;
        }
        let (asker, pointer) = (self.asker(), Arc::clone(pointer));
        tokio::spawn(async move { asker.refresh(&pointer).await });
    }

    /// Has upstream tell of new versions at once, as long as somebody waits for them.
    fn watch(&self, pointer: &Arc<Pointer>) {
        if !pointer.is_watched.load(Ordering::Acquire) {
            // One that comes too late finds it watched, and ends.
            tokio::spawn(self.asker().watch(Arc::clone(pointer)));
        }
    }
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks upstream, in tasks of its own.
struct Asker {
    sources: Arc<Sources>,
    counters: Arc<Counters>,
    names: Arc<Mutex<Names>>,
    options: CellOptions,
}

impl Asker {
    /// Asks once; who comes while another one asks takes what that one gets.
    async fn refresh(&self, pointer: &Arc<Pointer>) {
        let came = Instant::now();
        let _asking = pointer.asking.lock().await;
        if pointer.state.borrow().answered_at.is_some_and(|at| at >= came) {
            return;
        }
        self.ask(pointer, Wanted::default()).await;
    }

    /// Waits for new versions, again and again, until nobody wants them any more.
    async fn watch(self, pointer: Arc<Pointer>) {
        let is_wanted = || pointer.is_wanted(self.options.watch_idle) && !pointer.state.borrow().is_displaced;
        // Each answer renews the pointer: the bound on its age must not pass meanwhile.
        let wait = WATCH_WAIT_MAX.min(self.options.model_age_max / 3);
        // Who came while this ended has seen it watched: looked at once more after that.
        while is_wanted() && !pointer.is_watched.swap(true, Ordering::AcqRel) {
            while is_wanted() {
                self.ask_in_turn(&pointer, wait).await;
            }
            pointer.is_watched.store(false, Ordering::Release);
        }
    }

    /// Asks once, and waits for a newer version if there is one that is known well enough.
    async fn ask_in_turn(&self, pointer: &Arc<Pointer>, wait: Duration) {
        let after = pointer.state.borrow().manifest.as_ref().map(|manifest| manifest.version);
        // What is not known yet, or has been too long ago, is asked for without waiting.
        let is_known = pointer.state.borrow().within(self.options.pointer_fresh + wait).is_some();
        if !self.ask(pointer, Wanted { after, wait: is_known.then_some(wait) }).await {
            sleep(WATCH_PAUSE).await;
        }
    }

    /// Asks, and notes what upstream says. Whether it says anything of use.
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
