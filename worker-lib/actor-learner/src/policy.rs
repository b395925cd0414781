//! Policies that actors act with, and the feed through which actors receive them.
//!
//! A published policy consists of a header of 32 bytes followed by its floats, all little-endian. The header contains
//! `iSwP`, the format (1), the number of updates and of environment steps so far (u64 each), the highest priority so
//! far (f32), and a flag (1 if the run is over, otherwise 0).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iswitch_models::{BlockingModelClient, ClientOptions, Credentials, Endpoint, ModelName};

use super::ActorLearnerError;
use super::error::malformed;
use super::retry::ProblemReport;

const MAGIC: [u8; 4] = *b"iSwP";
const FORMAT: u32 = 1;
const HEAD: usize = 32;

/// Policy that actors act with.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Number of updates that the learners had applied to the model when they produced this policy. The age of a policy
    /// is measured in updates.
    pub updates: u64,
    /// Number of environment steps that the run had completed when the learners produced this policy.
    pub steps: u64,
    /// Priority that actors assign to new items. It equals the highest priority so far, so that new items are sampled
    /// soon.
    pub priority_max: f32,
    /// Whether the run is over.
    pub finished: bool,
    /// Values of the policy, `[policy_len]`.
    pub floats: Vec<f32>,
}

impl Policy {
    /// Name under which the policy is published.
    pub const NAME: &'static str = "policy";

    /// Encodes the policy for publication.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + size_of_val(&self.floats[..]));
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.updates.to_le_bytes());
        bytes.extend(self.steps.to_le_bytes());
        bytes.extend(self.priority_max.to_le_bytes());
        bytes.extend(u32::from(self.finished).to_le_bytes());
        bytes.extend_from_slice(bytemuck::cast_slice(&self.floats));
        bytes
    }

    /// Decodes a policy of `len` floats that was encoded by [`Self::to_bytes`].
    ///
    /// # Errors
    /// Fails if the bytes are malformed.
    pub fn from_bytes(bytes: &[u8], len: usize) -> Result<Self, ActorLearnerError> {
        let expected = HEAD + len * size_of::<f32>();
        if bytes.len() != expected {
            return Err(malformed("policy", format!("{} bytes", bytes.len()), expected.to_string()));
        }
        let (head, floats) = bytes.split_at(HEAD);
        let word = |at: usize| <[u8; 4]>::try_from(&head[at..at + 4]).expect("4 bytes");
        let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        if word(0) != MAGIC || u32::from_le_bytes(word(4)) != FORMAT {
            let found = format!("invalid (first bytes {:?})", &head[..8]);
            return Err(malformed("policy", found, format!("{MAGIC:?} and format {FORMAT}")));
        }
        let mut own = vec![0.0; len];
        bytemuck::cast_slice_mut::<f32, u8>(&mut own).copy_from_slice(floats);
        Ok(Self {
            updates: long(8),
            steps: long(16),
            priority_max: f32::from_le_bytes(word(24)),
            finished: u32::from_le_bytes(word(28)) != 0,
            floats: own,
        })
    }
}

/// Counters of a policy feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PolicyStats {
    /// Number of policies read.
    pub policies: u64,
    /// Maximum time since the policy in use was last known to be the newest, in milliseconds.
    pub age_ms_max: u64,
    /// Number of failed reads.
    pub failures: u64,
}

/// Feed that provides the newest policy to all actors of a process. It runs in a dedicated thread.
pub struct PolicyFeed {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    policy: Mutex<Option<Arc<Policy>>>,
    changed: Condvar,
    stop: AtomicBool,
    policies: AtomicU64,
    age_ms_max: AtomicU64,
    failures: AtomicU64,
}

/// Creates a client that reads the published object of this name.
pub(super) fn reader(
    name: &str,
    endpoints: &[Endpoint],
    credentials: &Credentials,
) -> io::Result<BlockingModelClient> {
    let name: ModelName = name.parse().expect("the name is valid");
    let options = ClientOptions { credentials: credentials.clone(), ..ClientOptions::default() };
    BlockingModelClient::new(name, endpoints, options)
}

