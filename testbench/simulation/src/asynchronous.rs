//! Simulation of an asynchronous job in virtual time with the real switch core and the real worker protocol. The three
//! pipeline stages are reduced to the events that affect sums: a gradient is computed, committed and applied.
//!
//! One seed determines the whole run. Vectors consist of integers, so every sum is exact, and a result reveals any
//! vector that was counted twice, only in part or in two aggregates. The workers are members of one switch, or of a
//! tree of switches.

mod census;
mod learner;
mod member;
mod report;
mod scenario;
mod standby;
mod upsets;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch::worker::Path;
use iswitch_protocol::wire::{Action, Class, ControlBody};
use iswitch_protocol::{Round, Seg};
use iswitch_switch::{Departure, Endpoint, Event, Instant, JobStatus, PortId, Switch};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use census::{Census, Finished, Gradients};
use learner::Undecided;
use member::SimulatedWorker;
pub use report::{Departures, Report, Totals, WorkerReport};
pub use scenario::{Faults, Pace, Scenario};
pub use standby::{Cut, Standby};
pub use upsets::{PlannedUpset, Upset};

use crate::addresses::{Member, member_at, switch_address, uplink_address, worker_address};
use crate::checker::{Rule, Violation, violated};
use crate::transcript::{Transcript, describe};
use crate::{Failure, JOB, run_with_transcript, turns};

/// Number of aggregates that must be delivered to every worker after the faults have ended.
const UPDATES_AFTER_HEAL: u64 = 2;
/// Time limit for the delivery of [`UPDATES_AFTER_HEAL`] aggregates, in virtual time, in addition to two leases.
/// Retries are at most half a second apart.
const LIVENESS_LIMIT: Duration = Duration::from_secs(3);
/// Time for which the operator waits, in addition to one lease, before it restarts the workers that a job waits for.
const OPERATOR_PATIENCE: Duration = Duration::from_millis(500);
/// Port on which a switch serves its members. `UPLINK` is the port that leads to its parent.
const SERVICE: PortId = PortId(0);
const UPLINK: PortId = PortId(1);

/// Runs the scenario drawn from a seed.
///
/// # Errors
/// Returns the first rule violation.
pub fn simulate(seed: u64) -> Result<Totals, Box<Failure<Scenario>>> {
    run(&Scenario::draw(seed), seed).map(|report| Totals::of(&report))
}

/// Draws a scenario with a standby switch from a seed, and runs it.
///
/// # Errors
/// Returns the first rule violation.
pub fn simulate_with_standby(seed: u64) -> Result<Totals, Box<Failure<Scenario>>> {
    run(&Scenario::draw_with_standby(seed), seed).map(|report| Totals::of(&report))
}

/// Runs a scenario and checks every sum of every worker; the seed determines the behaviour of the network.
///
/// # Errors
/// Returns the first rule violation.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure<Scenario>>> {
    run_with_transcript(scenario, seed, |transcript| Simulation::new(scenario, seed, transcript).run())
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Instant,
    /// Sequence number that orders packets arriving at the same time.
    sequence: u64,
    /// Address at the lower end of the link: that of a worker, or of a switch below the root.
    member: SocketAddrV4,
    /// Index of the switch at the upper end of the link.
    switch: usize,
    /// Whether the member, not its switch, sent the packet.
    goes_up: bool,
    is_data: bool,
    /// Group to which the packet was sent, if any.
    group: Option<SocketAddrV4>,
    bytes: Vec<u8>,
}

/// State that the simulation keeps for an aggregate.
#[derive(Default)]
struct Aggregate {
    /// Number of contributions that the switch's results report.
    sent: Option<u16>,
    /// Sum that the first worker received, and the number of contributions in it. All other workers must receive the
    /// same sum.
    sum: Option<(Vec<f32>, u16)>,
    /// Model of the first worker that applied the aggregate, after that update.
    model: Vec<f32>,
    /// Vectors in the aggregate, each identified by its worker and its number.
    vectors: Vec<(usize, u64)>,
}

