//! The simulated world: machines, the links between them, and the faults of both.

mod faults;
mod nodes;

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_protocol::{Instant, Round, VectorLayout};
use iswitch_switch::Switch;

use super::ScheduledEvent;
use super::addresses::{Member, member_at};
use super::checker::{Checker, Rule, Violation, Witness, violated};
use super::network::Link;
use super::process::{Process, SwitchNode, Training, Waiting, WorkerNode};
use super::report::Report;
use super::swarm::{Node, Protection, Scenario};
use super::transcript::Transcript;
use super::wires::{LinkEnds, Wires};

/// Initial virtual time; it is not zero, so that clocks can be turned back.
const BEGIN: Instant = Instant::from_nanos(60_000_000_000);
/// Maximum number of events before the faults end.
const MAX_FAULTY_EVENTS: u64 = 10_000;
/// Number of rounds that must be delivered to every live worker after the faults have ended.
const ROUNDS_AFTER_HEAL: u32 = 2;
/// Time limit for the delivery of [`ROUNDS_AFTER_HEAL`] rounds. The delays due to leases, retries and clocks that were
/// turned back add up to less.
const LIVENESS_LIMIT: Duration = Duration::from_secs(60);

/// A running simulation.
pub(super) struct World<'a> {
    scenario: &'a Scenario,
    transcript: &'a mut Transcript,
    seed: u64,
    now: Instant,
    wires: Wires,
    /// The root, followed by the switches below it, or by the standby switch.
    switches: Vec<SwitchNode>,
    boots: u64,
    workers: Vec<WorkerNode>,
    /// For each address, the life (one run of a worker process) that is using it, or that last used it.
    lives: HashMap<SocketAddrV4, usize>,
    next_life: usize,
    training: Training,
    checker: Checker,
    /// Latest round named by data packets in the current incarnation of the job. `named_before` is the latest round
    /// named in the previous incarnation, in the same run of the root.
    named: Option<Round>,
    named_before: Option<Round>,
    healed_at: Option<Instant>,
    /// Whether, after the faults ended, the job was reset while no switch had a pinned H.
    was_reset: bool,
    report: Report,
    buffer: Vec<u8>,
}

impl<'a> World<'a> {
    /// # Panics
    /// Panics if the scenario's vector cannot be segmented or its segments cannot hold the witness.
    pub(super) fn new(scenario: &'a Scenario, seed: u64, transcript: &'a mut Transcript) -> Self {
        let elements = scenario.elements.types();
        let layout = VectorLayout::with_elements(scenario.gradient_len, scenario.segment_floats, elements)
            .expect("the scenario must have a valid layout");
        let lives = scenario.lives();
        let last = scenario.gradient_len % u32::from(scenario.segment_floats);
        let shortest = if last == 0 { u32::from(scenario.segment_floats) } else { last };
        let least = scenario.min_segment_floats();
        assert!(
            shortest as usize >= least,
            "a segment has only {shortest} floats, expected at least {least}"
        );
        let is_damaged = scenario.link.corruption > 0.0 && scenario.link.missed_checksum > 0.0;
        // Tags detect the corruption that the checksums miss.
        let may_be_damaged = is_damaged && scenario.protection != Protection::All;
        let parents = std::iter::once(None).chain(scenario.racks.iter().copied().map(Some));
        let standby = scenario.standby.iter().map(|_| None);
        let place = |worker: usize| scenario.places.get(worker).copied().unwrap_or(0);
        let is_tree = !scenario.racks.is_empty();
        Self {
            scenario,
            transcript,
            seed,
            now: BEGIN,
            wires: Wires::new(scenario, seed),
            switches: parents.chain(standby).map(SwitchNode::new).collect(),
            boots: 0,
            workers: (0..scenario.workers).map(|worker| WorkerNode::new(worker, place(worker))).collect(),
            lives: HashMap::new(),
            next_life: 0,
            training: Training {
                compute: scenario.compute,
                rounds: scenario.rounds,
                poison_one_in: scenario.poison_one_in,
                excuses_refusals: may_be_damaged,
                waits_for_all: scenario.waits_for_all(),
            },
            checker: Checker::new(Witness::new(layout, lives), lives, !may_be_damaged, is_tree)
                .with_standby(scenario.standby.is_some()),
            named: None,
            named_before: None,
            healed_at: None,
            was_reset: false,
            report: Report {
                unchecked: u64::from(may_be_damaged),
                trees: u64::from(is_tree),
                authenticated: u64::from(scenario.protection != Protection::Nothing),
                ordered: u64::from(scenario.ordered),
                grouped: u64::from(scenario.groups.able != 0),
                ..Report::default()
            },
            buffer: Vec::new(),
        }
    }

