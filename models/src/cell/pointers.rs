//! The pointers of a cell: stale ones are served while upstream is asked, up to a bound.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

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
    all: Mutex<HashMap<ModelName, Arc<Pointer>>>,
}

#[derive(Debug)]
struct Pointer {
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
        Self { sources, options, counters, all: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The latest version: at once if it is fresh, or stale within the bound; otherwise as soon as upstream
    /// has answered.
    pub(super) async fn latest(&self, name: &ModelName) -> Result<Known, Refusal> {
        let pointer = self.pointer(name)?;
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
        let pointer = self.pointer(name)?;
        let mut state = pointer.state.subscribe();
        self.watch(&pointer);
        loop {
            let known = state.borrow_and_update().within(self.options.model_age_max);
            let is_newer = |manifest: &Manifest| after.is_none_or(|after| manifest.version > after);
            if let Some((manifest, age)) = known.filter(|(manifest, _)| is_newer(manifest)) {
                return Ok(Known { manifest: Some(manifest), age });
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

    /// The entry of a model. If there are too many, one that nobody has asked for lately gives way.
    fn pointer(&self, name: &ModelName) -> Result<Arc<Pointer>, Refusal> {
        let now = Instant::now();
        let mut all = self.lock();
        if !all.contains_key(name) && all.len() >= self.options.names_max {
            let idle = self.options.watch_idle;
            all.retain(|_, it| it.state.borrow().wanted_at.is_some_and(|at| at.elapsed() < idle));
            if all.len() >= self.options.names_max {
                return Err(Refusal::Busy { what: "names of models", limit: self.options.names_max });
            }
        }
        let entry = all.entry(name.clone()).or_insert_with(|| {
            Arc::new(Pointer {
                name: name.clone(),
                state: watch::Sender::default(),
                asking: tokio::sync::Mutex::default(),
                is_watched: AtomicBool::default(),
            })
        });
        entry.state.send_if_modified(|state| {
            state.wanted_at = Some(now);
            false
        });
        Ok(Arc::clone(entry))
    }

    fn asker(&self) -> Asker {
        let (sources, counters) = (Arc::clone(&self.sources), Arc::clone(&self.counters));
        Asker { sources, counters, options: self.options }
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

    fn lock(&self) -> MutexGuard<'_, HashMap<ModelName, Arc<Pointer>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks upstream, in tasks of its own.
struct Asker {
    sources: Arc<Sources>,
    counters: Arc<Counters>,
    options: CellOptions,
}

impl Asker {
    /// Asks once; who comes while another one asks takes what that one gets.
    async fn refresh(&self, pointer: &Pointer) {
        let came = Instant::now();
        let _asking = pointer.asking.lock().await;
        if pointer.state.borrow().answered_at.is_some_and(|at| at >= came) {
            return;
        }
        self.ask(pointer, Wanted::default()).await;
    }

    /// Waits for new versions, again and again, until nobody wants them any more.
    async fn watch(self, pointer: Arc<Pointer>) {
        let is_wanted = || {
            let wanted_at = pointer.state.borrow().wanted_at;
            pointer.state.receiver_count() > 0
                || wanted_at.is_some_and(|at| at.elapsed() < self.options.watch_idle)
        };
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
    async fn ask_in_turn(&self, pointer: &Pointer, wait: Duration) {
        let after = pointer.state.borrow().manifest.as_ref().map(|manifest| manifest.version);
        // What is not known yet, or has been too long ago, is asked for without waiting.
        let is_known = pointer.state.borrow().within(self.options.pointer_fresh + wait).is_some();
        if !self.ask(pointer, Wanted { after, wait: is_known.then_some(wait) }).await {
            sleep(WATCH_PAUSE).await;
        }
    }

    /// Asks, and notes what upstream says. Whether it says anything of use.
    async fn ask(&self, pointer: &Pointer, wanted: Wanted) -> bool {
        Counters::add(&self.counters.pointer_requests, 1);
        let answer = self.sources.latest(&pointer.name, wanted).await;
        let is_answer = answer.is_ok();
        pointer.state.send_modify(|state| {
            state.answered_at = Some(Instant::now());
            match answer {
                Ok(pointer) => {
                    state.manifest = pointer.manifest.or_else(|| state.manifest.take());
                    state.as_of = Some(pointer.as_of);
                    state.failure = None;
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
