//! Scenarios of asynchronous simulations and their generation from a seed.

use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_switch::Config;
use serde::{Deserialize, Serialize};

use super::member::SEGMENT_FLOATS;
use super::standby::Standby;
use super::upsets::{PlannedUpset, Upset};
use crate::addresses::{Member, member_at};
use crate::checker::mix;
use crate::elements::Elements;
use crate::groups::Groups;
use crate::names::Names;
use crate::swarm::Draw;
use crate::turns;

/// Maximum number of floats in a short vector. A few segments reveal the same faults as many.
const MOST_FLOATS: usize = 9 * SEGMENT_FLOATS as usize;
/// Minimum duration of a job whose workers are killed, so that leases expire within it.
const SHORTEST_WITH_CRASHES: Duration = Duration::from_millis(40);

/// Network faults. Probabilities are per datagram.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Faults {
    /// Minimum delay of every packet.
    pub delay: Duration,
    /// Maximum additional delay, drawn for each packet; it reorders packets.
    pub jitter: Duration,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet is duplicated.
    pub duplication: f64,
}

impl Faults {
    /// A network without loss or reordering.
    pub const NONE: Self =
        Self { delay: Duration::from_micros(20), jitter: Duration::ZERO, loss: 0.0, duplication: 0.0 };

    fn draw(draw: &mut Draw) -> Self {
        let mut faults = Self { delay: draw.time(5..=200), ..Self::NONE };
        if draw.chance(0.5) {
            faults.jitter = draw.time(1..=5_000);
        }
        if draw.chance(0.6) {
            faults.loss = draw.scale(1e-3, 0.3);
        }
        if draw.chance(0.4) {
            faults.duplication = draw.scale(1e-3, 0.3);
        }
        faults
    }
}

/// Pace of one worker.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Pace {
    /// Time to compute a gradient.
    pub compute: Duration,
    /// Length of the periods into which the worker's time is divided; the worker is stalled in every second period. A
    /// stalled worker does nothing, and the packets that arrive for it wait.
    pub stall: Option<Duration>,
}

/// A job to simulate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Scenario {
    /// Workers of the job.
    pub workers: Vec<Pace>,
    /// Threshold H that the first worker sets; if zero, H follows the number of members.
    pub threshold: u16,
    /// Staleness bound S.
    pub staleness_bound: u32,
    /// Network faults.
    pub faults: Faults,
    /// Duration of the job in virtual time.
    pub duration: Duration,
    /// Whether all faults end after `duration`, so that every worker must then make progress.
    pub heals: bool,
    /// Upsets during the job, in order of time.
    pub upsets: Vec<PlannedUpset>,
    /// Whether the job has a key.
    pub is_keyed: bool,
    /// Number of floats in the vector.
    #[serde(default = "long_vector")]
    pub gradient_len: u32,
    /// Time without packets from a member after which the switch expels the member, in milliseconds.
    #[serde(default = "long_lease")]
    pub lease_ms: u32,
    /// Whether the workers declare the world size, so that no vector is summed before all have joined.
    #[serde(default = "declared")]
    pub is_declared: bool,
    /// Element types of data packets.
    #[serde(default)]
    pub elements: Elements,
    /// Reachability of the workers through the group of the job.
    #[serde(default)]
    pub groups: Groups,
    /// Workers that state their names.
    #[serde(default)]
    pub names: Names,
    /// Parent of each switch below the root: 0 is the root, and i is the switch with index i - 1 in this list.
    #[serde(default)]
    pub racks: Vec<usize>,
    /// Switch that each worker is connected to, numbered as in `racks`; workers without an entry are connected to the
    /// root.
    #[serde(default)]
    pub places: Vec<usize>,
    /// Second switch of the workers, which has the index 1, if they have one. There are no switches below the root in
    /// this case.
    #[serde(default)]
    pub standby: Option<Standby>,
    /// Maximum cost of the queued work that a switch does in one turn.
    #[serde(default = "turns::long")]
    pub work_per_turn: u32,
}

/// Salt that is combined with the seed to draw the tree, so that this choice does not change the other random numbers
/// of a scenario.
const TREE_SALT: u64 = 0x7472_6565_7472_6565;

/// Returns the vector length of stored scenarios that lack the `gradient_len` field.
fn long_vector() -> u32 {
    150
}

/// Returns the lease of stored scenarios that lack the `lease_ms` field, in milliseconds. Their workers are never
/// killed.
fn long_lease() -> u32 {
    Config::default().lease_ms
}

/// Returns the value of `is_declared` for stored scenarios that lack this field. Workers of these scenarios declare the
/// world size and are never killed.
fn declared() -> bool {
    true
}

