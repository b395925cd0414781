//! The driver of a card: it passes frames between the ports, the card and the core, and keeps the registers of the card
//! in step with the core's job.
//!
//! The core manages the membership and answers all control packets; the card sums one job. While a job is on the card,
//! the driver
//! - reads the card's tables before the core handles a control packet that depends on them,
//! - passes the card's sums to the core, which sends them to the parent, if there is one, or else to the members that
//!   the group does not reach,
//! - compares the core's job with the registers after each packet and each timer, and writes the registers that differ.
//!
//! During this time, the card forwards data packets from addresses that are not in its member table; the core sums them
//! if the sender is a member of another job. While no job is on the card, the card forwards all frames. The core also
//! sums the card's job until all of its workers have joined, while members resend a sum after a restart, and in rounds
//! at which the parent resumes the switch or that the core takes back from the card.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch_card::registers::offset;
use iswitch_card::{
    Card, CardCounters, CardError, Frame, HOST_PORT, JobSetup, MEMBERS, MIN_FRAME_LEN_BYTES, Member,
    PACE_10G, Tables,
};
use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, UDP_HEADER_LEN_BYTES};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::frame::HEADERS_LEN_BYTES;
use iswitch_protocol::wire::{
    Action, Class, Classifier, ControlBody, ControlPacket, ControlRepr, FrameAddresses,
};
use iswitch_protocol::{Instant, Round};
use iswitch_switch::{CardJob, Endpoint, MAX_CARD_MEMBERS, PortId, Switch};

use crate::port::Port;
use crate::runtime::transmit;
use crate::snapshot::CardSnapshot;

/// Number of network ports of a card.
pub const CARD_PORTS: usize = 4;
/// Maximum time between two readings of the counters. Their registers wrap after 72 s at line rate.
const COUNTERS_INTERVAL: Duration = Duration::from_secs(10);
/// Flag of THRESHOLD: the new threshold also applies to the rounds that are open.
const ALSO_OPEN: u32 = 1 << 31;
/// Destination of results while no group reaches a member: the results go only to the host.
const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::BROADCAST, 9);

const _: () = assert!(MEMBERS == MAX_CARD_MEMBERS);

/// Driver of a card, with the state that it has written to the card.
pub struct CardDriver {
    card: Box<dyn Card>,
    slots: u32,
    /// Number of ports of the switch that are ports of the card. They come before all other ports.
    ports: usize,
    classifier: Classifier,
    /// Frames from the ports that have not entered the card yet.
    arriving: Vec<Frame>,
    /// Frames that have left the card and are not processed yet.
    leaving: Vec<Frame>,
    begun: Option<Begun>,
    counters: CardCounters,
    counters_read: Instant,
}

/// Job that the card sums.
struct Begun {
    epoch: u64,
    setup: JobSetup,
    is_halted: bool,
    /// Whether the accelerator is halted while the host admits a member.
    is_paused: bool,
    /// Whether the threshold of an open round differs from the core's, because the two open rounds have different
    /// members.
    is_uneven: bool,
    /// Whether the parent waits for a round in which no present member takes part.
    is_deserted: bool,
    /// Whether the driver is ending the job on the card: it waits only until the core has received the sums that have
    /// left the card.
    is_ending: bool,
}

impl Begun {
    fn new(epoch: u64, setup: JobSetup) -> Self {
        Self {
            epoch,
            setup,
            is_halted: false,
            is_paused: false,
            is_uneven: false,
            is_deserted: false,
            is_ending: false,
        }
    }
}

