//! Switch and hosts, and the invariants that must hold after each operation.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch_protocol::auth::Direction;
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, KEYLESS_SHARE, MAX_JOBS, MAX_MEMBERS, TRAILER_LEN_BYTES, async_generations,
};
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Status, WireError, emit_seg,
};
use iswitch_protocol::{Key, Round, Seg, VectorLayout};
use iswitch_switch::{
    Config, Counters, Endpoint, Event, Instant, JobStatus, Keys, NonFinite, PortId, StrangerLimits, Switch,
    Uplinks,
};

use crate::host::HostState;
use crate::marked::Ledger;
use crate::operation::{HOSTS, Keyed, Operation, Setup};
use crate::parent::ParentState;

pub(crate) const LEASE_MS: u32 = 400;
pub(crate) const KEYED_JOB: u32 = 2;
/// First of the ports that lead to the parents.
pub(crate) const FIRST_UPLINK: u8 = 10;
pub(crate) const UPLINKS: u8 = 2;
const PAGE_BYTES: usize = 4096;
/// Job that no host ever joins.
const LAST_JOB: u32 = 99;
/// Maximum number of packets that the switch sends after one call.
const MAX_TRANSMITS: usize = 100_000;
/// Maximum number of calls that the switch needs to complete its queued work.
const MAX_TURNS: usize = 100_000;

/// Packet from a host, which may be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) host: u8,
    pub(crate) class: Class,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stride: usize,
    /// Job whose sums stay marked if the switch sums this packet.
    pub(crate) marked_for: Option<u32>,
}

/// Packets from the switch.
struct Received {
    class: Class,
    bytes: Vec<u8>,
    stride: usize,
    to: Vec<Endpoint>,
}

/// Membership of a host, according to the switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) job: u32,
    pub(crate) layout: VectorLayout,
    pub(crate) is_asynchronous: bool,
    pub(crate) is_tagged: bool,
    /// Newest round of the job or, if the job has none yet, the first round in which the host takes part.
    pub(crate) round: Round,
}

pub(crate) struct World {
    pub(crate) switch: Switch,
    config: Config,
    keys: Vec<(Option<u32>, Key)>,
    pub(crate) now_ns: u64,
    /// Latest time that the clock has shown, even before it was turned back.
    latest_ns: u64,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) parent: ParentState,
    pub(crate) sent: Vec<Sent>,
    pub(crate) ledger: Ledger,
    /// Last challenge from the switch.
    challenge: Option<Vec<u8>>,
}

pub(crate) fn host_endpoint(host: u8) -> Endpoint {
    let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 5000);
    let local = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711);
    Endpoint { port: PortId(0), peer, local, peer_mac: [0; 6], local_mac: [0; 6] }
}

/// Returns whether a packet ends with a trailer.
fn is_signed(sent: &Sent) -> bool {
    ControlPacket::new_checked(&sent.bytes).is_ok_and(|packet| packet.is_authenticated())
}

fn config(setup: &Setup) -> Config {
    let parents = [crate::parent::address(false), crate::parent::address(true)];
    let boot_round: u64 = if setup.begins_before_wrap { (1 << 24) - 3 } else { 0 };
    let strangers = if setup.is_strict {
        StrangerLimits { source_rate: 4, total_rate: 16, key: [7; 16] }
    } else {
        StrangerLimits { source_rate: 1_000_000, total_rate: 1_000_000, key: [7; 16] }
    };
    Config {
        boot: boot_round << 40 | u64::from(setup.boot) << 8 | 1,
        lease_ms: LEASE_MS,
        slow_ms: 150,
        memory_bytes: usize::from(setup.memory_pages) * PAGE_BYTES,
        job_memory_bytes: usize::from(setup.job_memory_pages) * PAGE_BYTES,
        max_jobs_per_source: 3,
        strangers,
        recv_buffer_bytes: 100_000,
        non_finite: if setup.sums_non_finite { NonFinite::Sum } else { NonFinite::Refuse },
        uplinks: Uplinks::new(&parents[..usize::from(setup.parents)], PortId(FIRST_UPLINK), UPLINKS),
        ordered: setup.ordered,
        parts: 1,
        group_delivery: true,
        ..Config::default()
    }
}

