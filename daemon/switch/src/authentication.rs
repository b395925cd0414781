//! Who may change what: keys, sessions, counters and nonces (SPEC, section 8).
//!
//! A job with a key listens only to packets whose trailer was made with it. A recorded packet is of no use later:
//! the tags of a membership are bound to its session, the nonce with which the member was admitted, and counters
//! rise within it. A nonce is given by a challenge, to one address, and admits once.

use core::fmt;
use core::hash::Hasher;

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::PROTOCOL_VERSION;
use iswitch_protocol::wire::{Action, ControlPacket, JoinRepr, Status};
use siphasher::sip::SipHasher24;

use super::Switch;
use super::control::Request;
use super::event::Event;
use super::membership::{MemberAt, address_key};
use super::output::Endpoint;
use super::reason::DropReason;

/// Bytes of the secret that nonces are made with.
pub const SECRET_LEN_BYTES: usize = 16;
/// Counters of used nonces. Addresses that share one may have to ask for a nonce again.
const NONCE_COUNTERS: usize = 4096;

/// The keys of the jobs. By default no job has one, and everybody may join.
#[derive(Clone, Default)]
pub struct Keys {
    /// Of all jobs that have none of their own.
    default: Option<Key>,
    jobs: Vec<(u32, Key)>,
    secret: [u8; SECRET_LEN_BYTES],
}

impl Keys {
    /// No keys yet. `secret` is drawn at random for each run: whoever knows it can foresee nonces.
    pub fn new(secret: [u8; SECRET_LEN_BYTES]) -> Self {
        Self { secret, ..Self::default() }
    }

    /// Gives a job its key, or all jobs that have none of their own. False if it has one already.
    pub fn insert(&mut self, job: Option<u32>, key: Key) -> bool {
        match job {
            Some(job) if self.jobs.iter().all(|(other, _)| *other != job) => self.jobs.push((job, key)),
            None if self.default.is_none() => self.default = Some(key),
            _ => return false,
        }
        true
    }

    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        self.default.is_some() || !self.jobs.is_empty()
    }

    /// The key of a job, if it has one.
    pub(super) fn of(&self, job: u32) -> Option<&Key> {
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

/// How an answer shows that it comes from the switch (requirements ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// Not at all: the job has no key.
    Bare,
    /// In the session of a member.
    Session { job: u32, session: u64 },
    /// To one that is no member: it repeats the counter that it answers.
    Echo { job: u32, counter: u64 },
    /// To the parent, as its member.
    Upward { job: u32, context: u64, counter: u64 },
}

/// Why a control packet is not looked at.
enum Denial {
    /// It has no trailer, or a wrong one, or one that nobody asked for.
    NotAuthentic { has_key: bool },
    /// No older packet of its sender may follow a newer one.
    Replayed,
    /// Its session is not known, and so it cannot be verified.
    UnknownMember { counter: u64 },
}

/// What a Join with a good trailer is.
pub(super) enum Freshness {
    /// One of a member, or one that needs no proof, or has shown it and opens no session.
    Repeated,
    /// It shows the right nonce, which has not been used: the session that this opens.
    Proven { counter: u64 },
    /// Perhaps a recorded one: with this nonce it will be believed.
    Unproven { nonce: u64 },
    /// A recorded one.
    Replayed,
}

/// The nonces: what an address is given, until it has used it.
///
/// Nothing is remembered when a nonce is given, so that giving one is no way to fill a table.
#[derive(Clone)]
pub(super) struct Nonces {
    secret: [u8; SECRET_LEN_BYTES],
    uses: Vec<u64>,
}

impl Nonces {
    pub(super) fn new(keys: &Keys) -> Self {
        Self { secret: keys.secret, uses: vec![0; NONCE_COUNTERS] }
    }

    fn of(&self, endpoint: &Endpoint) -> u64 {
        let uses = self.uses[self.position(endpoint)];
        // Zero is no nonce.
        self.hash(&[address_key(endpoint), uses]).max(1)
    }

    fn redeem(&mut self, endpoint: &Endpoint, nonce: u64) -> bool {
        let is_right = self.of(endpoint) == nonce;
        if is_right {
            let position = self.position(endpoint);
            self.uses[position] += 1;
        }
        is_right
    }

