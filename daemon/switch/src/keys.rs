//! Keys of jobs, and nonces that prove a return path (SPEC, section 8).

use core::fmt;
use core::hash::Hasher;
use core::net::SocketAddrV4;

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::Key;
use siphasher::sip::SipHasher24;

use crate::endpoint::Endpoint;

/// Length of the secret from which nonces are derived, in bytes.
pub const SECRET_LEN_BYTES: usize = 16;
/// Number of counters of used nonces. If two addresses share a counter, the use of one address's nonce invalidates the
/// nonce of the other, which must then request a new one.
const NONCE_COUNTERS: usize = 4096;

/// The key that applies to a job until the job ends, even if the configured keys change. A job may also have no key.
#[derive(Clone)]
struct Bound {
    job: u32,
    key: Option<Key>,
    is_over: bool,
}

/// Keys of the jobs. By default no job has a key, and any sender may join.
#[derive(Clone, Default)]
pub struct Keys {
    /// Key of all jobs that have no key of their own.
    default: Option<Key>,
    jobs: Vec<(u32, Key)>,
    /// Keys of the jobs that existed when the keys were last changed.
    bound: Vec<Bound>,
    secret: [u8; SECRET_LEN_BYTES],
}

impl Keys {
    /// Creates an empty set of keys. `secret` must be drawn at random for each run, because a sender that knows it
    /// can predict nonces.
    pub fn new(secret: [u8; SECRET_LEN_BYTES]) -> Self {
        Self { secret, ..Self::default() }
    }

    /// Replaces the secret. Each thread of a switch needs its own secret, because a nonce that one thread has issued to
    /// an address must not admit that address at another thread.
    #[must_use]
    pub fn with_secret(self, secret: [u8; SECRET_LEN_BYTES]) -> Self {
        Self { secret, ..self }
    }

    /// Sets the key of a job or, if `job` is `None`, the key of all jobs that have no key of their own. Returns false
    /// if that key was already set.
    pub fn insert(&mut self, job: Option<u32>, key: Key) -> bool {
        match job {
            Some(job) if self.jobs.iter().all(|(other, _)| *other != job) => self.jobs.push((job, key)),
            None if self.default.is_none() => self.default = Some(key),
            _ => return false,
        }
        true
    }

    /// Replaces the keys with those of `new`, except for the secret and the keys of the jobs in `running`.
    pub(crate) fn replace(&mut self, new: Self, running: impl Iterator<Item = u32>) {
        let bind = |job| Bound { job, key: self.of(job).cloned(), is_over: false };
        let bound = running.map(bind).collect();
        *self = Self { bound, secret: self.secret, ..new };
    }

    /// Records that a job has ended. Its key is still kept, because packets to its members may be waiting to be sent.
    pub(crate) fn release(&mut self, job: u32) {
        self.bound.iter_mut().filter(|bound| bound.job == job).for_each(|bound| bound.is_over = true);
    }

    /// Forgets the former keys of the jobs that have ended. All packets of these jobs must have been sent.
    pub(crate) fn forget_released(&mut self) {
        self.bound.retain(|bound| !bound.is_over);
    }

    /// Returns whether any job has a key.
    pub(crate) fn any(&self) -> bool {
        self.default.is_some() || !self.jobs.is_empty()
    }

    /// Returns the key of a job, if it has one.
    pub(crate) fn of(&self, job: u32) -> Option<&Key> {
        if let Some(bound) = self.bound.iter().find(|bound| bound.job == job) {
            return bound.key.as_ref();
        }
        let own = self.jobs.iter().find(|(other, _)| *other == job);
        own.map(|(_, key)| key).or(self.default.as_ref())
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs: Vec<u32> = self.jobs.iter().map(|(job, _)| *job).collect();
        f.debug_struct("Keys").field("default", &self.default).field("jobs", &jobs).finish_non_exhaustive()
    }
}