fn keys(setup: &Setup) -> Vec<(Option<u32>, Key)> {
    let key = |bytes| Key::new(bytes).expect("the key must be long enough");
    let own = (Some(KEYED_JOB), key(b"the key of the job"));
    match setup.keys {
        Keyed::Nobody => vec![],
        Keyed::OneJob => vec![own],
        Keyed::AllJobs => vec![own, (None, key(b"the key of the rest"))],
    }
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let (config, keys) = (config(setup), keys(setup));
        let mut held = Keys::new([9; 16]);
        for (job, key) in &keys {
            assert!(held.insert(*job, key.clone()));
        }
        Self {
            switch: Switch::with_keys(config, held),
            config,
            keys,
            now_ns: 1_000_000,
            latest_ns: 0,
            hosts: (0..HOSTS).map(HostState::new).collect(),
            parent: ParentState::default(),
            sent: Vec::new(),
            ledger: Ledger::default(),
            challenge: None,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    pub(crate) fn key_of(&self, job: u32) -> Option<&Key> {
        let own = self.keys.iter().find(|(of, _)| *of == Some(job));
        own.or_else(|| self.keys.iter().find(|(of, _)| of.is_none())).map(|(_, key)| key)
    }

    pub(crate) fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Join(host, joining) => self.join(host.0, joining),
            Operation::Ask(host, request) => self.ask(host.0, request),
            Operation::Contribute(host, contribution) => self.contribute(host.0, contribution),
            Operation::SendVector(host, round, backwards) => self.send_vector(host.0, *round, *backwards),
            Operation::Again(age, change) => self.send_again(*age, change),
            Operation::Bytes(host, is_control, bytes, stride) => {
                let class = if *is_control { Class::Control } else { Class::Data };
                let (bytes, stride) = (bytes.clone(), usize::from(*stride));
                self.send(Sent { host: host.0, class, bytes, stride, marked_for: None });
            }
            Operation::Unusable(error) => {
                let error = WireError::ALL[usize::from(*error) % WireError::ALL.len()];
                self.switch.handle_invalid(self.now(), error);
                self.settle();
            }
            Operation::Sleep { ms } => self.sleep(Duration::from_millis(u64::from(*ms))),
            Operation::Oversleep { ms } => {
                self.now_ns += u64::from(*ms) * 1_000_000;
                self.wake();
            }
            Operation::TurnBack { ms } => {
                self.latest_ns = self.latest_ns.max(self.now_ns);
                self.now_ns = self.now_ns.saturating_sub(u64::from(*ms) * 1_000_000);
            }
            Operation::FromParent(turn) => self.hear_parent(turn),
        }
    }

    /// Sends a packet from a host, and records it so that it can be sent again.
    pub(crate) fn send(&mut self, sent: Sent) {
        let from = host_endpoint(sent.host);
        self.deliver(&from, &sent);
        // Without a key, the host repeats the packet with the answer to the challenge; with a key, it signs a new Join.
        let mut proven = sent.clone();
        let challenge = self.challenge.take().filter(|_| sent.class == Class::Control && !is_signed(&sent));
        if challenge.is_some_and(|challenge| answer_challenge(&mut proven.bytes, &challenge)) {
            self.deliver(&from, &proven);
        }
        self.sent.push(sent);
    }

    /// Delivers a packet to the switch and checks the invariants.
    pub(crate) fn deliver(&mut self, from: &Endpoint, sent: &Sent) {
        let before = *self.switch.counters();
        let place = self.place_of(&from.peer);
        self.switch.handle_datagrams(self.now(), from, sent.class, &sent.bytes, sent.stride);
        if !self.is_uplink(from) {
            self.check_counted(&before, sent);
        }
        if let Some(place) = place
            && self.switch.counters().contributions > before.contributions
            && sent.marked_for != Some(place.job)
        {
            self.ledger.spoil(place.job);
        }
        let received = self.settle();
        if place.is_none() && self.place_of(&from.peer).is_none() && !self.is_uplink(from) {
            check_no_amplification(from, sent, &received);
        }
    }

    fn is_uplink(&self, endpoint: &Endpoint) -> bool {
        let ports = FIRST_UPLINK..FIRST_UPLINK + UPLINKS;
        self.config.uplinks.is_some() && ports.contains(&endpoint.port.0)
    }

    /// Checks that each datagram from a member or non-member is counted correctly.
    fn check_counted(&self, before: &Counters, sent: &Sent) {
        let after = self.switch.counters();
        let datagrams = sent.bytes.len().div_ceil(sent.stride.max(1)) as u64;
        let summed = after.contributions - before.contributions;
        let dropped = after.dropped() - before.dropped();
        match sent.class {
            Class::Data => {
                assert_eq!(after.data_received - before.data_received, datagrams);
                assert!(summed + dropped >= datagrams.max(1), "{summed} summed, {dropped} dropped: {sent:?}");
                let refusals = dropped - (datagrams.max(1) - summed);
                assert!(refusals <= 1, "more datagrams dropped than received: {sent:?}");
            }
            Class::Control => {
                assert_eq!(after.control_received - before.control_received, datagrams.max(1));
                assert_eq!(summed, 0);
            }
        }
        if self.config.uplinks.is_none() {
            assert!(after.results <= after.contributions && after.partials == 0);
        }
    }

    /// Performs the driver's work after each call, and returns the packets that the switch has sent.
    fn settle(&mut self) -> Vec<Received> {
        self.note_events();
        let jobs: Vec<JobStatus> = self.switch.jobs().collect();
        let before = *self.switch.counters();
        let received = self.drain();
        let count = |class: Class| {
            let of_class = received.iter().filter(|packets| packets.class == class);
            of_class
                .map(|packets| (packets.bytes.len().div_ceil(packets.stride) * packets.to.len()) as u64)
                .sum::<u64>()
        };
        let after = self.switch.counters();
        assert_eq!(after.control_sent - before.control_sent, count(Class::Control));
        assert_eq!(after.data_sent - before.data_sent, count(Class::Data));
        for packets in &received {
            self.receive(&jobs, packets);
        }
        self.check_quota();
        received
    }

    fn drain(&mut self) -> Vec<Received> {
        let mut received = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit() {
            let to: Vec<Endpoint> = transmit.recipients().copied().collect();
            let (class, bytes, stride) = (transmit.class, transmit.payload.to_vec(), transmit.stride);
            assert!(
                !bytes.is_empty() && stride > 0 && bytes.len() <= 65_507,
                "{class:?}: {} bytes",
                bytes.len()
            );
            received.push(Received { class, bytes, stride, to });
            assert!(received.len() < MAX_TRANSMITS, "the switch must stop sending");
        }
        received
    }

    fn receive(&mut self, jobs: &[JobStatus], packets: &Received) {
        let Some(first) = packets.to.first() else { return };
        let goes_up = self.is_uplink(first);
        if packets.class == Class::Control {
            self.challenge = Some(packets.bytes.clone());
            let packet =
                ControlPacket::new_checked(&packets.bytes).expect("the switch must send a valid packet");
            let repr = ControlRepr::parse(&packet).expect("the switch must send a valid packet");
            for to in &packets.to {
                if goes_up {
                    self.parent.note(to, &packet, &repr);
                } else {
                    self.host_hears(to, &packet, &repr);
                }
            }
            return;
        }
        let of_host = |job: &&JobStatus| job.members.iter().any(|member| member.address == first.peer);
        let job = if goes_up {
            let at = usize::from(first.port.0 - FIRST_UPLINK);
            self.parent.job_at(at).and_then(|id| jobs.iter().find(|job| job.job == id))
        } else {
            jobs.iter().find(of_host)
        };
        let job = job.expect("a sum must go to members or the parent of a job");
        let tag_len = if job.tagged { DATA_TAG_LEN_BYTES } else { 0 };
        for bytes in packets.bytes.chunks(packets.stride) {
            self.check_sum(job, goes_up, &bytes[..bytes.len() - tag_len]);
        }
    }

    fn check_sum(&mut self, job: &JobStatus, goes_up: bool, content: &[u8]) {
        let packet = DataPacket::new_checked(content).expect("the switch must send a valid packet");
        let (seg, floats) = (packet.seg(), packet.floats().collect::<Vec<_>>());
        let layout = VectorLayout::new(job.gradient_len, job.segment_floats)
            .expect("the job must have a valid layout");
        assert_eq!(floats.len(), layout.range(seg.index).len(), "{seg:?} must be as long as its segment");
        self.ledger.check_sum(job.job, job.mode == "asynchronous", goes_up, seg, &floats);
    }

    fn note_events(&mut self) {
        while let Some(event) = self.switch.poll_event() {
            assert!(!event.to_string().is_empty());
            match event {
                Event::JobCreated { job, .. } | Event::JobResumed { job, .. } => self.ledger.begin_anew(job),
                Event::EventsLost { .. } => self.ledger.forget_all(),
                _ => {}
            }
        }
    }

    /// Checks that no job exceeds its memory quota, and that all jobs together do not exceed the memory of the switch.
    fn check_quota(&self) {
        let jobs: Vec<JobStatus> = self.switch.jobs().collect();
        let taken = jobs.iter().map(|job| self.memory_of(job));
        let taken: Vec<usize> = taken.collect();
        assert!(jobs.len() <= MAX_JOBS && taken.iter().sum::<usize>() <= self.config.memory_bytes);
        assert!(taken.iter().all(|bytes| *bytes <= self.config.job_memory_bytes));
        let mut addresses: Vec<_> =
            jobs.iter().flat_map(|job| &job.members).map(|member| member.address).collect();
        let members = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), members, "an address must not belong to two members");
        for job in &jobs {
            assert!(!job.members.is_empty() && job.members.len() <= max_members(job), "{job:?}");
            assert!(
                job.authenticated == self.key_of(job.job).is_some() && (job.authenticated || !job.tagged)
            );
            assert!(job.waiting.is_none() || job.formed && !job.halted, "{job:?}");
        }
    }

    fn memory_of(&self, job: &JobStatus) -> usize {
        let vectors = match job.mode {
            "asynchronous" => {
                let partial_sums = if self.config.uplinks.is_some() { 2 } else { 0 };
                async_generations(job.gradient_len) + max_members(job) + partial_sums
            }
            _ if self.config.ordered => 2 + max_members(job),
            _ => 2,
        };
        vectors * job.gradient_len as usize * size_of::<f32>()
    }

    /// Advances the clock; the driver wakes up at every deadline of the switch.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        let end = self.now_ns + duration.as_nanos() as u64;
        while let Some(due) = self.switch.poll_timeout().map(Instant::as_nanos).filter(|due| *due <= end) {
            self.now_ns = self.now_ns.max(due);
            self.wake();
        }
        self.now_ns = self.now_ns.max(end);
    }

    fn wake(&mut self) {
        self.switch.handle_timeout(self.now());
        self.settle();
        // One deadline may cause much work: all members of all jobs may leave at once.
        for _ in 0..MAX_TURNS {
            if self.switch.poll_timeout().is_none_or(|next| next > self.now()) {
                return;
            }
            self.switch.handle_timeout(self.now());
            self.settle();
        }
        panic!("the driver must be able to sleep");
    }

    /// Returns the membership of a host, if it is a member.
    pub(crate) fn place_of(&self, address: &SocketAddrV4) -> Option<Place> {
        self.switch.jobs().find_map(|job| {
            let member = job.members.iter().find(|member| member.address == *address)?;
            Some(Place {
                job: job.job,
                layout: VectorLayout::new(job.gradient_len, job.segment_floats)
                    .expect("the job must have a valid layout"),
                is_asynchronous: job.mode == "asynchronous",
                is_tagged: job.tagged,
                round: Round::new(job.round.unwrap_or(member.start_round)),
            })
        })
    }

    /// Checks that, when all leases have expired, all jobs have ended and all memory is free again.
    pub(crate) fn end(mut self) {
        self.now_ns = self.now_ns.max(self.latest_ns);
        self.sleep(Duration::from_millis(u64::from(LEASE_MS) * 20));
        assert_eq!(self.switch.jobs().count(), 0, "{:?}", self.switch.jobs().collect::<Vec<_>>());
        let share = if self.keys.is_empty() { 1 } else { KEYLESS_SHARE };
        let most_bytes = (self.config.memory_bytes / share).min(self.config.job_memory_bytes);
        let vectors = if self.config.ordered { 3 } else { 2 };
        let gradient_len = (most_bytes / size_of::<f32>() / vectors) as u32;
        if self.key_of(LAST_JOB).is_some() {
            return;
        }
        let join = JoinRepr { instance: 1, ..JoinRepr::worker(gradient_len, 366, 1) };
        let mut bytes = emit_control(LAST_JOB, 1, ControlBody::Join(join));
        let newcomer = host_endpoint(200);
        self.switch.handle_datagrams(self.now(), &newcomer, Class::Control, &bytes, bytes.len());
        let challenges = self.drain();
        assert!(
            challenges.iter().any(|sent| answer_challenge(&mut bytes, &sent.bytes)),
            "a Join must be challenged"
        );
        self.switch.handle_datagrams(self.now(), &newcomer, Class::Control, &bytes, bytes.len());
        let sent = self.drain();
        let answer = sent.iter().find(|sent| sent.to == [newcomer]).expect("the newcomer must get an answer");
        let packet = ControlPacket::new_checked(&answer.bytes).expect("the answer must be an Ack");
        let answer = ControlRepr::parse(&packet).expect("the answer must be an Ack");
        let ControlBody::Ack(ack) = answer.body else { panic!("expected an Ack, got {answer:?}") };
        assert_eq!(ack.status, Status::Success, "all memory must be free again: {ack:?}");
    }
}