impl CardDriver {
    /// Takes control of a card, and ends any job on it. `slots` is the number of slots in the card's build. The first
    /// `ports` ports of the switch are those of the card, in the order of their bits in `tuser`.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn new(
        mut card: Box<dyn Card>,
        slots: u32,
        ports: usize,
        classifier: Classifier,
    ) -> Result<Self, CardError> {
        let (at, value) = JobSetup::end();
        card.write(at, value)?;
        let counters = CardCounters::new(card.as_mut())?;
        let (arriving, leaving) = (Vec::new(), Vec::new());
        let counters_read = Instant::default();
        let begun = None;
        Ok(Self { card, slots, ports, classifier, arriving, leaving, begun, counters, counters_read })
    }

    /// Returns whether packets that arrive at a port enter the card.
    pub(crate) fn serves(&self, port: PortId) -> bool {
        usize::from(port.0) < self.ports
    }

    /// Returns whether the card sends the results of its job to this address.
    pub(crate) fn sends_to(&self, group: SocketAddrV4) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.setup.addresses.destination == group)
    }

    fn read_counters(&mut self, now: Instant) -> Result<(), CardError> {
        self.counters_read = now;
        self.counters.refresh(self.card.as_mut())
    }

    /// Reads the counters of the card, and returns them.
    pub(crate) fn snapshot(&mut self, now: Instant) -> Result<CardSnapshot, CardError> {
        self.read_counters(now)?;
        let (counters, drops) = (self.counters.iter().collect(), self.counters.drops().collect());
        Ok(CardSnapshot { counters, drops })
    }

    /// Takes datagrams that arrived at a port. The card processes them in the next [`Self::turn`].
    pub(crate) fn take(&mut self, from: &Endpoint, class: Class, payload: &[u8], stride: usize) {
        let addresses = FrameAddresses {
            source_mac: from.peer_mac,
            destination_mac: from.local_mac,
            source: from.peer,
            destination: from.local,
        };
        for bytes in payload.chunks(stride.max(1)) {
            let mut frame = self.classifier.emit_headers(class, &addresses, bytes.len()).to_vec();
            frame.extend_from_slice(bytes);
            frame.resize(frame.len().max(MIN_FRAME_LEN_BYTES), 0);
            // The port lookup on the board sends every frame that is addressed to the switch to the host.
            self.arriving.push(Frame { bytes: frame, source: port_bit(from.port), destination: HOST_PORT });
        }
    }

    /// Lets the card process the frames that have arrived, and processes those that leave it.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        switch: &mut Switch,
        ports: &mut [Option<Box<dyn Port>>],
    ) -> Result<(), CardError> {
        if now.since(self.counters_read) >= COUNTERS_INTERVAL {
            self.read_counters(now)?;
        }
        if !self.arriving.is_empty() {
            let arriving = std::mem::take(&mut self.arriving);
            self.card.exchange(&arriving, &mut self.leaving)?;
        }
        while !self.leaving.is_empty() {
            let leaving = std::mem::take(&mut self.leaving);
            leaving.iter().for_each(|frame| send_to_ports(frame, &mut ports[..self.ports]));
            let (sums, others): (Vec<_>, Vec<_>) = leaving
                .iter()
                .filter(|frame| frame.destination & HOST_PORT != 0)
                .partition(|frame| frame.source == 0);
            // The registers already reflect all of these sums, so the core must receive them before it handles control
            // packets.
            for payload in sums.into_iter().filter_map(|frame| payload_of(&frame.bytes)) {
                switch.handle_card_sums(now, payload, payload.len());
                transmit(switch, ports, Some(self));
            }
            let reads_tables = !others.is_empty();
            for frame in others {
                self.deliver(now, frame, switch)?;
                transmit(switch, ports, Some(self));
            }
            if reads_tables {
                // Results that members have requested may have left in the meantime.
                self.card.exchange(&[], &mut self.leaving)?;
            }
            // These sums may have completed the rounds that the core had to finish before the card can take over.
            self.sync(switch)?;
            transmit(switch, ports, Some(self));
        }
        Ok(())
    }

    /// Passes to the core a frame that the card has sent to the host.
    fn deliver(&mut self, now: Instant, frame: &Frame, switch: &mut Switch) -> Result<(), CardError> {
        let view = match self.classifier.classify(&frame.bytes) {
            None => return Ok(()),
            Some(Err(error)) => {
                switch.handle_invalid(now, error);
                return Ok(());
            }
            Some(Ok(view)) => view,
        };
        let FrameAddresses { source_mac, destination_mac, source, destination } = view.addresses;
        let from = Endpoint {
            port: PortId((frame.source.trailing_zeros() / 2) as u8),
            peer: source,
            local: destination,
            peer_mac: source_mac,
            local_mac: destination_mac,
        };
        if view.class == Class::Control {
            self.prepare(&from, view.payload, switch)?;
        }
        switch.handle_datagrams(now, &from, view.class, view.payload, view.payload.len());
        self.sync(switch)
    }

    /// Reads the parts of the card's tables that the core needs before it handles a control packet.
    fn prepare(&mut self, from: &Endpoint, bytes: &[u8], switch: &mut Switch) -> Result<(), CardError> {
        let Some(begun) = &mut self.begun else { return Ok(()) };
        let Ok(packet) = ControlPacket::new_checked(bytes) else { return Ok(()) };
        if packet.job() != begun.setup.id {
            return Ok(());
        }
        if packet.action_code() == Action::Join as u8 {
            // No round may open between the choice of the newcomer's first round and the newcomer's entry in the member
            // table.
            let (at, value) = begun.setup.control(true);
            self.card.write(at, value)?;
            begun.is_paused = true;
        }
        let mut tables = tables(self.card.as_mut(), self.slots, &begun.setup);
        switch.note_card_round(tables.next_round()?);
        let help = ControlRepr::parse(&packet).ok().map(|repr| repr.body);
        let row = switch.card_job().and_then(|job| job.row_of(from.peer));
        if let (Some(ControlBody::Help(wanted)), Some(row)) = (help, row) {
            let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
            let segments = begun.setup.layout.segment_count();
            let asked: Vec<_> = wanted.indices().filter(|index| *index < segments).collect();
            for index in tables.missing(row, wanted.range.round, &asked)? {
                let bit = index - wanted.range.first;
                bitmap[bit as usize / 8] |= 1 << (bit % 8);
            }
            switch.note_card_missing(from, SegmentSetRepr::of(wanted.range, &bitmap));
        }
        Ok(())
    }

    /// Writes the registers that differ from the core's job. Call this after any operation that may change the job, and
    /// before the packets that announce the change are sent.
    pub(crate) fn sync(&mut self, switch: &mut Switch) -> Result<(), CardError> {
        let job = switch.card_job();
        let is_over = |begun: &Begun| {
            job.is_none_or(|job| (job.id, job.epoch) != (begun.setup.id, begun.epoch) || !job.is_on_card)
        };
        if self.begun.as_ref().is_some_and(is_over) {
            let (at, value) = JobSetup::end();
            self.card.write(at, value)?;
            self.begun = None;
        }
        let Some(job) = job else { return Ok(()) };
        if self.begun.is_none() {
            if job.local.is_some()
                && let Some(base) = switch.move_to_card()
                && let Some(job) = switch.card_job()
            {
                self.begin(&job, base)?;
            }
            return Ok(());
        }
        self.update(&job)?;
        if let Some(begun) = &mut self.begun {
            begun.is_deserted |= job.waits_for_no_member;
            if begun.is_deserted {
                return self.give_back(switch);
            }
        }
        while let Some(range) = switch.poll_card_closing() {
            let Some(begun) = &self.begun else { break };
            let mut tables = tables(self.card.as_mut(), self.slots, &begun.setup);
            tables.finish(range.round, (range.first, range.count), false, &mut self.leaving)?;
        }
        Ok(())
    }

    /// Begins the job on the card.
    fn begin(&mut self, job: &CardJob, base: Round) -> Result<(), CardError> {
        let setup = self.setup(job, base);
        // The core assigns to the card only jobs that are within the limits of the card.
        let writes = setup.begin().map_err(std::io::Error::other)?;
        for (at, value) in writes {
            self.card.write(at, value)?;
        }
        tracing::info!(job = job.id, round = base.get(), "the card sums the job");
        self.begun = Some(Begun::new(job.epoch, setup));
        if job.is_halted { self.update(job) } else { Ok(()) }
    }

    /// Returns the configuration of the card for the core's job.
    fn setup(&self, job: &CardJob, base: Round) -> JobSetup {
        let before = self.begun.as_ref().map(|begun| begun.setup.addresses);
        // Partial sums go only to the host.
        let (local, group) = (job.local, job.group.filter(|_| !job.has_parent));
        let source = local.or(job.group).map(|endpoint| (endpoint.local_mac, endpoint.local));
        let (source_mac, source) =
            source.or(before.map(|it| (it.source_mac, it.source))).unwrap_or(([0; 6], NOBODY));
        let (destination_mac, destination) =
            group.map_or(([0xff; 6], NOBODY), |group| (group.peer_mac, group.peer));
        let hears = |member: &iswitch_switch::CardMember| member.hears_group && !job.has_parent;
        let member = |member: iswitch_switch::CardMember| Member {
            address: member.endpoint.peer,
            is_switch: member.is_switch,
            port: if hears(&member) { port_bit(member.endpoint.port) } else { 0 },
        };
        JobSetup {
            id: job.id,
            layout: job.layout,
            base,
            threshold: job.threshold.clamp(1, 64) as u8,
            members: job.members.map(|row| row.map(member)),
            // If the switch has a parent, the card keeps partial sums, which must not reach a member.
            repeats: !job.has_parent,
            // A sender that is not in the member table may be a member of another job.
            forwards_strangers: true,
            pace: PACE_10G,
            addresses: FrameAddresses { source_mac, destination_mac, source, destination },
            classifier: self.classifier,
        }
    }

    /// Writes what has changed in a job that is on the card.
    fn update(&mut self, job: &CardJob) -> Result<(), CardError> {
        let Some(begun) = &self.begun else { return Ok(()) };
        let new = self.setup(job, begun.setup.base);
        let Some(begun) = &mut self.begun else { return Ok(()) };
        let old = std::mem::replace(&mut begun.setup, new);
        let new = &begun.setup;
        let (mut has_departed, mut is_fixed) = (false, false);
        for row in 0..MEMBERS {
            let address = |setup: &JobSetup| setup.members[row].map(|member| member.address);
            if old.members[row].is_some() && address(&old) != address(new) {
                self.card.write(offset::MEMBERS + 8 * row as u16 + 4, 0)?;
                has_departed = true;
            }
        }
        if has_departed && let Some(round) = job.newest {
            is_fixed = true;
            self.card.write(offset::THRESHOLD, u32::from(round.1.clamp(1, 64)) | ALSO_OPEN)?;
        }
        if old.header() != new.header() {
            for (at, value) in new.header() {
                self.card.write(at, value)?;
            }
        }
        for row in (0..MEMBERS).filter(|row| old.members[*row] != new.members[*row]) {
            for (at, value) in new.member(row) {
                self.card.write(at, value)?;
            }
        }
        if is_fixed || old.threshold != new.threshold {
            self.card.write(offset::THRESHOLD, u32::from(new.threshold))?;
        }
        if begun.is_paused || begun.is_halted != job.is_halted {
            let (at, value) = new.control(job.is_halted);
            self.card.write(at, value)?;
            (begun.is_paused, begun.is_halted) = (false, job.is_halted);
        }
        if has_departed { self.close(job) } else { self.close_uneven(job) }
    }

    /// Ends the job on the card if the parent waits for a round in which no present member takes part. The card first
    /// finishes the segments to which departed members have contributed, and the core receives these partial sums. For
    /// every other segment of the round, the core sends a contribution count of 65,535 to the parent (H-8).
    fn give_back(&mut self, switch: &mut Switch) -> Result<(), CardError> {
        let Some(begun) = &mut self.begun else { return Ok(()) };
        if !std::mem::replace(&mut begun.is_ending, true) {
            let segments = begun.setup.layout.segment_count();
            let mut tables = tables(self.card.as_mut(), self.slots, &begun.setup);
            let next = tables.next_round()?;
            switch.note_card_round(next);
            for round in [next.previous().previous(), next.previous()] {
                tables.finish(round, (0, segments), false, &mut self.leaving)?;
            }
        }
        if self.leaving.is_empty() {
            self.begun = None;
            switch.take_from_card();
            let (at, value) = JobSetup::end();
            self.card.write(at, value)?;
        }
        Ok(())
    }

    /// Finishes the segments that no longer wait for any member after a departure.
    fn close(&mut self, job: &CardJob) -> Result<(), CardError> {
        let Some(begun) = &mut self.begun else { return Ok(()) };
        let segments = begun.setup.layout.segment_count();
        let mut tables = tables(self.card.as_mut(), self.slots, &begun.setup);
        let newest = tables.next_round()?.previous();
        let (earlier, last) = (tables.round(newest.previous())?, tables.round(newest)?);
        let is_deserted = |open: iswitch_card::OpenRound| open.unfinished > 0 && open.participants == 0;
        if is_deserted(last) || is_deserted(earlier) {
            if job.has_parent {
                begun.is_deserted = true;
                return Ok(());
            }
            // No member will finish the round, and the next round would wait for it.
            return self.begin(job, job.next);
        }
        if last.unfinished > 0 {
            tables.finish(newest, (0, segments), true, &mut self.leaving)?;
        }
        begun.is_uneven = earlier.unfinished > 0;
        self.close_uneven(job)
    }

    /// Finishes those segments of the earlier open round to which all participants of that round have contributed. A
    /// single threshold applies to both open rounds, but a newcomer takes part only in the later one.
    fn close_uneven(&mut self, job: &CardJob) -> Result<(), CardError> {
        let Some(begun) = self.begun.as_mut().filter(|begun| begun.is_uneven) else { return Ok(()) };
        let mut tables = tables(self.card.as_mut(), self.slots, &begun.setup);
        let round = tables.next_round()?.previous().previous();
        let open = tables.round(round)?;
        begun.is_uneven = open.unfinished > 0 && job.newest.is_some();
        for index in (0..begun.setup.layout.segment_count()).filter(|_| open.unfinished > 0) {
            if tables.is_complete(round, index, open.participants)? {
                tables.finish(round, (index, 1), false, &mut self.leaving)?;
            }
        }
        Ok(())
    }
}