/// Authentication of a control packet that the switch sends (requirements ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// No trailer, because the job has no key or the receiver cannot verify a trailer.
    Bare,
    /// A trailer in the session of the member that receives the packet.
    Session { job: u32, session: u64 },
    /// A trailer for a non-member: it repeats the counter of the request.
    Echo { job: u32, counter: u64 },
    /// A trailer for all members of a job, in a packet to their group.
    Group { job: u32, epoch: u64 },
    /// A trailer in this switch's own session with its parent.
    Upward { job: u32, context: u64, counter: u64 },
}

/// Nonces. Each address has one nonce, which changes when it is used.
///
/// No state is stored when a nonce is sent, so that challenges cannot fill a table.
#[derive(Clone)]
pub(crate) struct Nonces {
    secret: [u8; SECRET_LEN_BYTES],
    uses: Vec<u64>,
}

impl Nonces {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { secret: keys.secret, uses: vec![0; NONCE_COUNTERS] }
    }

    /// Returns the nonce of an address, which is never zero.
    pub(crate) fn of(&self, endpoint: &Endpoint) -> u64 {
        let uses = self.uses[self.position(endpoint)];
        // Zero is reserved for the absence of a nonce.
        self.hash(&[endpoint.key().get(), uses]).max(1)
    }

    /// Uses up the nonce of an address. Returns false, and changes nothing, if `nonce` is not the nonce of the address.
    pub(crate) fn redeem(&mut self, endpoint: &Endpoint, nonce: u64) -> bool {
        let is_right = self.of(endpoint) == nonce;
        if is_right {
            self.renew(endpoint);
        }
        is_right
    }

    /// Invalidates the nonce of an address.
    pub(crate) fn renew(&mut self, endpoint: &Endpoint) {
        let position = self.position(endpoint);
        self.uses[position] += 1;
    }

    /// Returns the nonce of a Probe through an outlet of a group, which is never zero.
    pub(crate) fn of_probe(&self, epoch: u64, group: SocketAddrV4, outlet: usize, probe: u32) -> u64 {
        let address = u64::from(group.ip().to_bits()) << 16 | u64::from(group.port());
        self.hash(&[epoch, address, outlet as u64, u64::from(probe)]).max(1)
    }

    /// Returns a random number from which the addresses of groups are derived.
    pub(crate) fn of_groups(&self, boot: u64) -> u64 {
        self.hash(&[boot, 0, 0])
    }

    fn position(&self, endpoint: &Endpoint) -> usize {
        self.hash(&[endpoint.key().get()]) as usize % self.uses.len()
    }

    fn hash(&self, words: &[u64]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        words.iter().for_each(|word| hasher.write(&word.to_le_bytes()));
        hasher.finish()
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::endpoint::PortId;

    fn endpoint(host: u8) -> Endpoint {
        let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 5000);
        Endpoint { port: PortId(0), peer, local: peer, peer_mac: [0; 6], local_mac: [0; 6] }
    }

    #[test]
    fn a_nonce_admits_one_address_once() {
        let mut nonces = Nonces::new(&Keys::new([7; SECRET_LEN_BYTES]));
        let nonce = nonces.of(&endpoint(1));
        assert_eq!(nonces.of(&endpoint(1)), nonce, "a query should not change the nonce");
        assert!(!nonces.redeem(&endpoint(2), nonce) && !nonces.redeem(&endpoint(1), 0));
        assert!(nonces.redeem(&endpoint(1), nonce));
        assert!(!nonces.redeem(&endpoint(1), nonce));
        assert_ne!(nonces.of(&endpoint(1)), nonce);
        let other_run = Nonces::new(&Keys::new([8; SECRET_LEN_BYTES]));
        assert_ne!(other_run.of(&endpoint(1)), nonce);
    }

    #[test]
    fn a_job_uses_its_own_key_or_the_default_key() {
        let key = |byte| Key::new(&[byte; 16]).unwrap();
        let mut keys = Keys::default();
        assert!(keys.of(1).is_none());
        assert!(keys.insert(Some(1), key(1)) && keys.of(1).is_some() && keys.of(2).is_none());
        assert!(keys.insert(None, key(2)) && keys.of(2).is_some());
        assert!(!keys.insert(Some(1), key(3)) && !keys.insert(None, key(3)));
        assert_eq!(alloc::format!("{keys:?}"), "Keys { default: Some(Key), jobs: [1], .. }");
    }
}
