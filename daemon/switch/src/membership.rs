//! The membership table (figure 9 of the paper): who the members are, and which job an address belongs to.

use alloc::vec::Vec;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{MAX_JOBS, MAX_MEMBERS};
use iswitch_protocol::wire::{Kind, ResumeRepr, Standing};
use iswitch_protocol::{Instant, Round};

use super::budget::RepeatBudget;
use super::output::Endpoint;

/// One member of a job. Its id is its position in the job's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: Kind,
    /// Workers that it stands for.
    pub(crate) weight: u16,
    /// Levels of switches below and including it.
    pub(crate) height: u8,
    /// Whether it, or a switch below it, may go to another parent.
    pub(crate) roams: bool,
    /// Its Join, which the notice that the job is complete repeats.
    pub(crate) join_request: u32,
    /// What it had summed before, if anything.
    pub(crate) resume: Option<ResumeRepr>,
    /// What its Join's Ack tells it, with the round to start from and the history then.
    pub(crate) standing: Standing,
    pub(crate) history: u64,
    /// Tells a restarted process from a repeated Join.
    pub(crate) instance: u32,
    /// Its place in ordered sums.
    pub(crate) rank: u16,
    /// The first round it takes part in.
    pub(crate) start: Round,
    pub(crate) admitted: Instant,
    pub(crate) last_heard: Instant,
    /// The nonce that it was admitted with, which its trailers are bound to; zero if the job has no key.
    pub(crate) session: u64,
    /// The highest counter in its trailers.
    pub(crate) counter: u64,
    /// Of its contributions, if they are tagged.
    pub(crate) tag_key: Option<TagKey>,
    /// The latest round that was reported to wait for it, until another one has not.
    pub(crate) held_up: Option<Round>,
    /// What it may have repeated.
    pub(crate) repeats: RepeatBudget,
    /// What it has contributed since it was admitted.
    pub(crate) progress: Progress,
}

/// Contributions of a member that were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// How many.
    pub(crate) segments: u64,
    /// The round of the last one, or in an asynchronous job the number of its vector.
    pub(crate) round: Option<Round>,
    /// When it came.
    pub(crate) at: Instant,
}

impl Member {
    /// Whether it lacks a sum that others supply in that round.
    pub(crate) fn awaits(&self, round: Round) -> bool {
        self.standing == Standing::Awaits && self.start == round
    }
}

/// Position of a member: which job, and which of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberAt {
    pub(crate) job: usize,
    pub(crate) member: usize,
}

/// Finds a member by the address it sends from: a sorted table, so that no choice of addresses makes it slow.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<(AddressKey, MemberAt)>,
}

type AddressKey = u64;

impl Directory {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::with_capacity(MAX_JOBS * MAX_MEMBERS) }
    }

    pub(crate) fn find(&self, endpoint: &Endpoint) -> Option<MemberAt> {
        let at = self.position(endpoint).ok()?;
        Some(self.entries[at].1)
    }

    /// Finds the members that send from the same IPv4 address and UDP port by another port of the switch.
    pub(crate) fn elsewhere(&self, endpoint: &Endpoint) -> impl Iterator<Item = MemberAt> + '_ {
        let own = address_key(endpoint);
        let sender = own >> PORT_BITS;
        let first = self.entries.partition_point(|(key, _)| key >> PORT_BITS < sender);
        let same = self.entries[first..].iter().take_while(move |(key, _)| key >> PORT_BITS == sender);
        same.filter(move |(key, _)| *key != own).map(|(_, at)| *at)
    }

    /// Adds an address that is not in the table; there is room for the members of all jobs.
    pub(crate) fn insert(&mut self, endpoint: &Endpoint, at: MemberAt) {
        if let Err(position) = self.position(endpoint) {
            self.entries.insert(position, (address_key(endpoint), at));
        }
    }

    pub(crate) fn remove(&mut self, endpoint: &Endpoint) {
        if let Ok(position) = self.position(endpoint) {
            self.entries.remove(position);
        }
    }

    fn position(&self, endpoint: &Endpoint) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&address_key(endpoint), |(key, _)| *key)
    }
}

/// Bits of a port of the switch, the lowest of an [`AddressKey`]: those of one sender stand together.
const PORT_BITS: u32 = 8;

/// IPv4 address, UDP port and ingress port: a member cannot be impersonated from another port of the switch.
pub(crate) fn address_key(endpoint: &Endpoint) -> AddressKey {
    (u64::from(endpoint.peer.ip().to_bits()) << 16 | u64::from(endpoint.peer.port())) << PORT_BITS
        | u64::from(endpoint.port.0)
}
