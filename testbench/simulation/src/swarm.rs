//! Scenarios and their generation from a seed.
//!
//! This is swarm testing (Groce et al., ISSTA 2012): each seed enables some faults and disables others, because a run
//! with all faults at once would seldom progress far enough to reveal the effect of any one of them.

use std::ops::RangeInclusive;
use std::time::Duration;

use iswitch_protocol::limits::MAX_MEMBERS;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::checker::{digit_lanes, mix};
use super::elements::Elements;
use super::groups::Groups;
use super::names::Names;
use super::network::{LinkModel, Loss, Rate};
use super::turns;

/// A job to simulate and its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Number of workers, 1 to 64.
    pub workers: usize,
    /// Whether the workers declare the world size, so that no round completes before all have joined.
    pub declared: bool,
    /// Number of floats in the vector.
    pub gradient_len: u32,
    /// Number of floats in a segment.
    pub segment_floats: u16,
    /// Start time of each worker process; workers without an entry start at once.
    pub starts: Vec<Duration>,
    /// Mean time to compute a gradient.
    pub compute: Duration,
    /// Number of rounds after which a worker begins no further round; the simulation ends when all workers have
    /// completed these rounds. If `None`, the simulation ends a few rounds after the faults end.
    pub rounds: Option<u32>,
    /// One gradient in `poison_one_in`, on average, contains a NaN when it is first contributed; zero disables NaNs.
    pub poison_one_in: u64,
    /// Receive buffer of the switch, in bytes.
    pub switch_buffer_bytes: usize,
    /// Receive buffer of each worker, in bytes.
    pub worker_buffer_bytes: usize,
    /// Time without packets from a member after which the switch expels the member, in milliseconds.
    pub lease_ms: u32,
    /// Whether a super-frame crosses the network as one unit.
    pub offload: bool,
    /// Behaviour of the faulty links.
    pub link: LinkModel,
    /// Bit mask of the workers whose links are faulty; all other links are perfect.
    pub faulty_workers: u64,
    /// Whether the links in `faulty_workers` are faulty in the direction of the switch.
    pub faulty_up: bool,
    /// Whether the links in `faulty_workers` are faulty in the direction of the workers.
    pub faulty_down: bool,
    /// Time at which the faults end.
    pub duration: Duration,
    /// Planned actions and their times.
    pub plan: Vec<Planned>,
    /// Parent index of each switch below the root: 0 is the root, 1 is the first entry of this list.
    #[serde(default)]
    pub racks: Vec<usize>,
    /// Index of the switch that each worker is connected to, numbered as in `racks`; workers without an entry are
    /// connected to the root.
    #[serde(default)]
    pub places: Vec<usize>,
    /// Whether the links between switches are as faulty as the workers' links.
    #[serde(default)]
    pub faulty_uplinks: bool,
    /// Packets that the job's key protects, if the job has a key.
    #[serde(default)]
    pub protection: Protection,
    /// Whether the switches sum contributions in rank order.
    #[serde(default)]
    pub ordered: bool,
    /// Element types of data packets.
    #[serde(default)]
    pub elements: Elements,
    /// Reachability of the workers through the groups of the switches.
    #[serde(default)]
    pub groups: Groups,
    /// Workers that state their names.
    #[serde(default)]
    pub names: Names,
    /// If the workers have a standby switch, which has the index 1: time for which a switch may be silent before a
    /// worker moves to the other one. There are no switches below the root in this case.
    #[serde(default)]
    pub standby: Option<Duration>,
    /// Maximum cost of the queued work that a switch does in one turn.
    #[serde(default = "turns::long")]
    pub work_per_turn: u32,
}

/// Choice of the packets that a job's key protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protection {
    /// The job has no key.
    #[default]
    Nothing,
    /// Control packets only.
    Control,
    /// Control and data packets.
    All,
}

/// A planned action and its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Time of the action.
    pub at: Duration,
    /// The action.
    pub action: Action,
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// The switch; in a tree, the root.
    Switch,
    /// A switch below the root, by its index from 1, or the standby switch, which has the index 1.
    Rack(usize),
    /// A worker, by its index.
    Worker(usize),
}