impl Scenario {
    /// Draws a random scenario, which is derived from `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let count = draw.among(1..=8);
        let compute = draw.time(20..=3_000);
        let is_uneven = draw.chance(0.5);
        let may_stall = draw.chance(0.4);
        let pace = |draw: &mut Draw| Pace {
            compute: if is_uneven { compute * draw.among(1..=10) as u32 } else { compute },
            stall: (may_stall && draw.chance(0.5)).then(|| draw.time(500..=30_000)),
        };
        let workers = (0..count).map(|_| pace(&mut draw)).collect();
        let faults = Faults::draw(&mut draw);
        // This is roughly the time that the fastest worker needs for a vector.
        let turn = compute + faults.delay * 2;
        let threshold = if draw.chance(0.5) { 0 } else { draw.among(1..=count + 2) as u16 };
        let staleness_bound = draw.among(0..=4) as u32;
        let duration = turn * draw.scale(10.0, 250.0) as u32;
        let mut scenario = Self {
            workers,
            threshold,
            staleness_bound,
            faults,
            duration,
            heals: true,
            upsets: draw_upsets(&mut draw, duration, count),
            is_keyed: draw.chance(0.3),
            gradient_len: long_vector(),
            lease_ms: long_lease(),
            is_declared: declared(),
            elements: Elements::draw(seed),
            groups: Groups::draw(seed, duration),
            names: Names::draw(seed),
            racks: Vec::new(),
            places: Vec::new(),
            standby: None,
            work_per_turn: turns::long(),
        };
        if draw.chance(0.75) {
            scenario.gradient_len = draw.among(1..=MOST_FLOATS) as u32;
        }
        if draw.chance(0.4) {
            scenario.draw_crashes(&mut draw);
        }
        scenario.draw_tree(seed);
        scenario.draw_turns(seed);
        scenario
    }

    /// Adds switches below the root to half of the scenarios, and restarts of these switches.
    fn draw_tree(&mut self, seed: u64) {
        let mut draw = Draw::new(mix(seed ^ TREE_SALT));
        if draw.chance(0.5) {
            return;
        }
        let racks = draw.among(1..=3);
        let is_flat = draw.chance(0.7);
        self.racks = (0..racks).map(|above| if is_flat { 0 } else { draw.among(0..=above) }).collect();
        let first = usize::from(draw.chance(0.7));
        self.places = self.workers.iter().map(|_| draw.among(first..=racks)).collect();
        let restarts = if draw.chance(0.5) { 0 } else { draw.among(1..=3) };
        for _ in 0..restarts {
            let at = self.duration.mul_f64(draw.among(0..=1_000) as f64 / 1_000.0);
            self.upsets.push((at, Upset::RestartRack(draw.among(1..=racks))));
        }
        self.upsets.sort_by_key(|(at, _)| *at);
    }

    /// Shortens the turns of the switches in some of the scenarios, so that vectors and requests wait in queues. In
    /// these scenarios, no member may leave, because the checker does not learn that an aggregate is finished until the
    /// switch sends its first result.
    fn draw_turns(&mut self, seed: u64) {
        if self.upsets.is_empty() {
            self.work_per_turn = turns::draw(seed);
        }
    }

    /// Returns the switch that a worker is connected to.
    pub(super) fn place_of(&self, worker: usize) -> usize {
        self.places.get(worker).copied().unwrap_or(0)
    }

    /// Returns the switch that a member sends its packets to.
    pub(super) fn switch_of(&self, member: SocketAddrV4) -> usize {
        match member_at(member) {
            Member::Worker(worker) => self.place_of(worker),
            Member::Rack(rack) => self.racks[rack - 1],
        }
    }

    /// Returns the maximum number of workers below one member of the root.
    pub(super) fn largest_subtree(&self) -> u16 {
        let mut workers = vec![0; self.racks.len() + 1];
        for worker in 0..self.workers.len() {
            let mut at = self.place_of(worker);
            while at > 0 && self.racks[at - 1] > 0 {
                at = self.racks[at - 1];
            }
            workers[at] += 1;
        }
        workers[1..].iter().copied().max().unwrap_or(1).max(1)
    }

    /// Adds kills of worker processes, and a lease after which killed workers are expelled. Some workers that are
    /// merely slow are also expelled when that lease expires.
    fn draw_crashes(&mut self, draw: &mut Draw) {
        self.duration = self.duration.max(SHORTEST_WITH_CRASHES);
        let micros = self.duration.as_micros() as u64;
        self.lease_ms = draw.time(8_000..=micros).as_millis() as u32;
        self.is_declared = draw.chance(0.6);
        for _ in 0..draw.among(1..=4) {
            let worker = draw.among(0..=self.workers.len() - 1);
            let return_after = draw.chance(0.75).then(|| draw.time(100..=micros));
            let at = self.duration.mul_f64(draw.among(0..=1_000) as f64 / 1_000.0);
            self.upsets.push((at, Upset::Crash { worker, return_after, new_port: draw.chance(0.5) }));
        }
        self.upsets.sort_by_key(|(at, _)| *at);
    }
}

fn draw_upsets(draw: &mut Draw, duration: Duration, workers: usize) -> Vec<PlannedUpset> {
    let count = if draw.chance(0.5) { 0 } else { draw.among(1..=3) };
    let upset = |draw: &mut Draw| {
        let at = duration.mul_f64(draw.among(0..=1_000) as f64 / 1_000.0);
        let upset = if draw.chance(0.5) { Upset::Restart } else { Upset::Reset(draw.among(0..=workers - 1)) };
        (at, upset)
    };
    let mut upsets: Vec<_> = (0..count).map(|_| upset(draw)).collect();
    upsets.sort_by_key(|(at, _)| *at);
    upsets
}
