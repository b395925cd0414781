//! Directory of members by source address. It is a sorted table, so an attacker cannot choose addresses that make
//! searches slow.

use alloc::vec::Vec;

use iswitch_protocol::limits::{MAX_JOBS, MAX_MEMBERS};

use crate::endpoint::{AddressKey, Endpoint};
use crate::ids::MemberAt;

/// The addresses of all members.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<(AddressKey, MemberAt)>,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::with_capacity(MAX_JOBS * MAX_MEMBERS) }
    }

    pub(crate) fn find(&self, endpoint: &Endpoint) -> Option<MemberAt> {
        let at = self.position(endpoint).ok()?;
        Some(self.entries[at].1)
    }

    /// Finds the members with the same IPv4 address and UDP port on another port of the switch.
    pub(crate) fn elsewhere(&self, endpoint: &Endpoint) -> impl Iterator<Item = MemberAt> + '_ {
        let own = endpoint.key();
        let first = self.entries.partition_point(|(key, _)| key.sender() < own.sender());
        let same = self.entries[first..].iter().take_while(move |(key, _)| key.sender() == own.sender());
        same.filter(move |(key, _)| *key != own).map(|(_, at)| *at)
    }

    /// Adds an address unless it is already in the table. The table has room for the members of all jobs.
    pub(crate) fn insert(&mut self, endpoint: &Endpoint, at: MemberAt) {
        if let Err(position) = self.position(endpoint) {
            self.entries.insert(position, (endpoint.key(), at));
        }
    }

    pub(crate) fn remove(&mut self, endpoint: &Endpoint) {
        if let Ok(position) = self.position(endpoint) {
            self.entries.remove(position);
        }
    }

    fn position(&self, endpoint: &Endpoint) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&endpoint.key(), |(key, _)| *key)
    }
}