/// A running simulation.
struct Simulation<'a> {
    scenario: &'a Scenario,
    seed: u64,
    transcript: &'a mut Transcript,
    /// Current network faults.
    faults: Faults,
    random: ChaCha8Rng,
    begin: Instant,
    now: Instant,
    sequence: u64,
    wire: BinaryHeap<Reverse<Packet>>,
    /// The root, followed by the switches below it, or by the standby switch.
    switches: Vec<Switch>,
    /// For each switch, the time at which its current turn ends or, between two turns, at which its last turn ended.
    turn_ends: Vec<Instant>,
    /// Members, thresholds and sent aggregates of each switch, as the checker knows them.
    censuses: Vec<Census>,
    workers: Vec<SimulatedWorker>,
    /// Number of worker processes started so far.
    lives: u64,
    /// Reports of the processes that have ended.
    ended: Vec<WorkerReport>,
    departures: Departures,
    undecided: Vec<Undecided>,
    /// Aggregates by epoch and number.
    aggregates: BTreeMap<(u64, u32), Aggregate>,
    /// Number of upsets (restarts, Resets and crashes) that have occurred.
    upsets: usize,
    /// Models of workers whose membership was Resumed, by epoch and next aggregate.
    resumed_models: BTreeMap<(u64, u32), Vec<f32>>,
    datagrams: u64,
    /// Probability that a single worker misses a group packet that reaches the other workers.
    group_loss: f64,
    /// Number of data packets that the switch sent to groups.
    group_datagrams: u64,
    /// Whether all faults have ended.
    is_healed: bool,
    /// Epochs of the incarnations whose sums were applied, in the order of their first sums, if there is a standby
    /// switch.
    incarnations: Vec<u64>,
}

impl<'a> Simulation<'a> {
    /// Creates a job whose workers are about to join.
    fn new(scenario: &'a Scenario, seed: u64, transcript: &'a mut Transcript) -> Self {
        let begin = Instant::from_nanos(1);
        let count = scenario.workers.len();
        let switches = 1 + scenario.racks.len() + usize::from(scenario.standby.is_some());
        Self {
            scenario,
            seed,
            transcript,
            faults: scenario.faults,
            random: ChaCha8Rng::seed_from_u64(seed),
            begin,
            now: begin,
            sequence: 0,
            wire: BinaryHeap::new(),
            switches: (0..switches).map(|at| upsets::switch(seed, 0, at, scenario)).collect(),
            turn_ends: vec![begin; switches],
            censuses: (0..switches).map(|_| Census::default()).collect(),
            workers: (0..count).map(|worker| SimulatedWorker::new(scenario, seed, worker, begin)).collect(),
            lives: count as u64,
            ended: Vec::new(),
            departures: Departures::default(),
            undecided: Vec::new(),
            aggregates: BTreeMap::new(),
            upsets: 0,
            resumed_models: BTreeMap::new(),
            datagrams: 0,
            group_loss: scenario.groups.loss,
            group_datagrams: 0,
            is_healed: false,
            incarnations: Vec::new(),
        }
    }

    /// Runs the simulation to its end.
    fn run(mut self) -> Result<Report, Violation> {
        if self.scenario.threshold > 0 {
            let body = ControlBody::SetH { threshold: self.scenario.threshold };
            self.workers[0].protocol.order(self.now, body);
        }
        (0..self.workers.len()).for_each(|worker| self.flush_worker(worker));
        let end = self.begin.plus(self.scenario.duration);
        while self.now < end && self.step()? {}
        if self.scenario.heals {
            self.heal()?;
        }
        self.report()
    }

