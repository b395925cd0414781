//! Packets received and sent by switches and workers, and events reported by switches.

use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch::worker::Path;
use iswitch_protocol::limits::DATA_TAG_LEN_BYTES;
use iswitch_protocol::wire::{Class, WireError};
use iswitch_protocol::{Round, Seg};
use iswitch_switch::{Config, Counters, Departure, Endpoint, Event, PortId, Switch, Uplinks};

use super::super::addresses::{Member, member_at, switch_address, uplink_address, worker_address};
use super::super::checker::{RoundThen, Rule, Violation, mix, violated};
use super::super::packets::Packet;
use super::super::process::{Progress, SwitchNode, WorkerNode};
use super::super::swarm::{Node, Protection, Scenario};
use super::super::transcript::{describe, is_heartbeat};
use super::super::turns;
use super::super::wires::Direction;
use super::super::worker::Options;
use super::super::{JOB, ScheduledEvent, keys};
use super::{BEGIN, World, switch_node};

/// Memory of a switch in addition to that for the vector, in bytes.
const SWITCH_MEMORY_BYTES: usize = 64 << 10;
/// Maximum memory per segment, for both generations of slots together, in bytes; the switch has one slot per 256 bytes.
const SEGMENT_MEMORY_BYTES: usize = 1 << 10;
/// Port on which a switch serves its members. `UPLINK` is the port that leads to its parent.
const SERVICE: PortId = PortId(0);
const UPLINK: PortId = PortId(1);
const FIRST_UDP_PORT: u16 = 5000;

