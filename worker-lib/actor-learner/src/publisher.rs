//! The learner's end of model distribution: tells what the run is, and newer policies.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iswitch_models::learner::LearnerOptions;
use iswitch_models::runtime::Background;
use iswitch_models::{Access, Listen, ModelName, ModelStore, PublishError, ServerOptions, StoreOptions};

use super::{ActorLearnerError, Job, Policy};

/// Publishes from a thread of its own, so that the learner does not wait for digests.
pub struct Publisher {
    store: Arc<ModelStore>,
    server: Background,
    offers: Arc<Offers>,
    thread: Option<JoinHandle<()>>,
    every: Duration,
    /// When a policy was offered last, and after which update.
    offered: Option<(Instant, u64)>,
}

/// The newest policy that is not yet published.
#[derive(Default)]
struct Offers {
    state: Mutex<Offered>,
    changed: Condvar,
}

#[derive(Default)]
struct Offered {
    policy: Option<Policy>,
    is_over: bool,
}

impl Offers {
    fn lock(&self) -> MutexGuard<'_, Offered> {
        // Its fields are replaced whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Policy> {
        let mut state = self.lock();
        loop {
            if let Some(policy) = state.policy.take() {
                return Some(policy);
            }
            if state.is_over {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Publisher {
    /// Serves clients that `access` admits at `listen`, and publishes the description of the run. Policies follow at
    /// least `every` apart.
    ///
    /// # Errors
    /// If it cannot be listened there, or the run cannot be published.
    pub fn start(
        listen: &[Listen],
        access: Access,
        job: &Job,
        every: Duration,
    ) -> Result<Self, ActorLearnerError> {
        let io = |source| ActorLearnerError::Io { what: "serving policies", source };
        let store = Arc::new(ModelStore::new(StoreOptions::default()));
        publish(&store, Job::NAME, job.to_bytes())?;
        let server = ServerOptions { access, ..ServerOptions::default() };
        let options = LearnerOptions { server, ..LearnerOptions::default() };
        let server = Background::learner(Arc::clone(&store), listen, options).map_err(io)?;
        let offers = Arc::new(Offers::default());
        let (own_store, own_offers) = (Arc::clone(&store), Arc::clone(&offers));
        let thread = std::thread::Builder::new()
            .name("publisher".to_owned())
            .spawn(move || publish_all(&own_store, &own_offers))
            .map_err(io)?;
        Ok(Self { store, server, offers, thread: Some(thread), every, offered: None })
    }

    /// Where it listens, with the ports that were chosen.
    pub fn listens(&self) -> &[Listen] {
        self.server.listens()
    }

    /// Whether it is time for a policy of after so many updates.
    pub fn is_due(&self, updates: u64) -> bool {
        self.offered.is_none_or(|(at, last)| updates != last && at.elapsed() >= self.every)
    }

    /// Publishes a policy soon; not one that was offered before and still waits.
    pub fn offer(&mut self, policy: Policy) {
        self.offered = Some((Instant::now(), policy.updates));
        self.offers.lock().policy = Some(policy);
        self.offers.changed.notify_one();
    }

    fn end_thread(&mut self) {
        self.offers.lock().is_over = true;
        self.offers.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It only logs what fails.
            let _ = thread.join();
        }
    }

    /// Publishes the last policy, after one that waits, and keeps serving.
    ///
    /// # Errors
    /// If it cannot be published.
    pub fn finish(&mut self, policy: &Policy) -> Result<(), ActorLearnerError> {
        self.end_thread();
        Ok(publish(&self.store, Policy::NAME, policy.to_bytes())?)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.end_thread();
    }
}

fn publish_all(store: &ModelStore, offers: &Offers) {
    while let Some(policy) = offers.next() {
        if let Err(error) = publish(store, Policy::NAME, policy.to_bytes()) {
            tracing::warn!("a policy is not published: {error}");
        }
    }
}

/// Under a version above those of earlier learners, whose clock was not ahead of ours, and of this one.
fn publish(store: &ModelStore, name: &str, bytes: Vec<u8>) -> Result<(), PublishError> {
    let name: ModelName = name.parse().expect("a good name");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    let latest = store.latest(&name).map_or(0, |object| object.manifest.version);
    store.publish(&name, now.max(latest + 1), bytes.into()).map(|_| ())
}