    /// Ends all faults; from now on, every live worker must make progress.
    fn heal(&mut self) -> Result<(), Violation> {
        self.note(|| "all faults end".to_owned());
        self.is_healed = true;
        self.faults = Faults { delay: self.faults.delay, ..Faults::NONE };
        self.group_loss = 0.0;
        for worker in &mut self.workers {
            worker.pace.stall = None;
            worker.updates_since_heal = 0;
        }
        self.start_stopped(false);
        let lease = Duration::from_millis(u64::from(self.scenario.lease_ms));
        let mut operate_at = Some(self.now.plus(lease + OPERATOR_PATIENCE));
        // At each level of a tree, a switch may have to wait for one lease before it expels members that do not return.
        let levels = 1 + self.scenario.racks.len() as u32;
        // Workers that have tried both switches without success stay at each of them for up to 16 times `silence`.
        let silence = self.scenario.standby.as_ref().map_or(Duration::ZERO, |standby| standby.silence);
        let limit = self.now.plus(LIVENESS_LIMIT + lease * 2 * levels + silence * 100);
        while !self.has_made_progress() {
            if self.now > limit {
                let jobs: Vec<_> = self.switches.iter().flat_map(Switch::jobs).collect();
                let updates: Vec<_> = self.workers.iter().map(|worker| worker.updates_since_heal).collect();
                let detail = format!(
                    "too little progress: updates per worker since the faults ended: {updates:?}; jobs on all \
                     switches: {jobs:?}"
                );
                return violated(Rule::Liveness, detail);
            }
            if operate_at.take_if(|at| *at <= self.now).is_some() && !self.is_complete() {
                self.note(|| "starting all workers that the job waits for".to_owned());
                self.start_stopped(true);
            }
            self.step()?;
        }
        Ok(())
    }

    fn has_made_progress(&self) -> bool {
        let is_stopped = |worker: &SimulatedWorker| !worker.is_running && worker.returns.is_none();
        let has_made_progress = |worker: &SimulatedWorker| worker.updates_since_heal >= UPDATES_AFTER_HEAL;
        self.workers.iter().all(|worker| is_stopped(worker) || has_made_progress(worker))
            && self.is_census_right()
            && self.is_threshold_right()
    }

    /// Returns whether H equals the number of live workers, which is required unless a worker has set H.
    fn is_threshold_right(&self) -> bool {
        let running = self.workers.iter().filter(|worker| worker.is_running).count();
        let job = self.roots().filter_map(|root| root.job_status(JOB)).find(|job| job.formed);
        job.filter(|job| !job.threshold_pinned).is_none_or(|job| usize::from(job.threshold) == running)
    }

    /// Returns whether the job has all the workers it waits for.
    fn is_complete(&self) -> bool {
        self.roots().flat_map(Switch::jobs).any(|job| job.job == JOB && job.formed)
    }

    /// Returns the switches without a parent: the root, and the standby switch if there is one.
    fn roots(&self) -> impl Iterator<Item = &Switch> {
        self.switches.iter().take(1 + usize::from(self.scenario.standby.is_some()))
    }

    /// Returns whether a switch has no parent.
    fn is_root(&self, at: usize) -> bool {
        at == 0 || self.scenario.standby.is_some()
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.transcript.note(self.now, line);
    }

    /// Processes the next packet or deadline. Returns false if nothing is left to process.
    fn step(&mut self) -> Result<bool, Violation> {
        let (begin, now) = (self.begin, self.now);
        let packet = self.wire.peek().map(|Reverse(next)| next.at);
        let deadlines = self.workers.iter().filter_map(|worker| worker.deadline(begin, now));
        let switches = (0..self.switches.len()).filter_map(|at| self.switch_deadline(at));
        let deadline = deadlines.chain(switches).chain(self.upset_deadline()).min();
        let Some(at) = packet.into_iter().chain(deadline).min() else {
            if self.workers.iter().any(|worker| worker.is_running) {
                return violated(
                    Rule::Liveness,
                    "no events are left, but workers are still running".to_owned(),
                );
            }
            return Ok(false);
        };
        self.now = self.now.max(at);
        self.upset();
        if packet == Some(at) {
            if let Some(Reverse(next)) = self.wire.pop() {
                self.deliver(next)?;
            }
            return Ok(true);
        }
        for worker in 0..self.workers.len() {
            if self.workers[worker].deadline(begin, now).is_some_and(|deadline| deadline <= self.now) {
                self.act(worker)?;
            }
        }
        for at in 0..self.switches.len() {
            if self.turn_ends[at] <= self.now {
                self.switches[at].handle_timeout(self.now);
                self.flush_switch(at)?;
            }
        }
        Ok(true)
    }