/// Maximum duration of one wait for a newer policy. After each wait, the feed records the age of the current policy.
const WAIT: Duration = Duration::from_millis(500);
/// Pause after a failed read.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

impl PolicyFeed {
    /// Starts to read policies of `len` floats. `endpoints` lists the preferred endpoints first and the learner last.
    ///
    /// # Errors
    /// Fails if there are no endpoints or the thread cannot be started.
    pub fn start(
        endpoints: &[Endpoint],
        credentials: &Credentials,
        len: usize,
    ) -> Result<Self, ActorLearnerError> {
        let io = |source| ActorLearnerError::Io { what: "cannot start the policy reader", source };
        let client = reader(Policy::NAME, endpoints, credentials).map_err(io)?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("policies".to_owned())
            .spawn(move || own.follow(client, len))
            .map_err(io)?;
        Ok(Self { shared })
    }

    /// Returns the newest policy. If no policy has arrived yet, waits for the first one; returns `None` if `stop` is
    /// set before it arrives.
    pub fn newest(&self, stop: &AtomicBool) -> Option<Arc<Policy>> {
        let mut policy = self.shared.lock();
        while policy.is_none() && !stop.load(Relaxed) {
            let waited = self.shared.changed.wait_timeout(policy, PAUSE);
            policy = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        policy.clone()
    }

    /// Returns whether the newest policy is the last one of the run.
    pub fn is_finished(&self) -> bool {
        self.shared.lock().as_ref().is_some_and(|policy| policy.finished)
    }

    /// Returns the counters of the feed.
    pub fn stats(&self) -> PolicyStats {
        PolicyStats {
            policies: self.shared.policies.load(Relaxed),
            age_ms_max: self.shared.age_ms_max.load(Relaxed),
            failures: self.shared.failures.load(Relaxed),
        }
    }
}

impl Drop for PolicyFeed {
    fn drop(&mut self) {
        // The thread ends after its current read, so there is no need to join it.
        self.shared.stop.store(true, Relaxed);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Policy>>> {
        // Poisoning is harmless, because the `Arc` is replaced as a whole.
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, mut client: BlockingModelClient, len: usize) {
        let mut problem_report = ProblemReport::default();
        while !self.stop.load(Relaxed) {
            let read = client.wait_newer(WAIT).map_err(ActorLearnerError::from);
            let policy =
                read.and_then(|model| model.map(|model| Policy::from_bytes(&model.bytes, len)).transpose());
            if let Some(age) = client.model_age() {
                let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                self.age_ms_max.fetch_max(age_ms, Relaxed);
            }
            match policy {
                Ok(None) => {}
                Ok(Some(policy)) => {
                    *self.lock() = Some(Arc::new(policy));
                    self.policies.fetch_add(1, Relaxed);
                    self.changed.notify_all();
                    problem_report.over("policies are being received again");
                }
                Err(error) => {
                    self.failures.fetch_add(1, Relaxed);
                    problem_report.about("cannot read a newer policy", &error);
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_round_trips() {
        let floats = vec![1.0, -2.5, f32::MIN_POSITIVE];
        let policy = Policy { updates: 7, steps: 1 << 40, priority_max: 3.5, finished: true, floats };
        let bytes = policy.to_bytes();
        assert_eq!(Policy::from_bytes(&bytes, 3).unwrap(), policy);
        let error = |bytes: &[u8], len| Policy::from_bytes(bytes, len).unwrap_err().to_string();
        assert_eq!(error(&bytes, 4), "policy is 44 bytes, expected 48");
        let mut other = bytes.clone();
        other[4] = 2;
        assert!(error(&other, 3).starts_with("policy is invalid (first bytes [105, 83, 119, 80, 2,"));
    }
}