    fn position(&self, endpoint: &Endpoint) -> usize {
        self.hash(&[address_key(endpoint)]) as usize % self.uses.len()
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

impl Switch {
    /// Whether a control packet may be looked at, and how it is answered. If not, all is done.
    pub(super) fn authenticate(&mut self, from: &Endpoint, packet: &ControlPacket<'_>) -> Option<Seal> {
        match self.check_authentic(from, packet) {
            Ok(seal) => Some(seal),
            Err(denial) => {
                self.deny(from, packet, &denial);
                None
            }
        }
    }

    fn check_authentic(&mut self, from: &Endpoint, packet: &ControlPacket<'_>) -> Result<Seal, Denial> {
        if packet.version() != PROTOCOL_VERSION {
            // It will be refused for that; another version may prove otherwise who it is from.
            return Ok(Seal::Bare);
        }
        // A Join opens a session; everything else is part of one.
        let member = if is_join(packet) { None } else { self.directory.find(from) };
        let joined = member.and_then(|at| Some((at, self.job(at.job)?)));
        let job = joined.map_or(packet.job(), |(_, job)| job.id);
        let session = member.map_or(NO_SESSION, |at| self.session_of(at));
        let Some(key) = self.keys.of(job) else {
            let is_bare = !packet.is_authenticated();
            return is_bare.then_some(Seal::Bare).ok_or(Denial::NotAuthentic { has_key: false });
        };
        let not_authentic = Denial::NotAuthentic { has_key: true };
        if member.is_none() && !is_join(packet) {
            let counter = packet.counter().ok_or(not_authentic)?;
            return Err(Denial::UnknownMember { counter });
        }
        let counter = key.verify(Direction::ToSwitch, session, packet).ok_or(not_authentic)?;
        match member {
            None => Ok(Seal::Echo { job, counter }),
            Some(at) if self.advance_counter(at, counter) => Ok(Seal::Session { job, session }),
            Some(_) => Err(Denial::Replayed),
        }
    }

    /// Takes note of a member's counter. False if it is not above the last one (requirement A-4).
    fn advance_counter(&mut self, at: MemberAt, counter: u64) -> bool {
        let member = self.jobs[at.job].as_mut().and_then(|job| job.member_mut(at.member));
        member.is_some_and(|member| {
            let rises = counter > member.counter;
            member.counter = member.counter.max(counter);
            rises
        })
    }

    fn deny(&mut self, from: &Endpoint, packet: &ControlPacket<'_>, denial: &Denial) {
        let (job, status) = (packet.job(), Status::NotAuthentic);
        match *denial {
            Denial::Replayed => self.counters.count_drop(DropReason::Replayed),
            Denial::UnknownMember { counter } => {
                self.counters.count_drop(DropReason::UnknownMember);
                self.refuse_packet(from, packet, (Status::UnknownMember, 0), Seal::Echo { job, counter });
            }
            Denial::NotAuthentic { has_key } => {
                self.counters.count_drop(DropReason::NotAuthentic);
                let expected = u32::from(has_key);
                if is_join(packet) {
                    self.report(Event::JoinRefused { job, address: from.peer, status, expected });
                }
                self.refuse_packet(from, packet, (status, expected), Seal::Bare);
            }
        }
    }

    /// Whether a Join may be a recorded one (requirement A-6). A nonce is used up by this.
    /// `is_proven`: whether it has used one up already.
    pub(super) fn check_fresh(
        &mut self,
        from: &Endpoint,
        request: Request,
        join: &JoinRepr,
        is_proven: bool,
    ) -> Freshness {
        if join.query {
            return Freshness::Repeated;
        }
        let Seal::Echo { job: id, counter } = request.seal else {
            return self.check_return_path(from, request.job, join, is_proven);
        };
        let at = self.directory.find(from).filter(|at| self.is_process(*at, id, join.instance));
        if let Some(at) = at {
            if !self.advance_counter(at, counter) {
                return Freshness::Replayed;
            }
            if self.session_of(at) == join.nonce {
                return Freshness::Repeated;
            }
            // It has believed a challenge of an earlier run, which was late, and understands no answer in its session.
        }
        if is_proven || self.nonces.redeem(from, join.nonce) {
            return Freshness::Proven { counter };
        }
        Freshness::Unproven { nonce: self.nonces.of(from) }
    }

    /// Whether a Join repeats the nonce of its address, which is then used up, whatever else the Join holds: a
    /// challenge exempts one packet from the limit on strangers.
    pub(super) fn redeem_nonce(&mut self, from: &Endpoint, bytes: &[u8]) -> bool {
        let nonce = ControlPacket::new_checked(bytes).ok().and_then(|packet| packet.join_nonce());
        nonce.is_some_and(|nonce| self.nonces.redeem(from, nonce))
    }

    /// As [`Self::check_fresh`], for a Join without a key: the nonce proves the return path and nothing else.
    fn check_return_path(&mut self, from: &Endpoint, id: u32, join: &JoinRepr, is_proven: bool) -> Freshness {
        let known = self.directory.find(from).filter(|at| self.is_process(*at, id, join.instance));
        if known.is_some() || is_proven || self.nonces.redeem(from, join.nonce) {
            return Freshness::Repeated;
        }
        Freshness::Unproven { nonce: self.nonces.of(from) }
    }

    /// Whether a member of that job is the process with that instance.
    pub(super) fn is_process(&self, at: MemberAt, id: u32, instance: u32) -> bool {
        let job = self.job(at.job).filter(|job| job.id == id);
        job.and_then(|job| job.member(at.member)).is_some_and(|own| own.instance == instance)
    }

    fn session_of(&self, at: MemberAt) -> u64 {
        self.job(at.job).and_then(|job| job.member(at.member)).map_or(NO_SESSION, |own| own.session)
    }

    /// A member has shown its nonce: from now on that is its session.
    pub(super) fn open_session(&mut self, at: MemberAt, session: u64, counter: u64) {
        let Some(job) = self.jobs[at.job].as_mut() else { return };
        let (key, is_tagged) = (self.keys.of(job.id), job.tag_key.is_some());
        if let (Some(key), Some(member)) = (key, job.member_mut(at.member)) {
            member.session = session;
            member.counter = counter;
            member.tag_key = is_tagged.then(|| key.contribution_key(session));
        }
    }

    /// How a member is answered.
    pub(super) fn member_seal(&self, at: MemberAt) -> Seal {
        self.job(at.job).map_or(Seal::Bare, |job| job.seal(at.member))
    }
}

pub(super) fn is_join(packet: &ControlPacket<'_>) -> bool {
    packet.action_code() == Action::Join as u8
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::PortId;

    fn endpoint(host: u8) -> Endpoint {
        let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 5000);
        Endpoint { port: PortId(0), peer, local: peer, peer_mac: [0; 6], local_mac: [0; 6] }
    }

    #[test]
    fn a_nonce_admits_one_address_once() {
        let mut nonces = Nonces::new(&Keys::new([7; SECRET_LEN_BYTES]));
        let nonce = nonces.of(&endpoint(1));
        assert_eq!(nonces.of(&endpoint(1)), nonce, "asking changes nothing");
        assert!(!nonces.redeem(&endpoint(2), nonce) && !nonces.redeem(&endpoint(1), 0));
        assert!(nonces.redeem(&endpoint(1), nonce));
        assert!(!nonces.redeem(&endpoint(1), nonce));
        assert_ne!(nonces.of(&endpoint(1)), nonce);
        let other_run = Nonces::new(&Keys::new([8; SECRET_LEN_BYTES]));
        assert_ne!(other_run.of(&endpoint(1)), nonce);
    }

    #[test]
    fn a_job_has_its_own_key_or_that_of_all() {
        let key = |byte| Key::new(&[byte; 16]).unwrap();
        let mut keys = Keys::default();
        assert!(keys.of(1).is_none());
        assert!(keys.insert(Some(1), key(1)) && keys.of(1).is_some() && keys.of(2).is_none());
        assert!(keys.insert(None, key(2)) && keys.of(2).is_some());
        assert!(!keys.insert(Some(1), key(3)) && !keys.insert(None, key(3)));
        assert_eq!(alloc::format!("{keys:?}"), "Keys { default: Some(Key), jobs: [1], .. }");
    }
}