impl World<'_> {
    pub(super) fn start_switch(&mut self, at: usize) {
        if self.switches[at].switch.is_some() {
            return;
        }
        self.boots += 1;
        let boot = mix(self.seed ^ self.boots << 48);
        self.note(|| format!("{:?} starts, boot {boot:x}", switch_node(at)));
        let parent = self.switches[at].parent.map(switch_address);
        let copies = if self.scenario.ordered { 1 + self.scenario.workers } else { 1 };
        let config = Config {
            boot,
            lease_ms: self.scenario.lease_ms,
            memory_bytes: SWITCH_MEMORY_BYTES
                + SEGMENT_MEMORY_BYTES * copies * self.checker.segments() as usize,
            recv_buffer_bytes: self.scenario.switch_buffer_bytes,
            uplinks: parent
                .and_then(|parent| Uplinks::new(&[parent], UPLINK, 1))
                .map(|uplinks| uplinks.with_host(self.scenario.names.of_switch(at))),
            ordered: self.scenario.ordered,
            group_delivery: true,
            work_per_turn: self.scenario.work_per_turn,
            ..Config::default()
        };
        let keys = keys(boot, self.scenario.protection != Protection::Nothing);
        if at == 0 {
            (self.named, self.named_before) = (None, None);
        }
        self.switches[at].start(config, keys);
    }

    pub(super) fn wake_switch(&mut self, at: usize) -> Result<(), Violation> {
        let clock = self.switches[at].process.clock(self.now);
        let Some(switch) = &mut self.switches[at].switch else { return Ok(()) };
        let before = *switch.counters();
        switch.handle_timeout(clock);
        self.flush_switch(at, &before)
    }

    /// Reports a packet with a wrong checksum to a switch.
    pub(super) fn give_switch_invalid(&mut self, at: usize, packet: u32) -> Result<(), Violation> {
        self.wires.packets.discard(packet);
        let clock = self.switches[at].process.clock(self.now);
        let Some(switch) = &mut self.switches[at].switch else { return Ok(()) };
        let before = *switch.counters();
        switch.handle_invalid(clock, WireError::BadChecksum);
        let dropped = switch.counters().dropped() - before.dropped();
        if dropped != 1 {
            return violated(
                Rule::Counters,
                format!("an invalid frame was counted as dropped {dropped} times, expected once"),
            );
        }
        self.flush_switch(at, &before)?;
        self.schedule(switch_node(at));
        Ok(())
    }

    pub(super) fn give_switch(&mut self, at: usize, slot: u32, peer: SocketAddrV4) -> Result<(), Violation> {
        let clock = self.switches[at].process.clock(self.now);
        let packet = self.wires.packets.take(slot);
        let Packet { class, bytes, stride } = &packet;
        let from = match (member_at(peer), self.switches[at].parent) {
            // The address at the lower end of the link is the switch's own.
            (Member::Rack(rack), Some(parent)) if rack == at => {
                endpoint(UPLINK, switch_address(parent), peer)
            }
            _ => endpoint(SERVICE, peer, switch_address(at)),
        };
        if !is_heartbeat(*class, bytes) {
            let (sender, node) = (from.peer, switch_node(at));
            let text = || format!("{sender} -> {node:?}: {}", describe(*class, bytes, *stride));
            self.transcript.note(self.now, text);
        }
        if let Some(switch) = &mut self.switches[at].switch {
            let before = *switch.counters();
            switch.handle_datagrams(clock, &from, *class, bytes, *stride);
            let datagrams = bytes.len().div_ceil((*stride).max(1)) as u64;
            if from.port == SERVICE {
                check_received(&before, switch.counters(), *class, datagrams)?;
            }
            self.flush_switch(at, &before)?;
            self.schedule(switch_node(at));
        }
        self.wires.packets.give_back(slot, packet);
        Ok(())
    }

    /// Sends the pending packets of a switch and checks the events that it reports.
    pub(super) fn flush_switch(&mut self, at: usize, before: &Counters) -> Result<(), Violation> {
        let boot = self.follow_epoch(at);
        let turn = turns::duration(self.scenario.work_per_turn);
        self.switches[at].process.busy_until = self.now.plus(turn);
        let tag_len = if self.scenario.protection == Protection::All { DATA_TAG_LEN_BYTES } else { 0 };
        let named_before = self.named_before.filter(|_| self.report.unchecked == 0);
        let elapsed = self.now.since(BEGIN);
        let Self { switches, wires, checker, report, transcript, workers, scenario, healed_at, .. } = self;
        let SwitchNode { switch, parent, .. } = &mut switches[at];
        let Some(switch) = switch else { return Ok(()) };
        let (mut data_sent, mut control_sent) = (0, 0);
        while let Some(transmit) = switch.poll_transmit() {
            let goes_up = transmit.recipients().any(|to| to.port == UPLINK);
            // A link is identified by the address at its lower end.
            let peer = |to: &Endpoint| if goes_up { uplink_address(at) } else { to.peer };
            let (groups, peers): (Vec<_>, Vec<_>) =
                transmit.recipients().map(peer).partition(|to| to.ip().is_multicast());
            let (class, payload, stride) = (transmit.class, transmit.payload, transmit.stride);
            let each = payload.len().div_ceil(stride.max(1)) as u64;
            let datagrams = each * (groups.len() + peers.len()) as u64;
            match class {
                Class::Data => data_sent += datagrams,
                Class::Control => control_sent += datagrams,
            }
            if !is_heartbeat(class, payload) {
                transcript.note(self.now, || {
                    let to: Vec<_> = transmit.recipients().map(|to| to.peer).collect();
                    format!("{:?} -> {to:?}: {}", switch_node(at), describe(class, payload, stride))
                });
            }
            if class == Class::Data {
                for bytes in payload.chunks(stride) {
                    let content = &bytes[..bytes.len().saturating_sub(tag_len)];
                    match parent {
                        None => {
                            check_unnamed(content, named_before.filter(|_| at == 0))?;
                            checker.sent(boot, content)?;
                        }
                        Some(_) if goes_up => checker.sent_up(boot, content)?,
                        Some(_) => checker.passed_on(boot, content)?,
                    }
                }
            }
            let direction = if goes_up { Direction::Up } else { Direction::Down };
            let above = parent.filter(|_| goes_up).unwrap_or(at);
            wires.send(self.now, direction, (&peers, above), class, payload, stride);
            for group in groups {
                report.group_packets += if class == Class::Data { each } else { 0 };
                let subscribers: Vec<_> = subscribers(workers, scenario, at, group, elapsed).collect();
                let loss = if healed_at.is_none() { scenario.groups.loss } else { 0.0 };
                wires.send_to_group(self.now, (group, at), (&subscribers, loss), class, payload, stride);
            }
        }
        report.data_packets += data_sent;
        report.control_packets += control_sent;
        let after = switch.counters();
        let counted = (after.data_sent - before.data_sent, after.control_sent - before.control_sent);
        if counted != (data_sent, control_sent) {
            let detail = format!(
                "(data, control) packets counted as sent: {counted:?}, expected {:?}",
                (data_sent, control_sent)
            );
            return violated(Rule::Counters, detail);
        }
        while let Some(event) = self.switches[at].switch.as_mut().and_then(Switch::poll_event) {
            self.note(|| format!("{:?}: {event}", switch_node(at)));
            self.hear(at, event)?;
        }
        Ok(())
    }

    /// Returns the epoch to which the round numbers of a switch belong, and records a new epoch of the root.
    fn follow_epoch(&mut self, at: usize) -> u64 {
        // Round numbers are those of the topmost switch (H-4).
        let epoch = self.switches[at].switch.as_ref().and_then(|switch| switch.epoch_of(JOB));
        match (self.switches[at].parent, epoch) {
            (Some(_), epoch) => epoch.unwrap_or(0),
            (None, Some(epoch)) => {
                if std::mem::replace(&mut self.switches[at].boot, epoch) != epoch && at == 0 {
                    self.named_before = self.named.take().or(self.named_before);
                }
                epoch
            }
            // The last packets and events of a switch without a job belong to the job that has just ended.
            (None, None) => self.switches[at].boot,
        }
    }

    fn hear(&mut self, at: usize, event: Event) -> Result<(), Violation> {
        let boot = self.switches[at].boot;
        match event {
            Event::Joined { address, round, .. } => {
                if let Some(life) = self.lives.get(&address) {
                    self.checker.joined(*life, boot, round);
                }
            }
            Event::Left { address, why, .. } => {
                self.report.leaves += u64::from(why == Departure::Leave);
                self.report.expelled += u64::from(why == Departure::Silent);
                self.forget(at, address);
            }
            Event::JobResumed { round, .. } => {
                self.report.resumed += 1;
                self.checker.resumed(boot, round);
            }
            // A Reset also reaches the switches below the root, but it is counted only once.
            Event::Reset { .. } if at == 0 => {
                self.report.resets += 1;
                self.was_reset |=
                    self.healed_at.is_some() && self.switches.iter().all(|node| !node.is_pinned);
            }
            Event::ThresholdSet { threshold, .. } => {
                self.report.thresholds += 1;
                self.switches[at].is_pinned = threshold > 0;
                // A round that is already open keeps its earlier threshold, so the operator may have to reset the job
                // again.
                self.was_reset = false;
            }
            // The pinned H ended with the job. If the flag remained set, the operator would reset the job of the other
            // members again and again.
            Event::JobEnded { .. } => self.switches[at].is_pinned = false,
            Event::JobInterrupted { .. } => self.report.interrupted += 1,
            Event::GroupHeard { .. } => self.report.group_members += 1,
            Event::GroupLost { .. } => self.report.group_losses += 1,
            Event::Halted { .. } => self.report.halts += u64::from(at == 0),
            Event::EventsLost { count } => {
                return violated(Rule::Counters, format!("{count} events were lost"));
            }
            _ => {}
        }
        Ok(())
    }

    fn forget(&mut self, at: usize, address: SocketAddrV4) {
        let SwitchNode { boot, .. } = self.switches[at];
        let round = match self.switches[at].job(JOB).map(|job| job.round) {
            Some(Some(newest)) => RoundThen::Open(Round::new(newest)),
            Some(None) => RoundThen::None,
            None => RoundThen::JobEnded,
        };
        match self.lives.get(&address) {
            Some(life) => self.checker.departed(*life, boot, round),
            None => self.checker.lost_switch(),
        }
    }
}

