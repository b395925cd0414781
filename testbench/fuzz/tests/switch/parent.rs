//! Parent switches of the fuzzed switch, which send arbitrary packets.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::DATA_TAG_LEN_BYTES;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, Standing, Status,
};
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};
use iswitch_switch::{Endpoint, PortId};

use crate::host::{bitmap, offset, range};
use crate::operation::{ParentTurn, RoundOffset, Saying};
use crate::world::{FIRST_UPLINK, Sent, UPLINKS, World, data_packet, emit_control, sign};

/// State of a parent for one uplink.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    job: Option<u32>,
    join_request: u32,
    /// Counter of the last packet from the switch; 0 if that packet had none.
    counter: u64,
    session: u64,
    own_counter: u64,
    boot: u64,
    /// Number of the asynchronous partial sum that the switch's last Confirm asked about.
    partial: Option<Round>,
}

#[derive(Debug, Default)]
pub(crate) struct ParentState {
    below: [Below; UPLINKS as usize],
}

pub(crate) fn address(is_other: bool) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, if is_other { 2 } else { 1 }), 7711)
}

impl ParentState {
    /// Returns the job of an uplink.
    pub(crate) fn job_at(&self, uplink: usize) -> Option<u32> {
        self.below[uplink].job
    }

    /// Records a control packet from the switch.
    pub(crate) fn note(&mut self, to: &Endpoint, packet: &ControlPacket<'_>, repr: &ControlRepr<'_>) {
        let below = &mut self.below[usize::from(to.port.0 - FIRST_UPLINK)];
        if below.job.replace(repr.job) != Some(repr.job) {
            below.partial = None;
        }
        below.counter = packet.counter().unwrap_or(0);
        if repr.action() == Action::Join {
            below.join_request = repr.request;
        }
        if let ControlBody::Confirm(asked) = repr.body {
            below.partial = Some(asked.range.round);
        }
    }
}

/// State of the job of an uplink.
struct Standpoint {
    job: u32,
    layout: VectorLayout,
    round: Round,
    is_tagged: bool,
}