    /// Returns the time at which a switch next runs because of a deadline, which is not before the end of its current
    /// turn. If turns are short, packets may arrive between two turns.
    fn switch_deadline(&self, at: usize) -> Option<Instant> {
        self.switches[at].poll_timeout().map(|deadline| deadline.max(self.turn_ends[at]))
    }

    fn deliver(&mut self, packet: Packet) -> Result<(), Violation> {
        let Packet { member, switch: above, goes_up, is_data, group, bytes, .. } = packet;
        let class = if is_data { Class::Data } else { Class::Control };
        self.note(|| {
            let path = if goes_up { format!("{member} -> {above}") } else { format!("{above} -> {member}") };
            format!("{path}: {}", describe(class, &bytes, bytes.len()))
        });
        if goes_up {
            let from = endpoint(SERVICE, member, switch_address(above));
            self.switches[above].handle_datagrams(self.now, &from, class, &bytes, bytes.len());
            // A control packet of an earlier session fails authentication, and a Join may come from an earlier
            // process.
            let is_join = bytes.first() == Some(&(Action::Join as u8));
            if is_data || !self.scenario.is_keyed && !is_join {
                self.censuses[above].hear(member, self.now);
            }
            return self.flush_switch(above);
        }
        let worker = match member_at(member) {
            Member::Worker(worker) => worker,
            Member::Rack(rack) => {
                let from = endpoint(UPLINK, switch_address(above), member);
                self.switches[rack].handle_datagrams(self.now, &from, class, &bytes, bytes.len());
                return self.flush_switch(rack);
            }
        };
        let receiver = &self.workers[worker];
        // The socket of a worker receives only packets from the switch that the worker uses.
        if !receiver.is_running || receiver.udp_port != member.port() || receiver.switch != above {
            return Ok(());
        }
        let path = if group.is_some() { Path::Group } else { Path::Unicast };
        // The machine of a worker that has left a group drops the packets of that group.
        if group.is_some() && group != self.workers[worker].protocol.group() {
            return Ok(());
        }
        self.workers[worker].inbox.push_back((path, class, bytes));
        if self.workers[worker].stopped_until(self.begin, self.now).is_some() {
            return Ok(());
        }
        self.act(worker)
    }

    /// Runs one turn of a worker. The worker handles the packets that it has received, applies complete sums,
    /// computes and commits gradients, and sends packets.
    fn act(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        if !self.workers[worker].is_running {
            self.start_process(worker);
            return Ok(());
        }
        while let Some((path, class, bytes)) = self.workers[worker].inbox.pop_front() {
            if let Some(roaming) = &mut self.workers[worker].roaming {
                roaming.hear(now);
            }
            let protocol = &mut self.workers[worker].protocol;
            protocol.handle_arrival(now, path, class, &bytes, bytes.len());
            if let Some(group) = protocol.group() {
                protocol.subscribed(group);
            }
            if self.is_turned_away(worker)? {
                return Ok(());
            }
            self.note_admission(worker)?;
            self.apply_sums(worker)?;
        }
        let acting = &mut self.workers[worker];
        if acting.protocol.poll_timeout().is_some_and(|deadline| deadline <= now) {
            acting.protocol.handle_timeout(now);
        }
        self.apply_sums(worker)?;
        self.note_submission(worker)?;
        self.roam(worker)?;
        self.compute(worker)?;
        self.flush_worker(worker);
        Ok(())
    }

