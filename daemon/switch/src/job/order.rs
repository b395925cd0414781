//! Ordered sums (requirement D-7): each member's contribution to a segment is kept, and added when the segment is
//! finished. The bits of a sum then depend on the contributions, not on the order of their arrival.
//!
//! Round r + 1 of a segment opens when round r is finished, so one kept contribution for each member and segment is
//! enough: one vector for each member that the job may have, behind the sums of the two rounds.

use core::net::Ipv4Addr;

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_MEMBERS;

use super::members::Member;
use crate::ids::{MemberId, MemberSet};

/// Rank, address, id. Ids are assigned in order of Join, which differs from run to run: they only distinguish members
/// of one machine that declare the same rank.
type OrderKey = (u16, Ipv4Addr, MemberId);

/// The order in which the contributions of the members of a job are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberOrder {
    /// Keys by id. The key of a departed member stays: open segments may hold its contributions.
    keys: [OrderKey; MAX_MEMBERS],
    /// All ids in order, as it was when the round of each parity opened: a member that joins later, with the id of a
    /// departed member, does not change that order.
    ids: [[MemberId; MAX_MEMBERS]; 2],
    /// The ids that members have or had.
    known: MemberSet,
    /// Number of other ids before the first of these, for each parity.
    unknown: [usize; 2],
}

impl MemberOrder {
    pub(super) fn new() -> Self {
        let by_id = core::array::from_fn(MemberId::new);
        let key = (0, Ipv4Addr::UNSPECIFIED, MemberId::new(0));
        Self { keys: [key; MAX_MEMBERS], ids: [by_id; 2], known: MemberSet::EMPTY, unknown: [0; 2] }
    }

    /// Assigns a new member its rank, from the next round on that opens.
    pub(super) fn insert(&mut self, id: MemberId, member: &Member) {
        self.keys[id.get()] = (member.rank, *member.endpoint.peer.ip(), id);
        self.known = self.known.with(id);
    }

    /// Fixes the order for the round of a parity.
    pub(super) fn fix(&mut self, parity: usize) {
        let ids = &mut self.ids[parity];
        ids.sort_unstable_by_key(|id| self.keys[id.get()]);
        self.unknown[parity] = ids.iter().take_while(|id| !self.known.contains(**id)).count();
    }

    /// The members of a set, in the order of a round.
    pub(super) fn of(&self, round: Round, members: MemberSet) -> impl Iterator<Item = MemberId> {
        let parity = round.parity();
        self.ids[parity][self.unknown[parity]..].iter().copied().filter(move |id| members.contains(*id))
    }
}