    /// Runs the simulation to its end.
    pub(super) fn run(mut self) -> Result<Report, Violation> {
        self.schedule_plan();
        while let Some((at, what)) = self.wires.queue.pop() {
            self.now = self.now.max(at);
            self.report.events += 1;
            let is_faulty = self.healed_at.is_none() && self.scenario.rounds.is_none();
            if is_faulty && self.report.events > MAX_FAULTY_EVENTS {
                self.heal();
            }
            self.happen(what)?;
            if self.is_finished() {
                break;
            }
            self.check_patience()?;
        }
        self.report.elapsed = self.now.since(BEGIN);
        self.report.network = self.wires.counters;
        Ok(self.report)
    }

    fn schedule_plan(&mut self) {
        let queue = &mut self.wires.queue;
        (0..self.switches.len()).for_each(|at| queue.push(BEGIN, ScheduledEvent::StartSwitch(at)));
        for (worker, node) in self.workers.iter_mut().enumerate() {
            let start = self.scenario.starts.get(worker).copied().unwrap_or_default();
            node.will_start = true;
            queue.push(BEGIN.plus(start), ScheduledEvent::StartWorker { worker, new_port: false });
        }
        for (position, planned) in self.scenario.plan.iter().enumerate() {
            queue.push(BEGIN.plus(planned.at), ScheduledEvent::Planned(position));
        }
        if self.scenario.rounds.is_none() {
            queue.push(BEGIN.plus(self.scenario.duration), ScheduledEvent::Heal);
        }
    }

    fn is_finished(&self) -> bool {
        if let Some(rounds) = self.scenario.rounds {
            return self.workers.iter().all(|node| node.delivered >= rounds);
        }
        if self.healed_at.is_none() {
            return false;
        }
        // Corruption may have passed the checksums, so the only remaining guarantee is that nothing panics.
        self.report.unchecked > 0
            || self.workers.iter().all(|node| {
                let is_stopped = node.worker.is_none() && !node.will_start;
                is_stopped || node.delivered_since_heal >= ROUNDS_AFTER_HEAL
            })
    }

    fn check_patience(&self) -> Result<(), Violation> {
        // Workers that have tried both switches without success stay at each of them for up to 16 times `silence`.
        let silence = self.scenario.standby.unwrap_or_default();
        let limit = match self.healed_at {
            Some(healed_at) => healed_at.plus(LIVENESS_LIMIT),
            None => BEGIN.plus(self.scenario.duration).plus(LIVENESS_LIMIT),
        };
        let limit = limit.plus(silence * 60);
        if self.now <= limit {
            return Ok(());
        }
        let behind = self.workers.iter().filter(|node| node.delivered_since_heal < ROUNDS_AFTER_HEAL);
        let behind: Vec<_> = behind.map(|node| node.index).collect();
        let jobs = |node: &SwitchNode| node.switch.iter().flat_map(Switch::jobs).collect::<Vec<_>>();
        let jobs: Vec<_> = self.switches.iter().map(jobs).collect();
        violated(Rule::Liveness, format!("workers {behind:?} make no progress; jobs per switch: {jobs:?}"))
    }