    fn flush_worker(&mut self, worker: usize) {
        let mut buffer = Vec::new();
        while let Some((class, stride)) = self.workers[worker].protocol.poll_transmit(self.now, &mut buffer) {
            for bytes in buffer.chunks(stride) {
                let member = worker_address(worker, self.workers[worker].udp_port);
                self.send((member, self.workers[worker].switch), (true, None), class, bytes);
            }
        }
    }

    fn flush_switch(&mut self, at: usize) -> Result<(), Violation> {
        if self.turn_ends[at] <= self.now {
            // A packet that arrives during a turn does not prolong the turn; otherwise, a steady flow of packets would
            // delay all timers.
            self.turn_ends[at] = self.now.plus(turns::duration(self.scenario.work_per_turn));
        }
        if self.is_root(at) {
            self.follow_epoch(at);
        }
        let (mut packets, mut results) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.switches[at].poll_transmit() {
            let goes_up = transmit.recipients().any(|to| to.port == UPLINK);
            for recipient in transmit.recipients() {
                let member = if goes_up { uplink_address(at) } else { recipient.peer };
                let datagrams = transmit.payload.chunks(transmit.stride);
                packets.extend(datagrams.map(|bytes| (member, goes_up, transmit.class, bytes.to_vec())));
            }
            if transmit.class == Class::Data && !goes_up {
                results.extend(
                    transmit.payload.chunks(transmit.stride).filter_map(|bytes| bytes.first_chunk().copied()),
                );
            }
        }
        let mut finished = None;
        for seg in results.into_iter().map(Seg::from_bytes) {
            finished = self.note_result(at, seg)?.or(finished);
        }
        for (to, goes_up, class, bytes) in packets {
            if to.ip().is_multicast() {
                self.send_to_group(at, to, class, &bytes);
            } else {
                let above = if goes_up { self.scenario.switch_of(to) } else { at };
                self.send((to, above), (goes_up, None), class, &bytes);
            }
        }
        if at == 0 && self.is_tree() { self.follow_root(finished) } else { self.follow_switch(at, finished) }
    }

    fn is_tree(&self) -> bool {
        !self.scenario.racks.is_empty()
    }

    /// Puts a packet on the wire, where it is lost or arrives once or twice.
    fn send(
        &mut self,
        (member, switch): (SocketAddrV4, usize),
        (goes_up, group): (bool, Option<SocketAddrV4>),
        class: Class,
        bytes: &[u8],
    ) {
        if let Member::Worker(worker) = member_at(member)
            && self.is_cut(worker, switch, goes_up)
        {
            return;
        }
        let Faults { delay, jitter, loss, duplication } = self.faults;
        let copies = 1 + u32::from(self.random.random_bool(duplication));
        self.datagrams += 1;
        for _ in 0..copies {
            if self.random.random_bool(loss) {
                continue;
            }
            let jitter = jitter.mul_f64(self.random.random::<f64>());
            self.sequence += 1;
            let (at, is_data) = (self.now.plus(delay + jitter), class == Class::Data);
            let bytes = bytes.to_vec();
            self.wire.push(Reverse(Packet {
                at,
                sequence: self.sequence,
                member,
                switch,
                goes_up,
                is_data,
                group,
                bytes,
            }));
        }
    }

    /// Sends a group packet of a switch to those workers of the switch that are subscribed to the group and that the
    /// group reaches.
    fn send_to_group(&mut self, at: usize, group: SocketAddrV4, class: Class, bytes: &[u8]) {
        let elapsed = self.now.since(self.begin);
        let loss = self.group_loss;
        self.group_datagrams += u64::from(class == Class::Data);
        for worker in 0..self.workers.len() {
            let it = &self.workers[worker];
            let is_subscribed = it.switch == at && it.is_running && it.protocol.group() == Some(group);
            let is_reached = is_subscribed && self.scenario.groups.reach(worker, elapsed);
            if is_reached && !(loss > 0.0 && self.random.random_bool(loss)) {
                let member = worker_address(worker, self.workers[worker].udp_port);
                self.send((member, at), (false, Some(group)), class, bytes);
            }
        }
    }

