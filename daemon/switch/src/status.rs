//! Status of a job for operators.

use core::net::SocketAddrV4;

use alloc::string::String;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use iswitch_protocol::wire::{Kind, Mode};
use iswitch_protocol::{Instant, Label, Round};

use crate::ids::MemberId;
use crate::job::{Group, Job, Member, Slot};
use crate::round_times::RoundTimes;
use crate::uplink::Uplink;
use crate::waiting::Waiting;

#[cfg(feature = "serde")]
fn in_hex<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

/// Returns the text of a label, or `None` if it is empty.
fn known<const N: usize>(label: &Label<N>) -> Option<String> {
    (!label.is_empty()).then(|| label.as_str().to_string())
}

/// Status of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobStatus {
    /// Number of the job.
    pub job: u32,
    /// Name of the job, which a member has stated (requirement N-4); `None` if it is not known. The text is printable.
    pub name: Option<String>,
    /// Owner of the job, which a member has stated; `None` if it is not known. The text is printable.
    pub owner: Option<String>,
    /// Number of floats in the vector of the job. If the parts of several threads are merged, this is the length of the
    /// whole vector.
    pub gradient_len: u32,
    /// Whether the vector is one part of a longer vector, or merged from such parts.
    pub part: bool,
    /// Number of parts that this status describes.
    pub parts: u16,
    /// Number of floats in each segment except the last.
    pub segment_floats: u16,
    /// Element type of the workers' contributions.
    pub contributions: &'static str,
    /// Element type of results.
    pub results: &'static str,
    /// Epoch of the job at the topmost switch, to which its round numbers belong. Serialized as 16 hexadecimal digits,
    /// because numbers in JSON are often read as doubles.
    #[cfg_attr(feature = "serde", serde(serialize_with = "in_hex"))]
    pub boot: u64,
    /// Mode: `synchronous` or `asynchronous`.
    pub mode: &'static str,
    /// Declared number of workers; zero if the job does not wait for workers.
    pub workers: u16,
    /// Whether the job is complete. Rounds can finish only if it is.
    pub formed: bool,
    /// Whether the job has a key, with which its control packets are authenticated.
    pub authenticated: bool,
    /// Whether the data packets of the job are tagged as well.
    pub tagged: bool,
    /// Threshold H of the next round to open.
    pub threshold: u16,
    /// Whether H was set by SetH.
    pub threshold_pinned: bool,
    /// Whether the job is suspended.
    pub halted: bool,
    /// Whether the card of the switch currently sums the job.
    pub on_card: bool,
    /// Address and UDP port of the multicast group of the job, if it has one.
    pub group: Option<SocketAddrV4>,
    /// Latest round, if any has begun.
    pub round: Option<u32>,
    /// Address of the parent switch, if there is one.
    pub parent: Option<SocketAddrV4>,
    /// Time since the last packet from the parent, in milliseconds, if the uplink is in use.
    pub parent_silent_ms: Option<u64>,
    /// Whether the parent is lost. Until it answers again, no sums are delivered.
    pub parent_lost: bool,
    /// Reason why the parent refuses this switch, if it does.
    pub parent_refusal: Option<String>,
    /// Durations of the rounds; only those of the first part, if the parts of several threads are merged.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub round_times: RoundTimes,
    /// Number of digests of the weights that differed from the digest that another member reported first.
    pub diverged: u64,
    /// Members of the job.
    pub members: Vec<MemberStatus>,
    /// Oldest round that is waiting for members, if any, and the members for which it is waiting.
    pub waiting: Option<WaitingStatus>,
}

/// A round that waits for members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WaitingStatus {
    /// Number of the round.
    pub round: u32,
    /// Time since the first contribution to the round, in milliseconds.
    pub waited_ms: u64,
    /// Number of segments in the vector.
    pub segments: u32,
    /// Members that the round waits for.
    pub members: Vec<AwaitedStatus>,
}

/// A member that a round waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AwaitedStatus {
    /// Id of the member.
    pub member: u16,
    /// Rank that the member has stated, if any.
    pub rank: Option<u16>,
    /// Host name that the member has stated; `None` if it is not known. The text is printable.
    pub host: Option<String>,
    /// Address of the member.
    pub address: SocketAddrV4,
    /// Number of segments to which other members have contributed but this member has not.
    pub missing_segments: u32,
}

/// Status of a member (figure 9 of the paper).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MemberStatus {
    /// Id of the member.
    pub id: u16,
    /// Rank that the member has stated, if any.
    pub rank: Option<u16>,
    /// Host name that the member has stated; `None` if it is not known. The text is printable.
    pub host: Option<String>,
    /// Random number that the process of the member drew when it joined. It is the same in all parts of a job.
    pub instance: u32,
    /// Address of the member.
    pub address: SocketAddrV4,
    /// Kind of the member: `worker` or `switch`.
    pub kind: &'static str,
    /// Whether the member receives results through the group of the job.
    pub hears_group: bool,
    /// First round in which the member takes part.
    pub start_round: u32,
    /// Time since the last packet from the member, in milliseconds.
    pub silent_ms: u64,
    /// Number of segments that the member has contributed since it joined.
    pub contributions: u64,
    /// Round of the last contribution, or, in an asynchronous job, the number of the vector to which it belongs; `None`
    /// if there are no contributions.
    pub last_round: Option<u32>,
    /// Time since the last contribution, in milliseconds.
    pub idle_ms: Option<u64>,
}

