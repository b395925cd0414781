//! Ordered sums (requirement D-7): the switch keeps each member's contribution to a segment, and adds all of them when
//! the segment is finished. The bits of a sum then depend on the contributions, not on their order of arrival.
//!
//! Round r + 1 of a segment opens when round r is finished, so one kept contribution for each member and segment is
//! enough. The job therefore stores one vector for each member that it may have, after the sums of the two rounds.

use core::net::Ipv4Addr;

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_MEMBERS;

use super::members::Member;
use crate::ids::{MemberId, MemberSet};

/// Sort key: rank, address, id. Ids are assigned in the order of the Joins, which differs from run to run. They
/// therefore only break ties between members of one machine that declare the same rank.
type OrderKey = (u16, Ipv4Addr, MemberId);

/// Order in which the contributions of the members of a job are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberOrder {
    /// Keys, indexed by member id. The key of a departed member is kept, because open segments may hold its
    /// contributions.
    keys: [OrderKey; MAX_MEMBERS],
    /// For each parity, all ids in the order that was fixed when the round opened. A new member that gets the id of a
    /// departed member does not change the order of an open round.
    ids: [[MemberId; MAX_MEMBERS]; 2],
    /// Ids that have been assigned to a member at any time.
    known: MemberSet,
    /// For each parity, the number of ids at the beginning of the order that were never assigned to a member.
    unknown: [usize; 2],
}

impl MemberOrder {
    pub(super) fn new() -> Self {
        let by_id = core::array::from_fn(MemberId::new);
        let key = (0, Ipv4Addr::UNSPECIFIED, MemberId::new(0));
        Self { keys: [key; MAX_MEMBERS], ids: [by_id; 2], known: MemberSet::EMPTY, unknown: [0; 2] }
    }

    /// Records the rank of a new member, with effect from the next round that opens.
    pub(super) fn insert(&mut self, id: MemberId, member: &Member) {
        self.keys[id.get()] = (member.rank, *member.endpoint.peer.ip(), id);
        self.known = self.known.with(id);
    }

    /// Fixes the order for the round with this parity.
    pub(super) fn fix(&mut self, parity: usize) {
        let ids = &mut self.ids[parity];
        ids.sort_unstable_by_key(|id| self.keys[id.get()]);
        self.unknown[parity] = ids.iter().take_while(|id| !self.known.contains(**id)).count();
    }

    /// Returns the members of a set in the order of `round`.
    pub(super) fn of(&self, round: Round, members: MemberSet) -> impl Iterator<Item = MemberId> {
        let parity = round.parity();
        self.ids[parity][self.unknown[parity]..].iter().copied().filter(move |id| members.contains(*id))
    }
}