/// A fault, or a request to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// A worker process is killed.
    CrashWorker {
        /// The worker.
        worker: usize,
        /// Delay until a new process replaces the killed one; `None` if no process replaces it.
        restart_after: Option<Duration>,
        /// Whether the new process sends from a different UDP port than the killed one.
        new_port: bool,
    },
    /// The switch is killed and restarts without its state.
    CrashSwitch {
        /// Delay until the switch restarts.
        restart_after: Duration,
    },
    /// A switch below the root, or the standby switch, is killed and restarts without its state.
    CrashRack {
        /// Index of the switch, from 1.
        rack: usize,
        /// Delay until the switch restarts.
        restart_after: Duration,
    },
    /// A process is paused.
    Pause {
        /// The paused node.
        node: Node,
        /// Length of the pause.
        duration: Duration,
    },
    /// A clock is turned forward or back.
    TurnClock {
        /// The node whose clock is turned.
        node: Node,
        /// Change of the clock, in microseconds.
        by_us: i64,
    },
    /// Links of workers carry no packets.
    Partition {
        /// Bit mask of the affected workers.
        workers: u64,
        /// Whether the direction towards the switch is affected.
        up: bool,
        /// Whether the direction towards the workers is affected.
        down: bool,
        /// Length of the partition.
        duration: Duration,
    },
    /// Links of workers to the standby switch carry no packets.
    CutStandby {
        /// Bit mask of the affected workers.
        workers: u64,
        /// Whether the direction towards the switch is affected.
        up: bool,
        /// Whether the direction towards the workers is affected.
        down: bool,
        /// Length of the cut.
        duration: Duration,
    },
    /// The link between a switch and its parent carries no packets.
    CutUplink {
        /// Index of the switch, from 1.
        rack: usize,
        /// Whether the direction towards the parent is affected.
        up: bool,
        /// Whether the direction towards the switch is affected.
        down: bool,
        /// Length of the cut.
        duration: Duration,
    },
    /// A worker leaves the job.
    Leave {
        /// The worker.
        worker: usize,
        /// Delay until the worker's process starts again; `None` if it does not.
        return_after: Option<Duration>,
    },
    /// A worker sets the threshold H.
    SetThreshold {
        /// The worker.
        worker: usize,
        /// The threshold.
        threshold: u16,
    },
    /// A worker closes its current round with FBcast.
    ForceBroadcast {
        /// The worker.
        worker: usize,
    },
    /// A worker resets the job.
    Reset {
        /// The worker.
        worker: usize,
    },
    /// A worker halts the job.
    Halt {
        /// The worker.
        worker: usize,
    },
}

impl Scenario {
    /// Returns a scenario with four workers, a perfect network and no faults.
    pub fn perfect() -> Self {
        Self {
            workers: 4,
            declared: true,
            gradient_len: 400,
            segment_floats: 16,
            starts: Vec::new(),
            compute: Duration::ZERO,
            rounds: Some(20),
            poison_one_in: 0,
            switch_buffer_bytes: 4 << 20,
            worker_buffer_bytes: 4 << 20,
            lease_ms: 1_000,
            offload: false,
            link: LinkModel::PERFECT,
            faulty_workers: u64::MAX,
            faulty_up: true,
            faulty_down: true,
            duration: Duration::from_secs(3600),
            plan: Vec::new(),
            racks: Vec::new(),
            places: Vec::new(),
            faulty_uplinks: false,
            protection: Protection::Nothing,
            ordered: false,
            elements: Elements::F32,
            groups: Groups::default(),
            names: Names::default(),
            standby: None,
            work_per_turn: turns::long(),
        }
    }