impl World {
    pub(crate) fn hear_parent(&mut self, turn: &ParentTurn) {
        let at = usize::from(turn.uplink);
        let port = PortId(FIRST_UPLINK + turn.uplink);
        let peer = address(turn.is_other);
        let local = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 254), 7721 + u16::from(turn.uplink));
        let from = Endpoint { port, peer, local, peer_mac: [0; 6], local_mac: [0; 6] };
        if let Some((class, bytes, stride)) = self.words(at, &turn.says) {
            self.deliver(&from, &Sent { host: 0, class, bytes, stride, marked_for: None });
        }
    }

    fn words(&mut self, at: usize, says: &Saying) -> Option<(Class, Vec<u8>, usize)> {
        let standpoint = self.standpoint(at)?;
        let body = match says {
            Saying::Bytes(is_control, bytes, stride) => {
                let class = if *is_control { Class::Control } else { Class::Data };
                // The ledger does not contain sums that the parent sends as arbitrary bytes.
                self.ledger.spoil(standpoint.job);
                return Some((class, bytes.clone(), usize::from(*stride)));
            }
            Saying::Result(offset_by, index, variant) => {
                let indices = u32::from(*index)..u32::from(*index) + 1;
                return Some(self.results(at, &standpoint, *offset_by, indices, *variant));
            }
            Saying::Results(offset_by, variant) => {
                let indices = 0..standpoint.layout.segment_count().min(16);
                return Some(self.results(at, &standpoint, *offset_by, indices, *variant));
            }
            Saying::Halt => ControlBody::Halt,
            Saying::Joined { .. } | Saying::Challenge(_) | Saying::Refused(..) | Saying::Missing(..) => {
                return self.acknowledge(at, &standpoint, says);
            }
        };
        Some(self.seal(at, standpoint.job, 0, body))
    }

    /// Returns an Ack for a request from the switch.
    fn acknowledge(
        &mut self,
        at: usize,
        standpoint: &Standpoint,
        says: &Saying,
    ) -> Option<(Class, Vec<u8>, usize)> {
        let round = |offset_by: &RoundOffset| offset(standpoint.round, *offset_by);
        let below = self.parent.below[at];
        let ack = AckRepr { round: standpoint.round, boot: below.boot, ..ack(Action::Join) };
        let bits;
        let (request, ack) = match says {
            Saying::Joined { formed, standing, round: offset_by, history, boot, lease_ms } => {
                let boot = u64::from(*boot);
                if *formed {
                    self.parent.below[at].boot = boot;
                }
                let (standing, history) = (Standing::from_code(*standing)?, u64::from(*history));
                let (lease_ms, round) = (u32::from(*lease_ms), round(offset_by));
                (
                    below.join_request,
                    AckRepr { formed: *formed, standing, history, boot, lease_ms, round, ..ack },
                )
            }
            Saying::Challenge(nonce) => {
                self.parent.below[at].session = u64::from(*nonce);
                let nonce = u64::from(*nonce);
                let challenge = AckRepr { status: Status::Challenge, history: nonce, ..ack };
                let words = self.echo(at, standpoint.job, below.join_request, ControlBody::Ack(challenge));
                self.parent.below[at].session = nonce;
                return Some(words);
            }
            Saying::Refused(status, offset_by, formed) => {
                let (status, round) = (Status::from_code(*status)?, round(offset_by));
                let action = if *formed { Action::Help } else { Action::Ack };
                (0, AckRepr { status, round, action, formed: *formed, ..ack })
            }
            // Half of the answers to a Confirm report that an aggregate has taken the partial sum.
            Saying::Missing(offset_by, segments) if below.partial.is_some() => {
                bits = bitmap(*segments);
                let missing = SegmentSetRepr::of(range(below.partial?, *segments), &bits);
                let (expected, round) = (u32::from(bits[0] & 1), round(offset_by));
                (1, AckRepr { action: Action::Confirm, missing: Some(missing), expected, round, ..ack })
            }
            Saying::Missing(offset_by, segments) => {
                bits = bitmap(*segments);
                let missing = SegmentSetRepr::of(range(round(offset_by), *segments), &bits);
                (1, AckRepr { action: Action::Help, missing: Some(missing), ..ack })
            }
            _ => return None,
        };
        let body = ControlBody::Ack(ack);
        Some(self.seal(at, standpoint.job, request, body))
    }

    fn standpoint(&self, at: usize) -> Option<Standpoint> {
        let job = self.parent.job_at(at)?;
        let status = self.switch.jobs().find(|status| status.job == job)?;
        Some(Standpoint {
            job,
            layout: VectorLayout::new(status.gradient_len, status.segment_floats).ok()?,
            round: Round::new(status.round.or(status.members.first().map(|member| member.start_round))?),
            is_tagged: status.tagged,
        })
    }

    fn results(
        &mut self,
        at: usize,
        standpoint: &Standpoint,
        offset_by: RoundOffset,
        indices: std::ops::Range<u32>,
        variant: u8,
    ) -> (Class, Vec<u8>, usize) {
        let Standpoint { job, layout, is_tagged, .. } = standpoint;
        let key = self.key_of(*job).filter(|_| *is_tagged);
        let key = key.map(|key| key.result_key(self.parent.below[at].boot, *job));
        let mut packets = Vec::new();
        for index in indices.filter_map(SegmentIndex::new) {
            let seg = Seg {
                index,
                round: offset(standpoint.round, offset_by),
                contributions: u16::from(variant) + 1,
            };
            let floats: Vec<f32> =
                (0..layout.range(index).len()).map(|lane| lane as f32 - f32::from(variant)).collect();
            self.ledger.note_from_parent(*job, seg, &floats);
            let mut packet = data_packet(seg, &floats);
            if let Some(key) = &key {
                packet.resize(packet.len() + DATA_TAG_LEN_BYTES, 0);
                key.sign(&mut packet);
            }
            packets.push(packet);
        }
        let stride = packets.first().map_or(1, Vec::len);
        (Class::Data, packets.concat(), stride)
    }

    /// Returns a control packet, authenticated for the session if one is open.
    fn seal(&mut self, at: usize, job: u32, request: u32, body: ControlBody<'_>) -> (Class, Vec<u8>, usize) {
        let below = &mut self.parent.below[at];
        if below.session == NO_SESSION {
            return self.echo(at, job, request, body);
        }
        below.own_counter += 1;
        let context = (below.session, below.own_counter);
        self.finish(job, emit_control(job, request, body), context)
    }

    /// Returns a control packet that repeats the counter of the packet that it answers.
    fn echo(&mut self, at: usize, job: u32, request: u32, body: ControlBody<'_>) -> (Class, Vec<u8>, usize) {
        let counter = self.parent.below[at].counter;
        self.finish(job, emit_control(job, request, body), (NO_SESSION, counter))
    }

    fn finish(&self, job: u32, bytes: Vec<u8>, context: (u64, u64)) -> (Class, Vec<u8>, usize) {
        let bytes = match self.key_of(job) {
            Some(key) => sign(bytes, key, Direction::ToMember, context),
            None => bytes,
        };
        let stride = bytes.len();
        (Class::Control, bytes, stride)
    }
}

fn ack(action: Action) -> AckRepr<'static> {
    AckRepr {
        members: 2,
        threshold: 2,
        window: 16,
        formed: true,
        lease_ms: 400,
        weight: 4,
        ..AckRepr::bare(action, Status::Success)
    }
}