impl World<'_> {
    pub(super) fn give_worker(
        &mut self,
        worker: usize,
        slot: u32,
        (peer, group): (SocketAddrV4, Option<SocketAddrV4>),
    ) -> Result<(), Violation> {
        let packet = self.wires.packets.take(slot);
        let Packet { class, bytes, stride } = &packet;
        let path = if group.is_some() { Path::Group } else { Path::Unicast };
        if !is_heartbeat(*class, bytes) {
            let text = || format!("-> {peer} ({path:?}): {}", describe(*class, bytes, *stride));
            self.transcript.note(self.now, text);
        }
        self.workers[worker].handle_datagrams(self.now, path, *class, bytes, *stride);
        self.wires.packets.give_back(slot, packet);
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    /// Lets the training loop react and sends the pending packets of the worker.
    pub(super) fn flush_worker(&mut self, worker: usize) -> Result<(), Violation> {
        let node = &mut self.workers[worker];
        let Progress { delivered, rejoins, repeated, poisoned } =
            node.advance(self.now, &self.training, &mut self.checker)?;
        self.report.rounds += delivered;
        self.report.segments += delivered * u64::from(self.checker.segments());
        self.report.rejoins += rejoins;
        self.report.repeated_rounds += repeated;
        self.report.poisoned += poisoned;
        let (clock, address) = (node.process.clock(self.now), node.address());
        if delivered > 0 {
            self.transcript.note(self.now, || format!("{address} has received its sum"));
        }
        self.follow_worker(worker);
        let node = &mut self.workers[worker];
        let (life, gradient, switch) = (node.life, node.gradient(), node.switch);
        let Some(protocol) = &mut node.worker else { return Ok(()) };
        while let Some((class, stride)) = protocol.poll_transmit(clock, &mut self.buffer) {
            let datagrams = self.buffer.len().div_ceil(stride.max(1)) as u64;
            match class {
                Class::Data => self.report.data_packets += datagrams,
                Class::Control => self.report.control_packets += datagrams,
            }
            if class == Class::Data {
                // All packets of a super-frame belong to the same round.
                let seg = self.buffer.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
                let round = seg.map_or(Round::default(), |seg| seg.round);
                let (boot, supplies) = (protocol.boot(), protocol.supplies(round));
                self.checker.offered(life, (boot, round), gradient, supplies)?;
                let is_newest = self.named.is_none_or(|named| named.is_before(round));
                if boot == self.switches[0].boot && is_newest {
                    self.named = Some(round);
                }
            }
            let to = (&[address][..], switch);
            self.wires.send(self.now, Direction::Up, to, class, &self.buffer, stride);
        }
        Ok(())
    }

    /// Sends the Leave with which a worker departs from a switch, and records the switch that the worker uses from now
    /// on.
    fn follow_worker(&mut self, worker: usize) {
        let node = &mut self.workers[worker];
        let (from, address) = (node.switch, node.address());
        let Some(protocol) = &mut node.worker else { return };
        let Some(switch) = protocol.switch() else { return };
        node.switch = switch;
        if node.switch != from {
            self.report.moves += 1;
            let to = node.switch;
            if let Some((class, bytes)) = protocol.take_farewell() {
                self.report.control_packets += 1;
                let stride = bytes.len();
                self.wires.send(self.now, Direction::Up, (&[address], from), class, &bytes, stride);
            }
            self.note(|| format!("{address} moves from switch {from} to switch {to}"));
        }
    }

    /// Starts a worker process. If the process reuses a UDP port, its start is delayed until no packet sent from that
    /// port is in flight, as in TCP (RFC 9293 section 3.4.3).
    pub(super) fn start_worker(&mut self, worker: usize, new_port: bool) -> Result<(), Violation> {
        let quiet_time = self.scenario.link.max_lifetime();
        let node = &mut self.workers[worker];
        if !node.will_start {
            return Ok(());
        }
        node.crash(self.now);
        let is_first = node.udp_port == 0;
        let quiet_until = node.ended_at.plus(quiet_time);
        if !is_first && !new_port && self.now < quiet_until {
            let again = ScheduledEvent::StartWorker { worker, new_port };
            self.wires.queue.push(quiet_until, again);
            return Ok(());
        }
        node.will_start = false;
        let life = self.next_life;
        self.next_life += 1;
        let udp_port = if is_first || new_port { FIRST_UDP_PORT + life as u16 } else { node.udp_port };
        let options = Options {
            job: JOB,
            layout: self.checker.layout(),
            workers: if self.scenario.declared { self.scenario.workers as u16 } else { 0 },
            recv_buffer_bytes: self.scenario.worker_buffer_bytes,
            instance: mix(self.seed ^ (life as u64) << 40) as u32,
            protection: self.scenario.protection,
            groups: self.scenario.groups.can_hear(worker),
            name: self.scenario.names.of_worker(worker),
            standby: self.scenario.standby,
        };
        node.switch = self.scenario.places.get(worker).copied().unwrap_or(0);
        node.start(self.now, life, udp_port, options);
        self.lives.insert(worker_address(worker, udp_port), life);
        self.note(|| format!("worker {worker} starts life {life} on UDP port {udp_port}"));
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }
}