/// Checks that a non-member, whose address is not verified, gets no more bytes than it has sent (requirement C-11).
fn check_no_amplification(from: &Endpoint, sent: &Sent, received: &[Received]) {
    let answers = received.iter().filter(|packets| packets.to.contains(from));
    let answered: usize = answers.map(|packets| packets.bytes.len()).sum();
    assert!(answered <= sent.bytes.len(), "{answered} bytes were sent in answer to the shorter {sent:?}");
}

fn max_members(job: &JobStatus) -> usize {
    if job.workers > 0 { usize::from(job.workers) } else { MAX_MEMBERS }
}

pub(crate) fn emit_control(job: u32, request: u32, body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job, request, body };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

/// Adds a trailer to a control packet.
pub(crate) fn sign(
    mut bytes: Vec<u8>,
    key: &Key,
    direction: Direction,
    (context, counter): (u64, u64),
) -> Vec<u8> {
    bytes.resize(bytes.len() + TRAILER_LEN_BYTES, 0);
    key.sign(direction, context, counter, &mut bytes);
    bytes
}

pub(crate) fn data_packet(seg: Seg, floats: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 4 * floats.len()];
    for (word, x) in emit_seg(&mut bytes, seg).as_chunks_mut().0.iter_mut().zip(floats) {
        *word = x.to_le_bytes();
    }
    bytes
}
