//! The learner side of model distribution, which publishes the description of the run and new policies.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iswitch_models::learner::LearnerOptions;
use iswitch_models::runtime::Background;
use iswitch_models::{Access, Listen, ModelName, ModelStore, PublishError, ServerOptions, StoreOptions};

use super::{ActorLearnerError, Job, Policy};

/// Publisher with a dedicated thread, so that the learner does not wait while digests are computed.
pub struct Publisher {
    store: Arc<ModelStore>,
    server: Background,
    offers: Arc<Offers>,
    thread: Option<JoinHandle<()>>,
    every: Duration,
    /// Time at which the last policy was offered, and number of updates of that policy.
    offered: Option<(Instant, u64)>,
}

/// Newest policy that has not been published yet.
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
        // Poisoning is harmless, because the fields are replaced as a whole.
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
    /// Listens on the addresses `listen`, serves the clients that `access` admits, and publishes the description of the
    /// run. The interval between published policies is at least `every`.
    ///
    /// # Errors
    /// Fails if the server cannot listen on an address, or if the description cannot be published.
    pub fn start(
        listen: &[Listen],
        access: Access,
        job: &Job,
        every: Duration,
    ) -> Result<Self, ActorLearnerError> {
        let io = |source| ActorLearnerError::Io { what: "cannot start the policy server", source };
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

    /// Returns the addresses on which the server listens, with the actual ports.
    pub fn listens(&self) -> &[Listen] {
        self.server.listens()
    }

    /// Returns whether a new policy should be published after `updates` updates.
    pub fn is_due(&self, updates: u64) -> bool {
        self.offered.is_none_or(|(at, last)| updates != last && at.elapsed() >= self.every)
    }

    /// Queues a policy for publication. It replaces an earlier policy that has not been published yet.
    pub fn offer(&mut self, policy: Policy) {
        self.offered = Some((Instant::now(), policy.updates));
        self.offers.lock().policy = Some(policy);
        self.offers.changed.notify_one();
    }

    fn end_thread(&mut self) {
        self.offers.lock().is_over = true;
        self.offers.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread has logged its failures itself.
            let _ = thread.join();
        }
    }

    /// Publishes the last policy of the run. If another policy is still queued, publishes it first. The server
    /// continues to run.
    ///
    /// # Errors
    /// Fails if the policy cannot be published.
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
            tracing::warn!("cannot publish a policy: {error}");
        }
    }
}

/// Publishes an object. Its version number is greater than those of all objects that this learner has published before.
/// It is also greater than those of earlier learners, unless their clocks were ahead.
fn publish(store: &ModelStore, name: &str, bytes: Vec<u8>) -> Result<(), PublishError> {
    let name: ModelName = name.parse().expect("the name is valid");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    let latest = store.latest(&name).map_or(0, |object| object.manifest.version);
    store.publish(&name, now.max(latest + 1), bytes.into()).map(|_| ())
}