    /// Draws a random scenario, derived from `seed`, in which the workers have a standby switch. The workers declare
    /// the world size, and every round waits for all of them.
    pub fn draw_with_standby(seed: u64) -> Self {
        let mut draw = Draw::new(mix(seed ^ STANDBY_SALT));
        let drawn = Self::draw(seed);
        let workers = drawn.workers.min(9);
        // In a round that waits for other workers, a worker asks the switch for results every quarter of a second.
        let silence = draw.time(300_000..=1_500_000);
        let duration = silence * draw.among(2..=12) as u32;
        let mut scenario = Self {
            workers,
            declared: true,
            compute: duration / draw.among(10..=60) as u32,
            faulty_workers: u64::MAX,
            starts: Vec::new(),
            duration,
            plan: draw.plan(workers, duration),
            racks: Vec::new(),
            places: Vec::new(),
            standby: Some(silence),
            lease_ms: draw.time(50_000..=3_000_000).as_millis() as u32,
            ..drawn
        };
        let is_excluded = |action: &Action| {
            matches!(
                action,
                Action::SetThreshold { .. } | Action::ForceBroadcast { .. } | Action::Halt { .. }
            )
        };
        scenario.plan.retain(|planned| !is_excluded(&planned.action));
        let kinds: [(f64, DrawAction); 5] = [
            (0.6, Draw::crash_root_or_standby),
            (0.6, Draw::cut_root_or_standby),
            (0.3, Draw::pause_rack),
            (0.2, Draw::turn_clock_of_rack),
            (0.4, Draw::cut_root_or_standby),
        ];
        for (at, (probability, action)) in kinds.into_iter().enumerate() {
            // Only one switch is a standby switch; the other actions choose among the workers.
            let nodes = if matches!(at, 2 | 3) { 1 } else { workers };
            draw.add_to_plan(&mut scenario.plan, probability, action, nodes, duration);
        }
        scenario.draw_layout(&mut draw);
        scenario
    }