    fn happen(&mut self, what: ScheduledEvent) -> Result<(), Violation> {
        match what {
            ScheduledEvent::AtSwitch { packet, link, is_bad } => {
                self.arrive(switch_node(link.switch), packet, (link, None), is_bad)
            }
            ScheduledEvent::AtMember { packet, link, group, is_bad } => {
                self.arrive_at_member(packet, (link, group), is_bad)
            }
            ScheduledEvent::Wake(node) => self.wake(node),
            ScheduledEvent::Planned(position) => self.act(self.scenario.plan[position]),
            ScheduledEvent::StartWorker { worker, new_port } => self.start_worker(worker, new_port),
            ScheduledEvent::StartSwitch(at) => {
                self.start_switch(at);
                Ok(())
            }
            ScheduledEvent::Resume(node) => self.resume(node),
            ScheduledEvent::Reconnect { ends, up, down } => {
                self.note(|| format!("the partition of {ends:?} ends"));
                self.wires.partition(ends, up, down, Link::unblock);
                Ok(())
            }
            ScheduledEvent::Heal => {
                self.heal();
                Ok(())
            }
            ScheduledEvent::Operate => self.operate(),
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.transcript.note(self.now, line);
    }

    fn process(&mut self, node: Node) -> &mut Process {
        match node {
            Node::Switch => &mut self.switches[0].process,
            Node::Rack(rack) => &mut self.switches[rack].process,
            Node::Worker(worker) => &mut self.workers[worker].process,
        }
    }

    fn poll_timeout(&self, node: Node) -> Option<Instant> {
        match node {
            Node::Switch => self.switches[0].switch.as_ref()?.poll_timeout(),
            Node::Rack(rack) => self.switches[rack].switch.as_ref()?.poll_timeout(),
            Node::Worker(worker) => self.workers[worker].poll_timeout(),
        }
    }

    fn schedule(&mut self, node: Node) {
        let now = self.now;
        let deadline = self.poll_timeout(node);
        let process = self.process(node);
        if process.pauses > 0 {
            return;
        }
        if let Some(at) = process.schedule(now, deadline) {
            self.wires.queue.push(at, ScheduledEvent::Wake(node));
        }
    }

    fn wake(&mut self, node: Node) -> Result<(), Violation> {
        let now = self.now;
        if !self.process(node).wakes(now) || self.process(node).pauses > 0 {
            return Ok(());
        }
        match node {
            Node::Switch => self.wake_switch(0)?,
            Node::Rack(rack) => self.wake_switch(rack)?,
            Node::Worker(worker) => {
                self.workers[worker].handle_timeout(now, &self.training, &self.checker.witness());
                self.flush_worker(worker)?;
            }
        }
        let clock = self.process(node).clock(now);
        check_timer(node, self.poll_timeout(node), clock)?;
        self.schedule(node);
        Ok(())
    }

    /// Returns the index of the switch that a member sends its packets to.
    fn switch_of(&self, peer: SocketAddrV4) -> usize {
        match member_at(peer) {
            Member::Worker(worker) => self.workers[worker].switch,
            Member::Rack(rack) => self.switches[rack].parent.unwrap_or(0),
        }
    }

    fn arrive_at_member(
        &mut self,
        packet: u32,
        (link, group): (LinkEnds, Option<SocketAddrV4>),
        is_bad: bool,
    ) -> Result<(), Violation> {
        let LinkEnds { peer, switch } = link;
        match member_at(peer) {
            Member::Worker(worker) => {
                let node = &self.workers[worker];
                // The machine of a worker that has left a group drops the packets of that group, and the socket of a
                // worker receives only packets from the switch that the worker uses.
                let is_foreign = group.is_some() && group != node.group() || switch != node.switch;
                if is_bad || node.worker.is_none() || node.udp_port != peer.port() || is_foreign {
                    self.wires.packets.discard(packet);
                    return Ok(());
                }
                self.arrive(Node::Worker(worker), packet, (link, group), false)
            }
            Member::Rack(rack) => self.arrive(switch_node(rack), packet, (link, None), is_bad),
        }
    }

    /// Delivers a packet to a node. While the node is paused, the packet waits in its receive buffer.
    fn arrive(
        &mut self,
        node: Node,
        packet: u32,
        from: (LinkEnds, Option<SocketAddrV4>),
        is_bad: bool,
    ) -> Result<(), Violation> {
        match (is_bad, node) {
            (true, Node::Switch) => return self.give_switch_invalid(0, packet),
            (true, Node::Rack(rack)) => return self.give_switch_invalid(rack, packet),
            _ => {}
        }
        if self.process(node).pauses > 0 {
            self.keep(node, packet, from);
            return Ok(());
        }
        self.give(node, packet, from)
    }

    fn keep(&mut self, node: Node, packet: u32, (link, group): (LinkEnds, Option<SocketAddrV4>)) {
        let buffer_bytes = match node {
            Node::Switch | Node::Rack(_) => self.scenario.switch_buffer_bytes,
            Node::Worker(_) => self.scenario.worker_buffer_bytes,
        };
        let len = self.wires.packets.get_mut(packet).bytes.len();
        if !self.process(node).keep(Waiting { packet, link, group, len }, buffer_bytes) {
            self.report.buffer_overflows += 1;
            self.wires.packets.discard(packet);
        }
    }

    fn give(
        &mut self,
        node: Node,
        packet: u32,
        (link, group): (LinkEnds, Option<SocketAddrV4>),
    ) -> Result<(), Violation> {
        match node {
            Node::Switch => self.give_switch(0, packet, link.peer),
            Node::Rack(rack) => self.give_switch(rack, packet, link.peer),
            Node::Worker(worker) => self.give_worker(worker, packet, (link.peer, group)),
        }
    }
}

/// Returns the node of the switch with the given index.
fn switch_node(at: usize) -> Node {
    if at == 0 { Node::Switch } else { Node::Rack(at) }
}

/// Checks that a deadline has moved into the future once it has been handled; otherwise the driver would spin.
fn check_timer(node: Node, deadline: Option<Instant>, clock: Instant) -> Result<(), Violation> {
    match deadline {
        Some(deadline) if deadline < clock => {
            violated(Rule::Timer, format!("{node:?} is at {clock:?}, but its deadline is still {deadline:?}"))
        }
        _ => Ok(()),
    }
}
