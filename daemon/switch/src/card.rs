//! The interface between the core and the driver of a card, which sums the rounds of one job in hardware.
//!
//! The core manages the job: its members, leases, rounds, histories and answers. The driver of the card compares
//! [`CardJob`] with the registers of the card, and passes the card's sums to the core.

use core::net::SocketAddrV4;

use iswitch_protocol::wire::DataPacket;
use iswitch_protocol::{Round, VectorLayout};

use crate::batch::SumBatches;
use crate::endpoint::Endpoint;
use crate::ids::JobIndex;
use crate::job::Job;
use crate::job::carded::Carded;
use crate::lifecycle;
use crate::reason::DropReason;
use crate::state::State;

/// Maximum number of members of a job on a card. A member's id is also the number of its row in the card's table.
pub const MAX_CARD_MEMBERS: usize = 8;

/// Properties of a job that a card needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CardJob {
    /// Number of the job.
    pub id: u32,
    /// Epoch of this incarnation of the job.
    pub epoch: u64,
    /// Segmentation of the job's vectors.
    pub layout: VectorLayout,
    /// Whether the card sums the rounds. Otherwise, the core does.
    pub is_on_card: bool,
    /// Whether the switch has a parent. The sums of the card are then partial sums. Only the host receives them. It
    /// sends them to the parent, and sends the results of the parent to the members.
    pub has_parent: bool,
    /// Whether the parent waits for a round in which no present member takes part.
    pub waits_for_no_member: bool,
    /// Whether the job is suspended.
    pub is_halted: bool,
    /// Threshold H of the rounds that open next.
    pub threshold: u16,
    /// Newest round that has opened, and its threshold H, which falls as members leave.
    pub newest: Option<(Round, u16)>,
    /// Next round to open.
    pub next: Round,
    /// Switch address to which the first member sends.
    pub local: Option<Endpoint>,
    /// Group that receives one copy of each result. Its `peer` is the address of the group.
    pub group: Option<Endpoint>,
    /// Members by id.
    pub members: [Option<CardMember>; MAX_CARD_MEMBERS],
}

/// Properties of a member that a card needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMember {
    /// Address of the member, and port that leads to it.
    pub endpoint: Endpoint,
    /// Whether the member is a switch.
    pub is_switch: bool,
    /// Whether the member receives results through the group. The core sends them to all other members.
    pub hears_group: bool,
}

impl CardJob {
    fn of(job: &Job) -> Self {
        let mut members = [None; MAX_CARD_MEMBERS];
        for (id, member) in job.members().iter() {
            let is_switch = member.kind == iswitch_protocol::wire::Kind::Switch;
            let hears_group = job.hears_group(id);
            if let Some(row) = members.get_mut(id.get()) {
                *row = Some(CardMember { endpoint: member.endpoint, is_switch, hears_group });
            }
        }
        let numbers = job.rounds().numbers();
        let open = numbers.newest().and_then(|newest| job.rounds().open_round(newest));
        Self {
            id: job.id(),
            epoch: job.epoch(),
            layout: *job.layout(),
            is_on_card: job.rounds().is_on_card(),
            has_parent: job.has_parent(),
            waits_for_no_member: job.waits_for_no_member(),
            is_halted: job.is_halted(),
            threshold: job.threshold(),
            newest: open.map(|open| (open.round, open.threshold)),
            next: numbers.next(),
            local: job.members().iter().next().map(|(_, member)| member.endpoint),
            group: job.group().and_then(|group| group.used_outlets().next()).map(|outlet| *outlet.to()),
            members,
        }
    }

    /// Returns the row of the member with this address, which is also the member's id. Returns `None` if no member has
    /// the address.
    #[must_use]
    pub fn row_of(&self, peer: SocketAddrV4) -> Option<usize> {
        let is_it = |member: &Option<CardMember>| member.is_some_and(|member| member.endpoint.peer == peer);
        self.members.iter().position(is_it)
    }
}

/// Returns the job that the card serves, or that it will serve once the core has completed the steps that only the core
/// can perform.
pub(crate) fn job(state: &State) -> Option<CardJob> {
    state.jobs.get(index(state)?).map(CardJob::of)
}

fn index(state: &State) -> Option<JobIndex> {
    state.jobs.iter().find(|(_, job)| job.is_for_card()).map(|(at, _)| at)
}

/// Hands the job over to the card, and returns the first round that the card sums. Returns `None` if the job is already
/// on the card, or if the core has to finish something first.
pub(crate) fn take_over(state: &mut State) -> Option<Round> {
    let at = index(state)?;
    let mut carded = Carded(state.aggregation(at)?);
    if carded.0.job().rounds().is_on_card() { None } else { carded.take_over() }
}

/// Takes the job back from the card, and continues it in the core.
pub(crate) fn take_back(state: &mut State) {
    let Some(at) = index(state) else { return };
    if let Some(aggregation) = state.aggregation(at) {
        Carded(aggregation).take_back();
        lifecycle::close_finished(state, at);
    }
}

/// Processes sums that the card has sent to the host: results or, if the switch has a parent, partial sums.
pub(crate) fn handle_sums(state: &mut State, payload: &[u8], stride: usize) {
    let Some(at) = index(state) else { return };
    if !state.outbox.is_drained() {
        return state.counters.count_drop(DropReason::Busy);
    }
    state.aim_results(at);
    state.aim_partials(at);
    for bytes in payload.chunks(stride) {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                state.counters.count_drop(DropReason::Wire(error));
                continue;
            }
        };
        let Some((aggregation, outbox, counters)) = state.parts(at) else { return };
        let (seg, mut carded) = (packet.seg(), Carded(aggregation));
        if !carded.0.job().rounds().is_on_card() || !carded.finish(seg, packet.element_bytes()) {
            counters.count_drop(DropReason::Late);
            continue;
        }
        let mut batches =
            SumBatches { results: &mut outbox.results.batch, partials: &mut outbox.partials.batch };
        if carded.push(seg.round, seg.index, &mut batches) {
            counters.partials += 1;
        } else {
            counters.results += 1;
        }
        counters.contributions += u64::from(seg.contributions);
    }
    state.record_rounds(at);
}

/// Opens the round before `next`, the next round that the card will open, if the core has not opened it yet.
pub(crate) fn note_opened(state: &mut State, next: Round) {
    let Some(at) = index(state) else { return };
    let Some(aggregation) = state.aggregation(at) else { return };
    if aggregation.job().rounds().is_on_card() {
        Carded(aggregation).note_opened(next);
        state.record_rounds(at);
    }
}