    /// Draws a random scenario, which is derived from `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let workers = if draw.chance(0.02) { draw.among(10..=MAX_MEMBERS) } else { draw.among(1..=9) };
        let duration = draw.time(20_000..=500_000);
        let mut scenario = Self {
            workers,
            declared: draw.chance(0.6),
            starts: Vec::new(),
            compute: duration / draw.among(5..=25) as u32,
            rounds: None,
            poison_one_in: if draw.chance(0.1) { 5 } else { 0 },
            switch_buffer_bytes: draw.buffer(),
            worker_buffer_bytes: draw.buffer(),
            lease_ms: draw.time(8_000..=400_000).as_millis() as u32,
            offload: draw.chance(0.3),
            link: draw.link(),
            faulty_workers: if draw.chance(0.6) { u64::MAX } else { draw.0.random() },
            faulty_up: true,
            faulty_down: true,
            duration,
            plan: draw.plan(workers, duration),
            elements: Elements::draw(seed),
            groups: Groups::draw(seed, duration),
            names: Names::draw(seed),
            work_per_turn: turns::draw(seed),
            ..Self::perfect()
        };
        if draw.chance(0.2) {
            let up = draw.chance(0.5);
            (scenario.faulty_up, scenario.faulty_down) = (up, !up);
        }
        if draw.chance(0.25) {
            scenario.starts = (0..workers).map(|_| draw.time(1..=duration.as_micros() as u64)).collect();
        }
        scenario.draw_layout(&mut draw);
        if draw.chance(0.3) {
            scenario.draw_tree(&mut draw);
        }
        scenario.ordered = draw.chance(0.15);
        if draw.chance(0.25) {
            scenario.protection = if draw.chance(0.5) { Protection::Control } else { Protection::All };
        }
        if draw.chance(0.1) {
            scenario.restart_often(&mut draw);
        }
        scenario
    }

    /// Adds one to four switches below the root, usually on one level. The workers are connected to switches that have
    /// no child switches.
    fn draw_tree(&mut self, draw: &mut Draw) {
        let racks = draw.among(1..=4);
        let is_flat = draw.chance(0.6);
        self.racks = (0..racks).map(|above| if is_flat { 0 } else { draw.among(0..=above) }).collect();
        let leaves: Vec<_> = (1..=racks).filter(|at| !self.racks.contains(at)).collect();
        self.places = (0..self.workers).map(|_| leaves[draw.among(0..=leaves.len() - 1)]).collect();
        self.faulty_uplinks = draw.chance(0.6);
        let kinds: [(f64, DrawAction); 4] = [
            (0.3, Draw::crash_rack),
            (0.25, Draw::pause_rack),
            (0.1, Draw::turn_clock_of_rack),
            (0.25, Draw::cut_uplink),
        ];
        for (probability, action) in kinds {
            draw.add_to_plan(&mut self.plan, probability, action, racks, self.duration);
        }
    }

    /// Plans quick restarts of the switch, so that late packets of one run arrive during the next.
    fn restart_often(&mut self, draw: &mut Draw) {
        (self.link.late, self.link.late_by) = (draw.scale(0.02, 0.3), draw.time(1_000..=20_000));
        for _ in 0..draw.among(2..=6) {
            let action = Action::CrashSwitch { restart_after: draw.time(50..=3_000) };
            self.plan.push(Planned { at: draw.moment(self.duration), action });
        }
        if draw.chance(0.3) {
            // A SetH can leave some workers with a sum that others lack.
            let action = draw.set_threshold(self.workers, self.duration);
            self.plan.push(Planned { at: draw.moment(self.duration / 4), action });
        }
        if draw.chance(0.5) {
            self.restart_early(draw);
        }
    }

    /// Plans workers that start one after another and a switch that loses its state before the last of them has
    /// joined.
    fn restart_early(&mut self, draw: &mut Draw) {
        self.compute = draw.time(100..=2_000);
        self.declared = false;
        let latest = self.compute * 5;
        self.starts = (0..self.workers).map(|_| draw.moment(latest)).collect();
        for _ in 0..draw.among(1..=3) {
            let action = Action::CrashSwitch { restart_after: draw.time(50..=3_000) };
            self.plan.push(Planned { at: draw.moment(latest), action });
        }
    }

    /// Draws a short vector: faults occur between segments, so long vectors do not reveal more.
    fn draw_layout(&mut self, draw: &mut Draw) {
        let floats = self.min_segment_floats() + draw.among(0..=3);
        let last = draw.among(self.min_segment_floats()..=floats);
        let segments = if self.workers > 9 { draw.among(1..=3) } else { draw.among(1..=10) };
        self.segment_floats = floats as u16;
        self.gradient_len = ((segments - 1) * floats + last) as u32;
    }

    /// Returns the maximum number of worker processes: one for each machine, and one more for each process that the
    /// plan ends.
    pub fn lives(&self) -> usize {
        let ends = self.plan.iter().filter(|planned| planned.action.ends_a_process()).count();
        self.workers + ends
    }

    /// Returns the minimum length of a segment, in floats, that the checker's witness needs.
    pub fn min_segment_floats(&self) -> usize {
        digit_lanes(self.lives(), self.elements.types()) + 1
    }

    /// Returns whether every round waits for all its members.
    pub(super) fn waits_for_all(&self) -> bool {
        let hurries = |action| matches!(action, Action::SetThreshold { .. } | Action::ForceBroadcast { .. });
        !self.plan.iter().any(|planned| hurries(planned.action))
    }
}

impl Action {
    fn ends_a_process(self) -> bool {
        matches!(self, Self::CrashWorker { .. } | Self::Leave { .. })
    }
}

/// Salt that is combined with the seed to draw the settings of the standby switch.
const STANDBY_SALT: u64 = 0x7374_616e_6462_7921;

/// Generator of a seed's random numbers, in the distributions that scenarios need.
pub(crate) struct Draw(ChaCha8Rng);