    fn report(mut self) -> Result<Report, Violation> {
        let checked = self.check_sums()?;
        self.departures.unconfirmed = checked.unconfirmed;
        let is_applied = |aggregate: &&Aggregate| aggregate.sum.is_some();
        Ok(Report {
            upsets: self.upsets as u64,
            departures: self.departures,
            is_keyed: self.scenario.is_keyed,
            is_tree: !self.scenario.racks.is_empty(),
            aggregates: self.aggregates.values().filter(is_applied).count() as u64,
            checked: checked.all,
            datagrams: self.datagrams,
            group_datagrams: self.group_datagrams,
            workers: self.workers.iter().map(SimulatedWorker::report).collect(),
            ended: self.ended,
        })
    }
}

impl Simulation<'_> {
    /// Checks the events that the switch reports and the aggregates that it sends for the first time.
    pub(super) fn follow_switch(&mut self, at: usize, finished: Option<Finished>) -> Result<(), Violation> {
        let events = self.take_events(at);
        let open_before = self.censuses[at].open;
        let mut begun_with = None;
        if !events.is_empty() {
            let census = &self.censuses[at];
            let job = self.switches[at].jobs().find(|job| job.job == JOB);
            let is_filled =
                |job: &JobStatus| job.round.is_some() && job.round != census.latest.map(Round::get);
            let is_open = finished.is_some() || job.as_ref().is_some_and(is_filled);
            if is_open {
                begun_with = open_before.or(Some(census.threshold()));
            }
            for event in events {
                self.hear_event(at, event, is_open)?;
            }
            // The pinned H is taken from the switch, because members that resume a job might not know whether H was
            // pinned.
            self.censuses[at].pinned = job.filter(|job| job.threshold_pinned).map(|job| job.threshold);
        }
        finished.map_or(Ok(()), |finished| self.censuses[at].finish(finished, begun_with))
    }

    /// Checks the events that the root of a tree reports and the aggregates that it sends for the first time. A change
    /// in the number of workers that a member represents causes no event, so the check uses the H that the root states.
    fn follow_root(&mut self, finished: Option<Finished>) -> Result<(), Violation> {
        // A killed worker counts until it is expelled, and so does the process that replaces it. The vector of an
        // expelled worker stays in the partial sum that waits to be sent, and the worker may return with another
        // vector.
        let departed = self.departures.crashes + self.departures.expelled;
        let largest = self.scenario.largest_subtree().saturating_add(departed as u16);
        for event in self.take_events(0) {
            if let Event::Left { .. } = event {
                self.censuses[0].note_departure(largest);
            }
            self.hear_event(0, event, false)?;
        }
        let threshold = self.switches[0].job_status(JOB).filter(|job| job.formed).map(|job| job.threshold);
        self.censuses[0].note_threshold(threshold);
        match finished {
            None => Ok(()),
            Some(finished) => self.censuses[0].finish_in_tree(finished, Gradients { threshold, largest }),
        }
    }

    fn take_events(&mut self, at: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.switches[at].poll_event()).collect()
    }

    fn hear_event(&mut self, at: usize, event: Event, is_open: bool) -> Result<(), Violation> {
        self.note(|| format!("switch {at}: {event}"));
        match event {
            Event::Diverged { .. } => return violated(Rule::Agreement, event.to_string()),
            Event::EventsLost { .. } => return violated(Rule::Counters, event.to_string()),
            Event::Joined { address, .. } => self.censuses[at].join(address, is_open, self.now),
            Event::ThresholdSet { .. } => self.censuses[at].change(is_open, |_| ()),
            Event::Left { address, why, .. } => {
                self.check_departure(at, address, why, &event)?;
                self.censuses[at].leave(address, is_open);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_departure(
        &mut self,
        at: usize,
        gone: SocketAddrV4,
        why: Departure,
        event: &Event,
    ) -> Result<(), Violation> {
        let is_excused = match why {
            Departure::Silent => {
                self.departures.expelled += 1;
                let lease = Duration::from_millis(u64::from(self.scenario.lease_ms));
                self.censuses[at].heard.get(&gone).is_none_or(|heard| self.now.since(*heard) > lease)
            }
            // Either a late answer made the member rejoin, or another process uses its address.
            Departure::Forgotten | Departure::Restarted => self.is_disturbed(),
            // A switch leaves when its last member has departed.
            Departure::Expelled => false,
            // A worker leaves a switch at which the job does not become complete.
            Departure::Leave if self.scenario.standby.is_some() => true,
            Departure::Leave => matches!(member_at(gone), Member::Rack(_)) && self.is_disturbed(),
        };
        if is_excused { Ok(()) } else { violated(Rule::Membership, event.to_string()) }
    }

    /// Records that a switch sends a result. Returns the aggregate if this is its first result.
    pub(super) fn note_result(&mut self, at: usize, seg: Seg) -> Result<Option<Finished>, Violation> {
        let Seg { round: number, contributions, .. } = seg;
        if self.censuses[at].last.replace((number, contributions)) == Some((number, contributions)) {
            return Ok(None);
        }
        if !self.is_root(at) {
            return self.check_passed_on(at, number, contributions).map(|()| None);
        }
        let known = self.aggregates.entry((self.censuses[at].epoch(), number.get())).or_default();
        match known.sent.replace(contributions) {
            None => Ok(Some(Finished { number, contributions })),
            Some(before) if before == contributions => Ok(None),
            Some(before) => {
                let detail = format!(
                    "aggregate {number} was sent with {contributions} vectors, but previously with {before}"
                );
                violated(Rule::Agreement, detail)
            }
        }
    }

    /// Checks that a switch below the root passes on only results that the root has sent.
    fn check_passed_on(&self, at: usize, number: Round, contributions: u16) -> Result<(), Violation> {
        let epoch = self.switches[at].epoch_of(JOB).unwrap_or_default();
        let sent = self.aggregates.get(&(epoch, number.get())).and_then(|known| known.sent);
        if sent == Some(contributions) {
            return Ok(());
        }
        let detail = format!(
            "switch {at} forwarded aggregate {number} with {contributions} gradients, but the root sent {sent:?}"
        );
        violated(Rule::Agreement, detail)
    }

    /// Records the epoch of the current job of a root. If the root has no job, the recorded epoch stays unchanged.
    pub(super) fn follow_epoch(&mut self, at: usize) {
        if let Some(epoch) = self.switches[at].epoch_of(JOB) {
            self.censuses[at].enter(epoch);
        }
    }

    /// Returns whether the members of each switch are exactly the live workers connected to it and the child switches
    /// with live workers below them.
    pub(super) fn is_census_right(&self) -> bool {
        if self.scenario.standby.is_some() {
            return self.are_together();
        }
        let mut alive = vec![Vec::new(); self.switches.len()];
        for (index, worker) in self.workers.iter().enumerate().filter(|(_, worker)| worker.is_running) {
            let mut member = worker_address(index, worker.udp_port);
            let mut above = self.scenario.place_of(index);
            while !alive[above].contains(&member) {
                alive[above].push(member);
                let Some(parent) = above.checked_sub(1).map(|rack| self.scenario.racks[rack]) else { break };
                (member, above) = (uplink_address(above), parent);
            }
        }
        alive.iter_mut().for_each(|members| members.sort());
        alive.iter().zip(&self.censuses).all(|(alive, census)| alive.iter().eq(census.addresses()))
    }
}

fn endpoint(port: PortId, peer: SocketAddrV4, local: SocketAddrV4) -> Endpoint {
    Endpoint { port, peer, local, peer_mac: [0; 6], local_mac: [0; 6] }
}
