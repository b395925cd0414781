//! Ordered sums (requirement D-7): what each member gives to a segment is kept, and added when the segment is
//! finished. The bits of a sum then depend on what was given, and not on who came first.
//!
//! Round r + 1 of a segment opens when round r is finished, so one kept contribution for each member and
//! segment is enough: one vector for each member that the job may have, behind the sums of the two rounds.

use core::net::Ipv4Addr;

use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::{Round, SegmentIndex};

use super::accumulate::{self, NonFinite};
use super::aggregator::Aggregation;
use super::membership::Member;

/// Vectors that hold the sums of a job: one for each of the two rounds that are alive.
pub(crate) const SUM_VECTORS: usize = 2;

/// Rank, address, id. Ids are given in order of Join, which differs from run to run: they only tell apart the
/// members of one machine that declare the same rank.
type OrderKey = (u16, Ipv4Addr, usize);

fn order_key(id: usize, member: &Member) -> OrderKey {
    (member.rank, *member.endpoint.peer.ip(), id)
}

/// The order in which the contributions of the members of a job are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberOrder {
    /// By id. The key of a member that is gone stays: open segments may hold what it gave.
    keys: [OrderKey; MAX_MEMBERS],
    /// All ids in order, as it was when the round of each parity opened: who joins later, and gets the id of a
    /// member that is gone, does not change that.
    ids: [[u8; MAX_MEMBERS]; 2],
}

impl MemberOrder {
    pub(crate) fn new() -> Self {
        let by_id = core::array::from_fn(|id| id as u8);
        Self { keys: [(0, Ipv4Addr::UNSPECIFIED, 0); MAX_MEMBERS], ids: [by_id; 2] }
    }

    /// Gives a new member its place, from the next round on that opens.
    pub(crate) fn insert(&mut self, id: usize, member: &Member) {
        self.keys[id] = order_key(id, member);
    }

    /// Fixes the order for the round of a parity.
    pub(crate) fn fix(&mut self, parity: usize) {
        self.ids[parity].sort_unstable_by_key(|id| self.keys[usize::from(*id)]);
    }

    /// Those of the members in a bitmap, in the order of a round.
    fn of(&self, round: Round, members: u64) -> impl Iterator<Item = usize> {
        let ids = self.ids[round.parity()].iter().map(|id| usize::from(*id));
        ids.filter(move |id| members >> id & 1 == 1)
    }
}

impl Aggregation<'_> {
    /// Keeps a member's contribution to the segment until it is finished. False if it is refused.
    pub(super) fn keep(
        &mut self,
        member: usize,
        index: SegmentIndex,
        payload: &[u8],
        non_finite: NonFinite,
    ) -> bool {
        let start = (SUM_VECTORS + member) * self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        accumulate::store(&mut self.sums[start + range.start..start + range.end], payload, non_finite)
    }

    /// Sums what was kept of a segment, in an ordered job; does nothing in another.
    pub(super) fn sum_kept(&mut self, round: Round, index: SegmentIndex, contributors: u64) {
        let Some(order) = &self.job.order else { return };
        let len = self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        let (sums, kept) = self.sums.split_at_mut(SUM_VECTORS * len);
        let start = round.parity() * len;
        let sum = &mut sums[start + range.start..start + range.end];
        sum.fill(0.0);
        for member in order.of(round, contributors) {
            let start = member * len;
            accumulate::add(sum, &kept[start + range.start..start + range.end]);
        }
    }
}