/// Draws an action, given the number of workers or racks and the duration of the simulation.
type DrawAction = fn(&mut Draw, usize, Duration) -> Action;

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    pub(crate) fn among(&mut self, range: RangeInclusive<usize>) -> usize {
        self.0.random_range(range)
    }

    /// Draws a random bit mask.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.random()
    }

    /// Draws from a log-uniform distribution: each order of magnitude is equally likely.
    pub(crate) fn scale(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + (high.ln() - low.ln()) * self.0.random::<f64>()).exp()
    }

    pub(crate) fn time(&mut self, micros: RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.scale(*micros.start() as f64, *micros.end() as f64) as u64)
    }

    /// Draws a receive buffer size: either so small that only one segment fits, or large enough for everything.
    fn buffer(&mut self) -> usize {
        if self.chance(0.5) { 4 << 20 } else { self.scale(1_000.0, 100_000.0) as usize }
    }

    fn link(&mut self) -> LinkModel {
        let mut link = LinkModel { delay: self.time(5..=200), ..LinkModel::PERFECT };
        link.fifo = self.chance(0.4);
        if self.chance(0.5) {
            link.jitter = self.time(1..=5_000);
        }
        if self.chance(0.3) {
            (link.late, link.late_by) = (self.scale(1e-3, 0.2), self.time(100..=20_000));
        }
        if self.chance(0.6) {
            link.loss = Some(self.loss());
        }
        if self.chance(0.4) {
            link.duplication = self.scale(1e-3, 0.3);
        }
        if self.chance(0.2) {
            link.corruption = self.scale(1e-3, 0.1);
            link.missed_checksum = if self.chance(0.1) { 0.5 } else { 0.0 };
        }
        if self.chance(0.2) {
            let (bytes_per_second, queue_bytes) = (self.scale(3e5, 3e7) as u64, self.scale(3e2, 2e4) as u64);
            link.rate = Some(Rate { bytes_per_second, queue_bytes });
        }
        link
    }

    fn loss(&mut self) -> Loss {
        if self.chance(0.6) {
            return Loss::Bernoulli { probability: self.scale(1e-3, 0.3) };
        }
        let (to_bad, to_good) = (self.scale(1e-3, 0.1), self.scale(0.02, 0.5));
        Loss::GilbertElliott { to_bad, to_good, loss_bad: self.scale(0.3, 1.0) }
    }

    fn plan(&mut self, workers: usize, duration: Duration) -> Vec<Planned> {
        let mut plan = Vec::new();
        let kinds: [(f64, DrawAction); 9] = [
            (0.3, Self::crash_worker),
            (0.2, Self::crash_switch),
            (0.25, Self::pause),
            (0.15, Self::turn_clock),
            (0.25, Self::partition),
            (0.25, Self::leave),
            (0.1, Self::set_threshold),
            (0.15, Self::force_broadcast),
            (0.15, Self::reset),
        ];
        for (probability, action) in kinds {
            self.add_to_plan(&mut plan, probability, action, workers, duration);
        }
        if self.chance(0.1) {
            let (worker, at) = (self.among(0..=workers - 1), self.moment(duration));
            plan.push(Planned { at, action: Action::Halt { worker } });
            plan.push(Planned { at: at + self.spell(duration), action: Action::Reset { worker } });
        }
        plan
    }

    /// Adds between zero and three actions of one kind to the plan, each for one of `nodes`.
    fn add_to_plan(
        &mut self,
        plan: &mut Vec<Planned>,
        probability: f64,
        action: DrawAction,
        nodes: usize,
        duration: Duration,
    ) {
        let times = if self.chance(probability) { self.among(1..=3) } else { 0 };
        for _ in 0..times {
            let action = action(self, nodes, duration);
            plan.push(Planned { at: self.moment(duration), action });
        }
    }

    pub(crate) fn moment(&mut self, duration: Duration) -> Duration {
        duration.mul_f64(self.0.random::<f64>())
    }

    /// Draws a length of time between 100 us and `duration`, the length of the simulation.
    fn spell(&mut self, duration: Duration) -> Duration {
        self.time(100..=duration.as_micros() as u64)
    }

    fn node(&mut self, workers: usize) -> Node {
        if self.chance(0.4) { Node::Switch } else { Node::Worker(self.among(0..=workers - 1)) }
    }

    fn crash_worker(&mut self, workers: usize, duration: Duration) -> Action {
        let restart_after = if self.chance(0.75) { Some(self.spell(duration)) } else { None };
        let worker = self.among(0..=workers - 1);
        Action::CrashWorker { worker, restart_after, new_port: self.chance(0.5) }
    }

    fn crash_switch(&mut self, _workers: usize, duration: Duration) -> Action {
        Action::CrashSwitch { restart_after: self.spell(duration) }
    }

    fn pause(&mut self, workers: usize, duration: Duration) -> Action {
        Action::Pause { node: self.node(workers), duration: self.spell(duration) }
    }

    /// Turns a clock forward by up to an hour, or back by at most a second, because turning it back delays deadlines by
    /// the same amount.
    fn turn_clock(&mut self, workers: usize, _duration: Duration) -> Action {
        Action::TurnClock { node: self.node(workers), by_us: self.turn() }
    }

    fn turn(&mut self) -> i64 {
        if self.chance(0.5) { self.scale(1e3, 3.6e9) as i64 } else { -(self.scale(1e3, 1e6) as i64) }
    }

    fn crash_rack(&mut self, racks: usize, duration: Duration) -> Action {
        Action::CrashRack { rack: self.among(1..=racks), restart_after: self.spell(duration) }
    }

    fn pause_rack(&mut self, racks: usize, duration: Duration) -> Action {
        Action::Pause { node: Node::Rack(self.among(1..=racks)), duration: self.spell(duration) }
    }

    fn turn_clock_of_rack(&mut self, racks: usize, _duration: Duration) -> Action {
        Action::TurnClock { node: Node::Rack(self.among(1..=racks)), by_us: self.turn() }
    }

    /// Kills one of the two switches. Sometimes it stays down until long after the other one has taken over.
    fn crash_root_or_standby(&mut self, _workers: usize, duration: Duration) -> Action {
        let restart_after = self.spell(duration);
        if self.chance(0.6) {
            Action::CrashSwitch { restart_after }
        } else {
            Action::CrashRack { rack: 1, restart_after }
        }
    }

    /// Cuts some of the workers off from one of the two switches.
    fn cut_root_or_standby(&mut self, workers: usize, duration: Duration) -> Action {
        let mask = match self.among(0..=2) {
            0 => 1 << self.among(0..=workers - 1),
            1 => self.bits(),
            _ => u64::MAX,
        };
        let (up, duration) = (self.chance(0.7), self.spell(duration));
        let down = !up || self.chance(0.6);
        if self.chance(0.6) {
            Action::Partition { workers: mask, up, down, duration }
        } else {
            Action::CutStandby { workers: mask, up, down, duration }
        }
    }

    fn cut_uplink(&mut self, racks: usize, duration: Duration) -> Action {
        let up = self.chance(0.7);
        let (rack, duration) = (self.among(1..=racks), self.spell(duration));
        Action::CutUplink { rack, up, down: !up || self.chance(0.5), duration }
    }

    fn partition(&mut self, workers: usize, duration: Duration) -> Action {
        let workers = if self.chance(0.3) { u64::MAX } else { 1 << self.among(0..=workers - 1) };
        let up = self.chance(0.7);
        Action::Partition { workers, up, down: !up || self.chance(0.5), duration: self.spell(duration) }
    }

    fn leave(&mut self, workers: usize, duration: Duration) -> Action {
        let return_after = if self.chance(0.75) { Some(self.spell(duration)) } else { None };
        Action::Leave { worker: self.among(0..=workers - 1), return_after }
    }

    fn set_threshold(&mut self, workers: usize, _duration: Duration) -> Action {
        let threshold = self.among(0..=workers + 1) as u16;
        Action::SetThreshold { worker: self.among(0..=workers - 1), threshold }
    }

    fn force_broadcast(&mut self, workers: usize, _duration: Duration) -> Action {
        Action::ForceBroadcast { worker: self.among(0..=workers - 1) }
    }

    fn reset(&mut self, workers: usize, _duration: Duration) -> Action {
        Action::Reset { worker: self.among(0..=workers - 1) }
    }
}