/// Returns the workers of a switch that are subscribed to a group and that the group's packets reach.
fn subscribers<'a>(
    workers: &'a [WorkerNode],
    scenario: &'a Scenario,
    at: usize,
    group: SocketAddrV4,
    elapsed: Duration,
) -> impl Iterator<Item = SocketAddrV4> + 'a {
    let is_there = move |node: &&WorkerNode| {
        node.switch == at && node.group() == Some(group) && scenario.groups.reach(node.index, elapsed)
    };
    workers.iter().filter(is_there).map(WorkerNode::address)
}

/// Checks that a result belongs to a round that no packet of an earlier incarnation of the job has named.
fn check_unnamed(result: &[u8], named: Option<Round>) -> Result<(), Violation> {
    let round = result.first_chunk().map(|bytes| Seg::from_bytes(*bytes).round);
    match (round, named) {
        (Some(round), Some(named)) if !named.is_before(round) => violated(
            Rule::Resume,
            format!(
                "round {round} is summed, although packets of an earlier incarnation of the job have named round \
                 {named}"
            ),
        ),
        _ => Ok(()),
    }
}

fn endpoint(port: PortId, peer: SocketAddrV4, local: SocketAddrV4) -> Endpoint {
    Endpoint { port, peer, local, peer_mac: [0; 6], local_mac: [0; 6] }
}

/// Checks that every received packet was either used or counted under a drop reason.
fn check_received(
    before: &Counters,
    after: &Counters,
    class: Class,
    datagrams: u64,
) -> Result<(), Violation> {
    let received = match class {
        Class::Data => after.data_received - before.data_received,
        Class::Control => after.control_received - before.control_received,
    };
    let used = after.contributions - before.contributions;
    let dropped = after.dropped() - before.dropped();
    let is_consistent = match class {
        Class::Data => used + dropped == received,
        Class::Control => used == 0 && dropped <= received,
    };
    if received == datagrams && is_consistent {
        return Ok(());
    }
    let detail = format!(
        "the switch handled {datagrams} datagrams, but counted {received} as received, {used} as used and {dropped} as \
         dropped"
    );
    violated(Rule::Counters, detail)
}