fn tables<'a>(card: &'a mut dyn Card, slots: u32, setup: &JobSetup) -> Tables<'a> {
    Tables { card, slots, layout: setup.layout, base: setup.base }
}

/// Returns the bit of `tuser` for a port of the switch.
fn port_bit(port: PortId) -> u8 {
    1_u8.checked_shl(2 * u32::from(port.0)).unwrap_or(0)
}

/// Sends a frame that has left the card through the network ports that it names.
fn send_to_ports(frame: &Frame, ports: &mut [Option<Box<dyn Port>>]) {
    for (at, port) in ports.iter_mut().enumerate().take(CARD_PORTS) {
        if frame.destination & port_bit(PortId(at as u8)) != 0
            && let Some(port) = port
        {
            port.send_frame(&frame.bytes);
        }
    }
}

/// Returns the UDP payload of a result, whose headers the card has generated. Returns `None` if the frame is shorter
/// than its headers indicate.
fn payload_of(frame: &[u8]) -> Option<&[u8]> {
    let at = HEADERS_LEN_BYTES - UDP_HEADER_LEN_BYTES + 4;
    let udp_len = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
    let end = HEADERS_LEN_BYTES - UDP_HEADER_LEN_BYTES + usize::from(udp_len);
    frame.get(HEADERS_LEN_BYTES..end)
}