impl JobStatus {
    pub(crate) fn of(job: &Job, slots: &[Slot], uplink: Option<&Uplink>, now: Instant) -> Self {
        let members = job.members().iter();
        let members = members.map(|(id, member)| MemberStatus::of(id, member, job, now));
        let name = job.members().names_of(None);
        Self {
            job: job.id(),
            name: known(&name.job),
            owner: known(&name.owner),
            gradient_len: job.layout().gradient_len(),
            part: job.is_part(),
            parts: 1,
            segment_floats: job.layout().segment_floats(),
            contributions: job.layout().elements().contributions().name(),
            results: job.layout().elements().results().name(),
            boot: job.epoch(),
            mode: match job.rounds().mode() {
                Mode::Synchronous => "synchronous",
                Mode::Asynchronous => "asynchronous",
            },
            workers: job.workers(),
            formed: job.is_formed(),
            authenticated: job.has_key(),
            tagged: job.is_tagged(),
            threshold: job.threshold(),
            threshold_pinned: job.pinned_threshold().is_some(),
            halted: job.is_halted(),
            on_card: job.rounds().is_on_card(),
            group: job.group().map(Group::address),
            round: job.rounds().numbers().newest().map(Round::get),
            parent: uplink.map(|uplink| uplink.parent().peer),
            parent_silent_ms: uplink
                .filter(|uplink| uplink.is_in_use())
                .map(|uplink| uplink.silence(now).as_millis() as u64),
            parent_lost: uplink.is_some_and(Uplink::is_lost),
            parent_refusal: uplink.and_then(Uplink::refusal).map(|refused| refused.to_string()),
            round_times: *job.round_times(),
            diverged: job.digests().diverged(),
            members: members.collect(),
            waiting: Waiting::of(job, slots).map(|waiting| WaitingStatus::of(&waiting, job, now)),
        }
    }
}

impl JobStatus {
    /// Adds the status of another part of the job. The membership is taken from the first part. A condition that
    /// prevents one part from finishing a round counts for the whole job.
    pub fn add_part(&mut self, part: &Self) {
        self.gradient_len = self.gradient_len.saturating_add(part.gradient_len);
        self.parts += part.parts;
        self.formed &= part.formed;
        self.halted |= part.halted;
        self.threshold_pinned |= part.threshold_pinned;
        self.parent_lost |= part.parent_lost;
        self.parent_silent_ms = self.parent_silent_ms.max(part.parent_silent_ms);
        self.diverged += part.diverged;
        if self.name.is_none() {
            self.name.clone_from(&part.name);
            self.owner.clone_from(&part.owner);
        }
        if self.parent_refusal.is_none() {
            self.parent_refusal.clone_from(&part.parent_refusal);
        }
        let waited = |waiting: &Option<WaitingStatus>| waiting.as_ref().map(|waiting| waiting.waited_ms);
        if waited(&self.waiting) < waited(&part.waiting) {
            self.waiting.clone_from(&part.waiting);
        }
        for other in &part.members {
            let is_same = |own: &&mut MemberStatus| own.instance == other.instance;
            if let Some(own) = self.members.iter_mut().find(is_same) {
                own.rank = own.rank.or(other.rank);
                if own.host.is_none() {
                    own.host.clone_from(&other.host);
                }
                own.silent_ms = own.silent_ms.min(other.silent_ms);
                own.contributions += other.contributions;
                own.idle_ms = own.idle_ms.min(other.idle_ms);
            }
        }
    }
}

impl MemberStatus {
    fn of(id: MemberId, member: &Member, job: &Job, now: Instant) -> Self {
        let progress = &member.progress;
        let name = job.members().names_of(Some(id));
        Self {
            id: id.to_wire(),
            rank: name.rank,
            host: known(&name.host),
            instance: member.instance,
            address: member.endpoint.peer,
            kind: match member.kind {
                Kind::Worker => "worker",
                Kind::Switch => "switch",
            },
            hears_group: job.hears_group(id),
            start_round: member.start.round.get(),
            silent_ms: now.since(member.last_heard).as_millis() as u64,
            contributions: progress.segments,
            last_round: progress.round.map(Round::get),
            idle_ms: progress.round.map(|_| now.since(progress.at).as_millis() as u64),
        }
    }
}

impl WaitingStatus {
    fn of(waiting: &Waiting<'_>, job: &Job, now: Instant) -> Self {
        let missing = waiting.missing_segments();
        let awaited = job.members().iter().filter(|(id, _)| waiting.is_for(*id));
        let members = awaited.map(|(id, member)| {
            let name = job.members().names_of(Some(id));
            AwaitedStatus {
                member: id.to_wire(),
                rank: name.rank,
                host: known(&name.host),
                address: member.endpoint.peer,
                missing_segments: missing[id.get()],
            }
        });
        Self {
            round: waiting.open.round.get(),
            waited_ms: waiting.waited_ms(now),
            segments: waiting.segments(),
            members: members.collect(),
        }
    }
}
